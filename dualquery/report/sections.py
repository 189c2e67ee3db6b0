"""Sections of the page about a release: size, errors, means, pairs, how it was made."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from dualquery.queries.conjunctions import conjunctions_of
from dualquery.releases.answer.bought import means_of
from dualquery.report.distributions import bar
from dualquery.report.facts import widths
from dualquery.report.markup import Html, element, joined, key_figures, table
from dualquery.report.pairs import Pairs
from dualquery.runtime.escaping import share

if TYPE_CHECKING:
    from dualquery.releases.keep.folder import Release


STRONGEST = 20
_KNOWN = {"exact": "", "measured": " (with noise)", "stated": " (as stated)"}


def size(release: Release) -> Html:
    """How large everything is."""
    total = release.base
    records = 0 if release.records is None else len(release.records)
    name = "rows" if total.what == "rows" else "total weight"
    figures = {
        f"{name}{_KNOWN[total.known]}": total.text,
        "columns": f"{len(release.schema.column_names):,}",
        "answers": f"{len(release.workload):,}",
        "synthetic records": f"{records:,}",
    }
    return key_figures(figures)


def errors_to_expect(release: Release) -> Html:
    """The errors of answers due to the noise that was added."""
    found = widths(release)
    if release.intervals is None:
        return element(
            "p",
            f"Answers of the mechanism {release.chosen} have no interval here: dualquery answer "
            "says what is known of errors; else only the holder of the table can tell (evaluate).",
        )
    rows = [
        (
            *(f"{count:,}" for count in (e.literals, e.queries, e.known)),
            *("none" if math.isnan(half) else share(half) for half in e.half),
        )
        for e in found
    ]
    level = f"{release.intervals.level:.0%}"
    low = release.workload.low
    high = release.workload.high
    what = "a share of" if conjunctions_of(release.workload) is not None else "a mean over"
    return joined(
        [
            element(
                "p",
                f"An answer is {what} the {release.base.name}, from {low:g} to {high:g}. An "
                f"interval covers the truth with a chance of {level}, each by itself: of 100 about "
                f"{100 * (1 - release.intervals.level):.0f} miss. The released answer is often "
                "closer to the truth than its interval is long, and may lie outside it.",
            ),
            table(
                "Half the length of the intervals, by the number of conditions in a query",
                ("conditions", "queries", "with an interval", "median", "longest"),
                rows,
            ),
            element("p", f"Basis of the intervals: {release.intervals.basis}.", class_="soft"),
        ]
    )


def means(release: Release) -> Html:
    """The means that were bought; nothing if there are none."""
    if not release.means:
        return Html("")
    found = means_of(release)
    rows = [
        (name, *(f"{each:.10g}" for each in (mean, *around.lower, *around.upper)))
        for name, mean, around in found
    ]
    level = f"{found[0][2].level:.0%}"
    caption = f"Means that were measured by themselves, with {level} intervals"
    return table(caption, ("mean of", "released", "low", "high"), rows)


def associations(release: Release, found: Pairs | None) -> Html:
    """How strongly columns go together, in the records."""
    if found is None or len(found.columns) < 2:
        return element("p", "The release has too few records or columns to say.")
    names = release.schema.column_names
    if not (strong := found.strongest(STRONGEST)):
        return element(
            "p",
            "In the synthetic records no two columns go together more than chance"
            f"{' and noise explain' if found.noise_known else ' explains'}.",
        )
    strongest = table(
        "The strongest pairs",
        ("pair", "strength", ""),
        [
            (f"{names[one]} and {names[other]}", f"{strength:.2f}", bar(strength))
            for one, other, strength in strong
        ],
        class_="pairs",
    )
    doubt = (
        "Pairs that chance or noise alone may explain, or that were not measured together, are "
        "not listed; noise makes others look a little stronger than they are."
        if found.noise_known
        else "Pairs that chance alone may explain in these records are not listed; how much of "
        "the others is noise, the release cannot tell."
    )
    words = element(
        "p",
        "Cramér's V in the synthetic records: 0 where two columns are independent, 1 where one "
        "tells the other. Values that are rarer than 1 in 1,000 rows do not count. "
        f"{doubt}",
    )
    return joined([words, strongest])


def making(release: Release) -> Html:
    """How the release was made, and how to cite it."""
    made = {
        "mechanism": release.chosen,
        "parameters": dict(release.parameters),
        "options": dict(release.options),
        "workload": dict(release.workload.description),
        "versions": dict(release.versions),
        "created": release.created,
    }
    version = release.versions.get("dualquery", "")
    cited = (
        f"dualquery {version}, mechanism {release.chosen}, release of {release.created[:10]}. "
        f"{release.privacy.guarantee()}"
    )
    notes = element("ul", *(element("li", each) for each in release.notes))
    return joined(
        [
            *([notes] if release.notes else []),
            element("p", "To cite it:"),
            element("pre", cited),
            element(
                "details",
                element("summary", "Everything that was chosen"),
                element("pre", json.dumps(made, indent=2, ensure_ascii=False, default=str)),
                class_="long",
            ),
        ]
    )
