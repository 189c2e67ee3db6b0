"""The sections of the page about a release, each a function of the release and facts about it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.releases.bought import means_of
from dualquery.report.columns import bar
from dualquery.report.facts import Pairs, Widths, listed, widths
from dualquery.report.markup import Html, data, element, joined, table
from dualquery.runtime.figures import share

if TYPE_CHECKING:
    from dualquery.releases.comparison import Comparison
    from dualquery.releases.folder import Release

MATRIX_COLUMNS = 30
"""Columns up to which the strength of every pair is shown."""

HEAT = 0.55
"""How opaque the colour of the strongest pair is; figures on it keep the contrast of WCAG AA."""

STRONGEST = 20
ANSWERS = 2_000
"""Answers that are listed, the largest and the least certain ones; a file has all of them."""

WITHOUT_SCRIPT = 25

_PAPERS = {
    "dualquery": "Gaboardi, Gallego Arias, Hsu, Roth and Wu: Dual Query, ICML 2014",
    "mwem": "Hardt, Ligett and McSherry: A simple and practical algorithm for differentially "
    "private data release, NIPS 2012",
    "mwem-sampled": "Hardt, Ligett and McSherry: A simple and practical algorithm for "
    "differentially private data release, NIPS 2012",
}


def in_short(release: Release) -> Html:
    """What a reader must know who reads no further."""
    privacy = release.privacy
    strength = "None: this release is not private."
    if privacy.private:
        assert privacy.epsilon is not None
        unit = Neighbours.of_options(release.options).unit
        strength = (
            f"Every {'row' if unit is None else f'unit of {unit.column!r}'} is protected with "
            f"epsilon {privacy.epsilon:.4g} and delta "
            f"{privacy.delta:.2g}; smaller numbers protect more. Noise was added on purpose."
        )
    content = f"{len(release.workload):,} answers"
    if release.records is not None and len(release.records):
        content += (
            f" and {len(release.records):,} synthetic records. A record describes nobody: only "
            "what many of them have in common says something"
        )
    lines = {
        "Content": f"{content}.",
        "Protection": strength,
        "Precision": _precision(release, widths(release)),
    }
    return element(
        "ul",
        *(element("li", element("strong", f"{name}. "), text) for name, text in lines.items()),
        class_="short",
    )


def _precision(release: Release, found: Sequence[Widths]) -> str:
    known = [each for each in found if each.known]
    if not known:
        return (
            "The release cannot tell how far its answers are from the truth; the holder of the "
            "table can."
        )
    most = max(known, key=lambda each: each.known)
    largest = max(each.largest for each in known)
    if conjunctions_of(release.workload) is None:
        return f"The intervals of answers reach {share(most.median)} to both sides, by the median."
    points, furthest = (f"{100 * value:.2g}" for value in (most.median, largest))
    with_interval, all_answers = (sum(getattr(e, of) for e in found) for of in ("known", "queries"))
    if with_interval < all_answers / 2:
        return (
            f"Only {with_interval:,} of {all_answers:,} answers were measured, to about {points} "
            "percentage points. The others come from a fit to these, and the release cannot tell "
            "how far they are from the truth."
        )
    rows = max(largest * release.total_weight, 1.0)
    return (
        f"Typical answers are known to about {points} percentage points, the least certain ones "
        f"to {furthest}. What is said of fewer than about {_rounded(rows):,} rows may be noise "
        "alone."
    )


def guarantee(release: Release) -> Html:
    """What is protected, how strongly, in words and figures."""
    privacy = release.privacy
    if not privacy.private:
        reasons = element("ul", *(element("li", each) for each in privacy.reasons_not_private))
        return joined([element("p", "This release is NOT PRIVATE:", class_="alarm"), reasons])
    assert privacy.epsilon is not None
    assert privacy.delta is not None
    times, sure = math.exp(privacy.epsilon), 1 / (1 + math.exp(-privacy.epsilon))
    relation = Neighbours.of_options(release.options)
    one = "another" if relation.replaces else "added or removed"
    each, others = "row", "A person with several rows"
    told = "Each row of the table is protected."
    if relation.unit is not None:
        name, most = relation.unit.column, relation.unit.max_rows
        each, others = "unit", f"A person who has a part in several units of {name!r}"
        told = (
            f"Units are protected: all rows with the same value of {name!r} together, of which at "
            f"most {most:,} counted."
        )
    if relation.weight is not None:
        told += f" Rows count by their weight in {relation.weight.column!r}."
    beyond = ""
    if privacy.delta:
        beyond = f", but for outcomes with a chance of {_chance(privacy.delta)} in all"
    words = [
        f"{told} Had any one {each} been {one}, everything in the release would have come out "
        f"about as likely: at most {times:.3g} times as likely, or as unlikely{beyond}.",
        f"Somebody who knows all other {each}s, and thinks a fact about one {each} as likely as "
        f"not, can be at most {math.ceil(1000 * sure) / 10:g}% sure of it after reading the "
        "release.",
        f"Not protected: what is true of many {each}s at once. {others} is protected less, and "
        "other releases from the same table add up with this one.",
    ]
    figures = {
        "epsilon": f"{privacy.epsilon:.4g}",
        "delta": f"{privacy.delta:.3g}",
        "neighbours": privacy.neighbours,
        "accountant": str(privacy.accountant),
    }
    return joined(
        [
            *(element("p", each) for each in words),
            _key(figures),
            element(
                "details",
                element("summary", "What the guarantee rests on"),
                element("p", privacy.text()),
            ),
        ]
    )


def _called(relation: Neighbours) -> str:
    """Return what the number is that shares are of."""
    if relation.weight is not None:
        return "total weight (public number)"
    return "rows" if relation.rows_public else "rows (public number)"


def size(release: Release) -> Html:
    """How large everything is."""
    records = 0 if release.records is None else len(release.records)
    figures = {
        _called(Neighbours.of_options(release.options)): round(release.total_weight),
        "columns": len(release.schema.column_names),
        "answers": len(release.workload),
        "synthetic records": records,
    }
    return _key({name: f"{value:,}" for name, value in figures.items()})


def errors_to_expect(release: Release) -> Html:
    """How far answers may be off, from the noise that was added."""
    found = widths(release)
    if release.intervals is None:
        return element(
            "p",
            f"Answers of the mechanism {release.chosen} have no interval: how far they are from "
            "the truth is not known from the release. Only the holder of the table can tell "
            "(dualquery evaluate).",
        )
    rows = [
        (
            str(each.literals),
            f"{each.queries:,}",
            f"{each.known:,}",
            _number(each.median),
            _number(each.largest),
        )
        for each in found
    ]
    level = f"{release.intervals.level:.0%}"
    return joined(
        [
            element(
                "p",
                f"An answer is a share of the rows, from 0 to 1. An interval covers the true "
                f"answer with a chance of {level}, each by itself: of 100 intervals, about "
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
    rows = [
        (name, f"{mean:.6g}", f"{low:.6g}", f"{high:.6g}")
        for name, mean, (low, high) in means_of(release)
    ]
    caption = "Means that were measured by themselves, with 95% intervals"
    return table(caption, ("mean of", "released", "low", "high"), rows)


def associations(release: Release, found: Pairs | None) -> Html:
    """How strongly columns go together, in the records."""
    if found is None or len(found.columns) < 2:
        return element("p", "The release has too few records or columns to say.")
    names = release.schema.column_names
    strong = found.strongest(STRONGEST)
    if not strong:
        return element(
            "p",
            "In the synthetic records no two columns go together more than chance explains.",
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
    words = element(
        "p",
        "Cramér's V in the synthetic records: 0 where two columns are independent, 1 where one "
        "tells the other. Pairs that chance alone may explain in so many records are not listed; "
        "the release's error makes weak pairs look a little stronger than they are.",
    )
    if len(found.columns) > MATRIX_COLUMNS:
        return joined([words, strongest])
    return joined([words, strongest, _matrix([names[c] for c in found.columns], found)])


def _matrix(names: Sequence[str], found: Pairs) -> Html:
    numbers = [str(i + 1) for i in range(len(names))]
    rows = []
    for i, name in enumerate(names):
        cells: list[Html] = []
        for j in range(len(names)):
            value = float(found.strength[i, j])
            shown = "" if i == j else f"{value:.2f}".removeprefix("0")
            strong = f"background:rgba(var(--heat),{HEAT * value:.2f})" if i != j else ""
            cells.append(element("td", shown, class_="heat", style=strong))
        rows.append(element("tr", element("th", f"{i + 1} {name}", scope="row"), *cells))
    header = (element("th", each, scope="col") for each in ("column", *numbers))
    return element(
        "details",
        element("summary", "All pairs"),
        element(
            "div",
            element(
                "table",
                element("thead", element("tr", *header)),
                element("tbody", *rows),
            ),
            class_="wide",
        ),
    )


def answers(release: Release, compared: Comparison | None) -> Html:
    """The largest and the least certain answers, to sort and to filter."""
    largest, uncertain = listed(release, ANSWERS)
    places = np.array(list(dict.fromkeys([*largest.tolist(), *uncertain.tolist()])), np.int64)
    head = ["query", "answer", "interval from", "to"]
    if compared is not None:
        head += ["truth", "error"]
    rows = list(_answer_rows(release, compared, places))
    name = "answers-data"
    search = element(
        "p",
        element(
            "label",
            "Show answers about ",
            element("input", type="search", placeholder="words of a query"),
        ),
        hidden="hidden",
    )
    return joined(
        [
            element(
                "p",
                f"Of {len(release.workload):,} answers, the {len(largest):,} largest"
                + (f" and the {len(uncertain):,} least certain" if len(uncertain) else "")
                + "; all of them are in answers.parquet. Choose a heading to sort.",
            ),
            element(
                "div",
                search,
                element("p", "", role="status", class_="soft"),
                table("Answers", head, rows[:WITHOUT_SCRIPT], class_="listed"),
                element("p", element("button", "Show more", type="button"), hidden="hidden"),
                data(name, rows),
                data_answers=name,
            ),
        ]
    )


def _answer_rows(
    release: Release, compared: Comparison | None, places: np.ndarray
) -> Iterator[list[str]]:
    texts = release.workload.text(release.schema).gather(places).to_list()
    for text, place in zip(texts, places.tolist(), strict=True):
        known = None if release.intervals is None else release.intervals.of(place)
        ends = ["", ""] if known is None else [share(end) for end in known]
        row = [text, share(float(release.answers[place])), *ends]
        if compared is not None:
            truth = float(compared.truth[place])
            row += [share(truth), share(abs(float(release.answers[place]) - truth))]
        yield row


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
    paper = _PAPERS.get(release.chosen)
    cited = (
        f"dualquery {version}, mechanism {release.chosen}, release of {release.created[:10]}. "
        f"{release.privacy.guarantee()}" + (f" {paper}." if paper else "")
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
            ),
        ]
    )


def truth(compared: Comparison) -> Html:
    """How far the release is from its table, beside the baselines: for the holder only."""
    found = compared.to_dict()
    lines = [("this release", compared.errors)]
    if compared.synthetic is not None:
        lines.append(("its synthetic records", compared.synthetic))
    lines += [(f"baseline: {name}", each) for name, each in compared.baselines.items()]
    parts = [
        element("p", found["warning"] + ".", class_="alarm"),
        table(
            f"Errors of {found['queries']:,} answers on {found['rows']:,} rows",
            ("answers from", "max error", "mean error"),
            [(name, share(each.max_error), share(each.mean_error)) for name, each in lines],
        ),
    ]
    if found["means"]:
        figures = ("mean", "low", "high", "truth")
        rows = [(row["column"], *(f"{row[key]:.6g}" for key in figures)) for row in found["means"]]
        parts.append(table("Means that were bought", ("mean of", *figures), rows))
    for key, caption in (("literals", "by number of conditions"), ("column", "by column")):
        if rows := found[f"by_{key}"]:
            shown = [
                (
                    str(row[key]),
                    f"{row['queries']:,}",
                    share(row["max_error"]),
                    share(row["mean_error"]),
                )
                for row in rows
            ]
            heads = ("queries about" if key == "column" else "conditions", "queries")
            parts.append(table(f"Errors {caption}", (*heads, "max error", "mean error"), shown))
    parts.append(
        table(
            "Furthest from the truth",
            ("query", "answer", "truth", "error"),
            [
                (row["query"], share(row["answer"]), share(row["truth"]), share(row["error"]))
                for row in found["worst"]
            ],
        )
    )
    return joined(parts)


def _chance(value: float) -> str:
    """Return a small chance as a person says it."""
    return f"{value:.2g}" if value >= 0.001 else f"1 in {_rounded(1 / value):,}"


def _rounded(value: float) -> int:
    """Return a number above 0 to two digits, as a whole number."""
    step: int = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return round(value / step) * step


def _number(value: float) -> str:
    return "none" if math.isnan(value) else share(value)


def _key(figures: dict[str, str]) -> Html:
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value))
            for name, value in figures.items()
        ),
        class_="key",
    )
