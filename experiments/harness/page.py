"""One HTML page of several experiments: nothing outside it is needed to read it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dualquery.releases.compare.evaluation import WARNING
from dualquery.report.markup import Html, element, table
from dualquery.runtime.resources import versions
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

_QUICK = (
    "These are the quick forms: small settings on data that everyone has, to see that everything "
    "runs and which way the results point."
)

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
    contents = [
        element("li", element("a", each.recipe.name, href=f"#{each.recipe.name}"),
                f": {each.recipe.title}")
        for each in results
    ]  # fmt: skip
    contents += [element("li", f"{name} is left out: {why}") for name, why in left_out.items()]
    stated = ", ".join(f"{name} {version}" for name, version in versions().items())
    body = [
        element("h1", title),
        Html(_INTRODUCTION),
        *([element("p", _QUICK)] if quick else []),
        element("p", f"{WARNING}. The tables of these experiments are public.", class_="warning"),
        element("nav", element("ol", *contents)),
        *map(_section, results),
        element("p", f"Made with {stated}."),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{element('title', title)}<style>{_STYLE}</style></head>{element('body', *body)}</html>\n"
    )


def _section(result: Result) -> Html:
    recipe = result.recipe
    caption = result.caption
    pictures = [
        element("figure", inline_svg(path, f"{recipe.name}-{name}"), element("figcaption", caption))
        for name, path in result.pictures.items()
    ]
    kinds = {True: "yes", False: "no", None: "open"}
    findings = [
        element("li", f"Expected {each.expected}; found {each.found}.", class_=kinds[each.holds])
        for each in result.findings
    ]
    names = [name.replace("_", " ") for name in result.summary.columns]
    lines = [[*map(shown_value, line)] for line in result.summary.iter_rows()]
    return element(
        "section",
        element("h2", recipe.title),
        *(pictures or [element("p", caption, class_="setting")]),
        element("ul", *findings, class_="findings"),
        table("", names, lines),
        element("p", "Made by ", element("code", result.command)),
        id=recipe.name,
    )


def inline_svg(path: Path, name: str) -> Html:
    """Return an SVG file of Matplotlib's as an element of an HTML page.

    ``name`` is put before its ids, so that two pictures on one page do not share any.
    """
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    return Html(re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{re.escape(name)}-", text))
