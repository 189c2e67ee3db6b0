"""What a page says of a release, in numbers: all of it public, computed from the release alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.table import TableSchema
from dualquery.estimates.intervals import LEVEL
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.literals import LiteralRows, print_queries
from dualquery.questions.plain_parser import read_question
from dualquery.releases.answer.answering import answer_question
from dualquery.releases.answer.knowledge import Knowledge

if TYPE_CHECKING:
    from dualquery.releases.keep.folder import Release

Float64 = NDArray[np.float64]


MOST_ITEMS = 200  # items, or columns, whose shares the page shows, the most frequent ones
_MOST_BITS = 1_000  # a table of no more bits is shown in whole


@dataclass(frozen=True, eq=False)
class BitShares:
    """The share of the rows that has each bit: float64, shape ``(bits,)``; NaN where unknown."""

    share: Float64
    low: Float64
    high: Float64
    """Ends of intervals of the true share; NaN where there is none, and where none is shown."""
    level: float
    """The chance that such an interval holds the true share, at least."""
    shown: NDArray[np.int64]
    """The bits that the page shows: all in their order, or the most frequent first."""


def shares(release: Release) -> BitShares:
    """Return the share of every bit, and intervals of those that the page shows.

    What is shown is as by ``dualquery answer``; the others are the best guess there is.
    """
    share = _guessed(release)
    low, high = np.full((2, len(share)), np.nan)
    shown = _shown(release, share)
    texts = print_queries(2 * shown[:, None].astype(np.int32), release.schema)
    knowledge, schema = Knowledge(release), release.schema
    lines = [answer_question(knowledge, read_question(text, schema)) for text in texts]
    for bit, line in zip(shown.tolist(), lines, strict=True):
        share[bit], low[bit], high[bit] = (
            np.nan if line[key] is None else line[key] for key in ("answer", "low", "high")
        )
    return BitShares(share, low, high, min(line["level"] or LEVEL for line in lines), shown)


def _shown(release: Release, share: Float64) -> NDArray[np.int64]:
    """Return the bits whose shares the page shows: all of a table, or the most frequent of many."""
    schema = release.schema
    if isinstance(schema, TableSchema) and schema.domain.bits <= _MOST_BITS:
        return np.arange(len(share))
    return np.argsort(-np.nan_to_num(share), kind="stable")[:MOST_ITEMS]


def _guessed(release: Release) -> Float64:
    """Return the share of every bit by the model, the records or its answer; NaN without any."""
    codes = 2 * np.arange(release.schema.domain.bits, dtype=np.int32)
    if release.model is not None:
        every = LiteralRows(codes[:, None], release.schema.domain)
        return np.array(release.model.answers(every), np.float64)
    if release.records is not None:
        return np.asarray(release.records.mean(axis=0, dtype=np.float64))
    workload = conjunctions_of(release.workload)
    places = [None if workload is None else workload.find(code) for code in codes[:, None]]
    return np.array([np.nan if at is None else release.answers[at] for at in places])


@dataclass(frozen=True)
class Widths:
    """How long the intervals of some of the workload's queries are."""

    literals: int
    queries: int
    known: int
    half: tuple[float, float]
    """Half of the length: the median and the largest; NaN if none of them has an interval."""


def widths(release: Release) -> list[Widths]:
    """Return the half-lengths of the intervals, by the number of literals."""
    conjunctions = conjunctions_of(release.workload)
    count = len(release.workload)
    size = np.full(count, release.workload.way)
    if conjunctions is not None:
        size = np.count_nonzero(conjunctions.literals >= 0, axis=1)
    half = np.full(count, np.nan)
    if release.intervals is not None:
        half = (release.intervals.upper - release.intervals.lower) / 2
    found = []
    for k in np.unique(size):
        some = half[size == k]
        known, some = int(np.sum(~np.isnan(some))), some[some > 0.0]  # 0: rules force it
        half_of = (float(np.median(some)), float(some.max())) if len(some) else (np.nan, np.nan)
        found.append(Widths(int(k), int(np.sum(size == k)), known, half_of))
    return found
