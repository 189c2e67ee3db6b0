"""The answers of a release: a list to sort and to filter, and how far they are from the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dualquery.queries.conjunctions import conjunctions_of
from dualquery.report.markup import Html, data, element, joined, table
from dualquery.runtime.escaping import share, terminal_text

if TYPE_CHECKING:
    from dualquery.releases.compare.evaluation import Evaluation
    from dualquery.releases.keep.folder import Release


ANSWERS = 2_000  # that are listed, the largest and the least certain ones; a file has all of them

WITHOUT_SCRIPT = 25

_SIGNS = (
    "An answer is the share of the whole for which all conditions of the query hold: & is and, ! "
    "is not, != is other than."
)

_OWN_INTERVAL = (
    "An interval here rests on what was measured for its own query. That of dualquery answer rests "
    "on all noisy numbers about the query's columns: it may be another one, often the shorter. "
    "Each holds the true answer with its chance; of the largest, which noise helped to choose, "
    "fewer do."
)


def answers(release: Release, compared: Evaluation | None) -> Html:
    """The largest and the least certain answers, to sort and to filter."""
    largest = uncertain = np.argsort(-release.answers, kind="stable")[:ANSWERS]
    if release.intervals is not None:
        length = np.nan_to_num(release.intervals.upper - release.intervals.lower, nan=np.inf)
        uncertain = np.argsort(-length, kind="stable")[:ANSWERS]
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
        class_="search",
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
            *([] if conjunctions_of(release.workload) is None else [element("p", _SIGNS)]),
            *([] if release.intervals is None else [element("p", _OWN_INTERVAL, class_="soft")]),
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
    release: Release, compared: Evaluation | None, places: np.ndarray
) -> Iterator[list[str]]:
    texts = release.workload.text(release.schema).gather(places).to_list()
    for text, place in zip(texts, places.tolist(), strict=True):
        known = None if release.intervals is None else release.intervals.of(place)
        ends = ["", ""] if known is None else [*map(share, known, (-1, 1))]
        row = [terminal_text(text), share(float(release.answers[place])), *ends]
        if compared is not None:
            truth = float(compared.truth[place])
            row += [share(truth), share(abs(float(release.answers[place]) - truth))]
        yield row


def truth(compared: Evaluation) -> Html:
    """How far the release is from its table, beside the baselines: for the holder only."""
    found = compared.to_dict()
    lines = [("this release", compared.errors)]
    if compared.synthetic is not None:
        lines.append(("its synthetic records", compared.synthetic))
    names = {"gaussian": compared.noise}
    for name, each in compared.baselines.items():
        lines.append((f"baseline: {names.get(name, name)}", each))
    parts = [
        element("p", found["warning"] + ".", class_="alarm"),
        table(
            f"Errors of {found['queries']:,} answers on {compared.size}",
            ("answers from", "max error", "mean error"),
            [(name, share(each.max_error), share(each.mean_error)) for name, each in lines],
        ),
    ]
    if compared.remark:
        parts.append(element("p", compared.remark))
    if found["means"]:
        figures = ("mean", "low", "high", "truth", "truth_within")
        rows = [(row["column"], *(f"{row[at]:.10g}" for at in figures)) for row in found["means"]]
        heads = ("mean of", *figures[:-1], "truth within")
        parts.append(table("Means that were bought", heads, rows))
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
