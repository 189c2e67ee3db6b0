"""The sections of the page about a release, each a function of the release and facts about it."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualquery.data.schema.table import TableSchema
from dualquery.privacy.neighbours import Neighbours
from dualquery.report.facts import Pairs, Shares, listed, widths
from dualquery.report.markup import Html, data, element, joined, table
from dualquery.runtime.figures import percent, share

if TYPE_CHECKING:
    from dualquery.releases.comparison import Comparison
    from dualquery.releases.folder import Release

MOST_ITEMS = 200
"""Items, or columns, whose shares the page shows, the most frequent ones."""

MATRIX_COLUMNS = 30
"""Columns up to which the strength of every pair is shown."""

STRONGEST = 25
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
    protected, others = "row", "a person with several rows beyond one of them"
    told = "Each row of the table is protected."
    if relation.unit is not None:
        name, most = relation.unit.column, relation.unit.max_rows
        protected, others = "unit", f"a person who has a part in several units of {name!r}"
        told = (
            f"Units are protected: all rows with the same value of {name!r} together, of which at "
            f"most {most:,} counted."
        )
    beyond = ""
    if privacy.delta:
        beyond = f", but for outcomes with a chance of {privacy.delta:.2g} in all"
    words = [
        f"{told} Had any one {protected} been {one}, everything in the release would have come "
        f"out about as likely: at most {times:.3g} times as likely, or as unlikely{beyond}.",
        f"Somebody who knows all other {protected}s, and thinks a fact about one {protected} as "
        f"likely as not, can be at most {math.ceil(1000 * sure) / 10:g}% sure of it after reading "
        "the release.",
        f"Not protected: what is true of many {protected}s at once, and {others}. Other releases "
        "from the same table add up with this one.",
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


def size(release: Release) -> Html:
    """How large everything is."""
    records = 0 if release.records is None else len(release.records)
    figures = {
        "rows" if "n public" in release.privacy.neighbours else "rows (public number)": release.n,
        "columns": len(release.schema.column_names),
        "bits": release.schema.domain.bits,
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


def distributions(release: Release, known: Shares) -> Html:
    """Every column's distribution; of items, and of many columns, the most frequent."""
    schema = release.schema
    labels = schema.bit_labels().to_list()
    if np.isnan(known.share).all():
        return element(
            "p",
            "The release has neither records nor a model nor answers about single columns, so it "
            "says nothing of single columns.",
        )
    if isinstance(schema, TableSchema) and schema.domain.bits <= 5 * MOST_ITEMS:
        shown = [
            _distribution(name, labels[start:end], range(start, end), known)
            for name, (start, end) in zip(
                schema.column_names, itertools.pairwise(schema.domain.offsets.tolist()), strict=True
            )
        ]
        note = ""
    else:
        frequent = np.argsort(-np.nan_to_num(known.share), kind="stable")[:MOST_ITEMS]
        names = [labels[bit] for bit in frequent]
        shown = [_distribution("most frequent", names, frequent.tolist(), known)]
        note = f"The {len(names)} most frequent of {schema.domain.bits:,}. "
    explained = (
        f"{note}The bar is the released share; where an interval is known, a line across it shows "
        "where the true share lies."
    )
    return joined([element("p", explained), element("div", *shown, class_="columns")])


def _distribution(name: str, labels: Sequence[str], bits: Sequence[int], known: Shares) -> Html:
    cut = f"{name}="
    rows = []
    for label, bit in zip(labels, bits, strict=True):
        value = float(known.share[bit])
        low, high = float(known.low[bit]), float(known.high[bit])
        text = "not known" if math.isnan(value) else percent(value)
        reach = "" if math.isnan(low) else f"{percent(low)} to {percent(high)}"
        cells = [
            element("th", label.removeprefix(cut), scope="row"),
            element("td", _bar(value, low, high), class_="drawn"),
            element("td", text),
            element("td", reach),
        ]
        rows.append(element("tr", *cells))
    header = (element("th", each, scope="col") for each in ("value", "", "share", "interval"))
    return element(
        "table",
        element("caption", element("strong", name)),
        element("thead", element("tr", *header)),
        element("tbody", *rows),
    )


def _bar(value: float, low: float, high: float) -> Html:
    parts = []
    if not math.isnan(value):
        parts.append(element("span", class_="bar", style=f"width:{100 * value:.2f}%"))
    if not math.isnan(low):
        place = f"left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"
        parts.append(element("span", class_="reach", style=place))
    return element("div", *parts, class_="track", aria_hidden="true")


def associations(release: Release, found: Pairs | None) -> Html:
    """How strongly columns go together, in the records."""
    if found is None or len(found.columns) < 2:
        return element("p", "The release has too few records or columns to say.")
    names = release.schema.column_names
    strongest = table(
        "The strongest pairs",
        ("pair", "strength"),
        [
            (f"{names[one]} and {names[other]}", f"{strength:.2f}")
            for one, other, strength in found.strongest(STRONGEST)
        ],
    )
    words = element(
        "p",
        "Cramér's V in the synthetic records: 0 where two columns are independent, 1 where one "
        "tells the other. The release's error makes weak pairs look a little stronger than they "
        "are.",
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
            strong = f"background:rgba(var(--heat),{0.75 * value:.2f})" if i != j else ""
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
                table("Answers", head, rows[:WITHOUT_SCRIPT]),
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
        f"dualquery {version}, mechanism {release.chosen}. Release of {release.created[:10]}, "
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
