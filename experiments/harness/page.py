"""One HTML page of several experiments: nothing outside it is needed to read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dualquery.releases.compare.evaluation import WARNING
from dualquery.runtime.escaping import html_text
from dualquery.runtime.versions import versions
from experiments.harness.recipe import Finding
from experiments.harness.runner import Result, shown_value

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; background: #fff }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem }
nav li { margin: .1rem 0 } .warning { background: #fde8e0; padding: .5rem .8rem }
figure { margin: 1rem 0 } figure svg { max-width: 100%; height: auto }
figcaption, .setting { color: #444 } table { border-collapse: collapse; font-size: .85rem }
.wide { overflow-x: auto } td, th { padding: .15rem .6rem; border-bottom: 1px solid #e2e2e2;
text-align: right; white-space: nowrap } td:first-child, th:first-child { text-align: left }
code { background: #f2f2f2; padding: .1rem .3rem }
.yes::before { content: "\\2713 "; color: #00684e }
.no::before { content: "\\2717 "; color: #a33f00 } .open::before { content: "? "; color: #555 }
ul.findings { list-style: none; padding-left: 0 } ul.findings li { margin: .3rem 0 }
"""

_INTRODUCTION = """
<p>Many statistics about a private table can be published with a mathematical guarantee called
<em>differential privacy</em>: whatever is published would have been about as likely had any one
person's row been another one. The guarantee has two numbers, <em>epsilon</em> (smaller is more
private) and <em>delta</em> (the chance of a worse case). The price is error. An answer here is the
share of the rows for which something holds, a number from 0 to 1; the <em>max error</em> is how far
the worst of all published answers is from the truth, the <em>mean error</em> how far an average one
is.</p>
<p>Each section below is one experiment: what the paper did and what we did differently, a picture,
the figures behind it, what was expected and what was found, and the command that made it. Lines
show the mean over repeated runs and bands the smallest and largest run.</p>
"""


def page(title: str, results: Sequence[Result], left_out: Mapping[str, str], *, quick: bool) -> str:
    """Return the page of some experiments, in order, and of those that are left out and why."""
    contents = "".join(
        f'<li><a href="#{each.recipe.name}">{html_text(each.recipe.name)}</a>: '
        f"{html_text(each.recipe.title)}</li>"
        for each in results
    )
    contents += "".join(
        f"<li>{html_text(name)} is left out: {html_text(reason)}</li>"
        for name, reason in left_out.items()
    )
    note = (
        "<p><strong>These are the quick forms</strong>: small settings on data that everyone has, "
        "to see that everything runs and which way the results point. Leave out "
        "<code>--quick</code> for the full ones.</p>"
        if quick
        else ""
    )
    stated = ", ".join(f"{name} {version}" for name, version in _flat(versions()))
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html_text(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html_text(title)}</h1>{_INTRODUCTION}{note}"
        f'<p class="warning">{html_text(WARNING)}. The tables of these experiments are '
        "public.</p>"
        f"<nav><ol>{contents}</ol></nav>{''.join(map(_section, results))}"
        f"<p>Made with {html_text(stated)}.</p></body></html>\n"
    )


def _flat(found: Mapping[str, object]) -> list[tuple[str, object]]:
    return [(name, value) for name, value in found.items() if not isinstance(value, Mapping)]


def _section(result: Result) -> str:
    recipe = result.recipe
    pictures = "".join(
        f"<figure>{inline_svg(path, f'{recipe.name}-{name}')}"
        f"<figcaption>{html_text(result.caption)}</figcaption></figure>"
        for name, path in result.pictures.items()
    )
    setting = "" if pictures else f'<p class="setting">{html_text(result.caption)}</p>'
    findings = "".join(map(_finding, result.findings))
    return (
        f'<section id="{recipe.name}"><h2>{html_text(recipe.title)}</h2>{pictures}{setting}'
        f'<ul class="findings">{findings}</ul>{_table(result)}'
        f"<p>Made by <code>{html_text(result.command)}</code></p></section>"
    )


def _finding(finding: Finding) -> str:
    kind = {True: "yes", False: "no", None: "open"}[finding.holds]
    return (
        f'<li class="{kind}"><strong>Expected</strong> {html_text(finding.expected)}; '
        f"<strong>found</strong> {html_text(finding.found)}.</li>"
    )


def _table(result: Result) -> str:
    names = [name.replace("_", " ") for name in result.summary.columns]
    head = "".join(f"<th>{html_text(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html_text(shown_value(v))}</td>" for v in line) + "</tr>"
        for line in result.summary.iter_rows()
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>{body}</table></div>'


def inline_svg(path: Path, name: str) -> str:
    """Return an SVG file of Matplotlib's as an element of an HTML page.

    ``name`` is put before its ids, so that two pictures on one page do not share any.
    """
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{re.escape(name)}-", text)
