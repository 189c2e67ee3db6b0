"""What a page says of a release, in numbers: all of it public, computed from the release alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.data.schema.table import TableSchema
from dualquery.estimates.half_widths import LEVEL
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.questions.forms import Bounds, LinearForm
from dualquery.releases.answer.knowledge import Knowledge
from dualquery.rules.legal import forced_answers

if TYPE_CHECKING:
    from dualquery.data.domain import Domain
    from dualquery.releases.keep.folder import Release

Float64 = NDArray[np.float64]


MOST_ITEMS = 200
"""Items, or columns, whose shares the page shows, the most frequent ones."""

_MOST_BITS = 1_000
"""A table of no more bits is shown in whole."""


@dataclass(frozen=True, eq=False)
class Shares:
    """The share of the rows that has each bit: float64, shape ``(bits,)``; NaN where unknown."""

    share: Float64
    low: Float64
    high: Float64
    """Ends of intervals of the true share; NaN where there is none, and where none is shown."""
    level: float
    """The chance that such an interval holds the true share, at least."""
    shown: NDArray[np.int64]
    """The bits that the page shows: all in their order, or the most frequent first."""


def shares(release: Release) -> Shares:
    """Return the share of every bit, and intervals of those that the page shows.

    Both are those of ``dualquery answer``: a released share or else the best guess there is, in the
    interval that all noisy numbers about the column give together.
    """
    share, low, high = _released(release)
    of_workload = ~np.isnan(share)
    share = np.where(of_workload, share, _guessed(release))
    level = LEVEL
    knowledge, shown = Knowledge(release), _shown(release, share)
    for bit in shown.tolist():
        form = _share_of(release.schema.domain, bit)
        found = knowledge.limits(Bounds(form, form, form), None, (0.0, 1.0))
        if found.low is None or found.high is None or found.level is None:
            continue
        low[bit], high[bit], level = found.low, found.high, min(level, found.level)
        if not of_workload[bit]:
            guess = knowledge.mean(form) if np.isnan(share[bit]) else share[bit]
            share[bit] = np.clip(guess, found.low, found.high)
    forced = forced_answers(knowledge.rules, 2 * np.arange(len(share), dtype=np.int32)[:, None])
    free = np.isnan(forced)
    return Shares(
        np.where(free, share, forced),
        np.where(free, low, forced),
        np.where(free, high, forced),
        level,
        shown,
    )


def _shown(release: Release, share: Float64) -> NDArray[np.int64]:
    """Return the bits whose shares the page shows: all of a table, or the most frequent of many."""
    schema = release.schema
    if isinstance(schema, TableSchema) and schema.domain.bits <= _MOST_BITS:
        return np.arange(len(share))
    return np.argsort(-np.nan_to_num(share), kind="stable")[:MOST_ITEMS]


def _released(release: Release) -> tuple[Float64, Float64, Float64]:
    """Return the released share of every bit, and its own interval; NaN where there is none."""
    bits = release.schema.domain.bits
    share, low, high = (np.full(bits, np.nan) for _ in range(3))
    conjunctions = conjunctions_of(release.workload)
    if conjunctions is None:
        return share, low, high
    literals = conjunctions.literals
    single = np.flatnonzero((literals >= 0).sum(axis=1) == 1)
    # Of a bit and its negation the answer about the bit itself comes last, and stays.
    single = single[np.argsort(-(literals[single].max(axis=1) & 1), kind="stable")]
    code = literals[single].max(axis=1)
    answer = release.answers[single]
    negated = code & 1 == 1
    share[code >> 1] = np.where(negated, 1 - answer, answer)
    if release.intervals is not None:
        lower, upper = release.intervals.lower[single], release.intervals.upper[single]
        low[code >> 1] = np.where(negated, 1 - upper, lower)
        high[code >> 1] = np.where(negated, 1 - lower, upper)
    return share, low, high


def _guessed(release: Release) -> Float64:
    """Return the share of every bit under the model, or else in the records; NaN without both."""
    from dualquery.queries.literals import LiteralRows

    bits = release.schema.domain.bits
    if release.model is not None:
        every = LiteralRows(2 * np.arange(bits, dtype=np.int32)[:, None], release.schema.domain)
        answers: Float64 = np.asarray(release.model.answers(every), np.float64)
        return answers
    if release.records is not None:
        means: Float64 = release.records.mean(axis=0, dtype=np.float64)
        return means
    return np.full(bits, np.nan)


def _share_of(domain: Domain, bit: int) -> LinearForm:
    """Return the share of the rows that has a bit, as a linear form."""
    column = int(domain.column_of_bit[bit])
    binary = domain.sizes[column] == 1
    values = np.zeros(int(axis_sizes(domain)[column]))
    values[1 if binary else bit - int(domain.offsets[column])] = 1.0
    return LinearForm(domain, ({column: values},))


@dataclass(frozen=True)
class Widths:
    """How long the intervals of some of the workload's queries are."""

    literals: int
    queries: int
    known: int
    median: float
    """Half of the length; NaN if none of them has an interval."""
    largest: float


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
        some = some[~np.isnan(some)]
        median, largest = (np.median(some), some.max()) if len(some) else (np.nan, np.nan)
        found.append(
            Widths(int(k), int(np.sum(size == k)), len(some), float(median), float(largest))
        )
    return found
