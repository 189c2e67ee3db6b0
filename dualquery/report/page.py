"""The page as a whole: its sections in order, its style and its script, nothing from elsewhere."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from dualquery.report import listed_answers, protection, sections
from dualquery.report.distributions import distributions
from dualquery.report.facts import shares
from dualquery.report.markup import Html, element, joined
from dualquery.report.pairs import pairs

if TYPE_CHECKING:
    from dualquery.releases.compare.evaluation import Evaluation
    from dualquery.releases.keep.folder import Release


def report(release: Release, compared: Evaluation | None = None) -> str:
    """Return one self-contained page of HTML about a release.

    Parameters
    ----------
    release
        The release. Without ``compared`` the page says nothing that the release does not.
    compared
        The release beside its table: adds the truth, and NOT PRIVATE to every page that is printed.
    """
    known = shares(release)
    parts = {
        "protection": ("What is protected, and how strongly", protection.guarantee(release)),
        "errors": ("What errors to expect", sections.errors_to_expect(release)),
        "columns": (
            "Every column",
            joined([sections.means(release), distributions(release, known)]),
        ),
        "pairs": ("What goes together", sections.associations(release, pairs(release, known))),
        "answers": ("Answers", listed_answers.answers(release, compared)),
        "making": ("How it was made", sections.making(release)),
    }
    if compared is not None:
        parts = {"truth": ("Beside the truth", listed_answers.truth(compared)), **parts}
    contents = (
        element("li", element("a", heading, href=f"#{name}"))
        for name, (heading, _) in parts.items()
    )
    name = release.schema.name.removesuffix(".json").removesuffix(".toml")
    title = f"Release of {name or 'a table'}"
    banner = element("p", _NOT_PRIVATE, class_="alarm") if compared is not None else Html("")
    stamp = element("div", "NOT PRIVATE", class_="stamp")
    loud = compared is not None or not release.privacy.private
    body = joined(
        [
            stamp if loud else Html(""),
            banner,
            element("h1", title),
            element("p", f"Made on {release.created[:10]} by dualquery.", class_="soft"),
            sections.size(release),
            protection.in_short(release, compared),
            element("nav", element("ul", *contents), aria_label="Sections"),
            element(
                "main",
                *(
                    element("section", element("h2", heading), content, id=name)
                    for name, (heading, content) in parts.items()
                ),
            ),
        ]
    )
    here = files("dualquery.report")
    style, script = ((here / name).read_text("utf-8") for name in ("page.css", "page.js"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{element('title', title)}<style>{style}</style></head>"
        f"<body>{body}<script>{script}</script></body></html>\n"
    )


_NOT_PRIVATE = "NOT PRIVATE: this page shows exact answers; for the holder of the table only"
