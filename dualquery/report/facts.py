"""What a page says of a release, in numbers: all of it public, computed from the release alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import Intervals, gaussian_half_width
from dualquery.estimates.measurements import factors_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.rules.forced import forced_answers
from dualquery.rules.reading import rules_of

if TYPE_CHECKING:
    from dualquery.releases.folder import Release

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shares:
    """The share of the rows that has each bit: float64, shape ``(bits,)``; NaN where unknown."""

    share: Float64
    low: Float64
    high: Float64
    """Ends of intervals that cover the true share; NaN where there is none."""


def shares(release: Release) -> Shares:
    """Return the best public answer for every bit: a released one, the model's, or the records'."""
    from dualquery.queries.literals import LiteralRows

    bits = release.schema.domain.bits
    share, low, high = (np.full(bits, np.nan) for _ in range(3))
    if release.model is not None:
        every = LiteralRows(2 * np.arange(bits, dtype=np.int32)[:, None], release.schema.domain)
        share = np.asarray(release.model.answers(every), np.float64)
    elif release.records is not None:
        share = release.records.mean(axis=0, dtype=np.float64)
    _measured(release, low, high)
    conjunctions = conjunctions_of(release.workload)
    if conjunctions is not None:
        literals = conjunctions.literals
        single = np.flatnonzero((literals >= 0).sum(axis=1) == 1)
        code = literals[single].max(axis=1)
        answer = release.answers[single]
        negated = code & 1 == 1
        share[code >> 1] = np.where(negated, 1 - answer, answer)
        if release.intervals is not None:
            lower, upper = release.intervals.lower[single], release.intervals.upper[single]
            low[code >> 1] = np.where(negated, 1 - upper, lower)
            high[code >> 1] = np.where(negated, 1 - lower, upper)
    forced = forced_answers(rules_of(release.schema), 2 * np.arange(bits, dtype=np.int32)[:, None])
    return Shares(
        *(np.where(np.isnan(forced), known, forced) for known in (share, low, high)),
    )


def _measured(release: Release, low: Float64, high: Float64) -> None:
    """Put in the intervals of bits that were measured by themselves, with Gaussian noise.

    Where the number of rows is private, a measured share is one of another number, and none is put
    in.
    """
    kept = release.measurements
    replaced = Neighbours.of_options(release.options).rows_public
    if kept is None or kept.noise != "gaussian" or not replaced:
        return
    alone = np.flatnonzero(np.diff(kept.starts) == 1)
    code = kept.factors[kept.starts[alone]]
    value, reach = kept.values[alone], gaussian_half_width(1.0) * kept.deviations[alone]
    bit, at_zero, at_one = factors_of(code, release.schema.domain)
    slope = at_one - at_zero
    share = (value - at_zero) / slope
    around = Intervals.around(share, reach / np.abs(slope), 0.0, 1.0, "")
    low[bit], high[bit] = around.lower, around.upper
    # Of a column of two values, one says all of the other.
    for start in release.schema.domain.offsets[:-1][release.schema.domain.sizes == 2]:
        one, other = (start, start + 1) if np.isnan(low[start + 1]) else (start + 1, start)
        if np.isnan(low[other]):
            low[other], high[other] = 1 - high[one], 1 - low[one]


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


def listed(release: Release, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the largest answers, and of those with the longest intervals."""
    largest = np.argsort(-release.answers, kind="stable")[:count]
    if release.intervals is None:
        return largest, np.zeros(0, np.int64)
    length = np.nan_to_num(release.intervals.upper - release.intervals.lower, nan=np.inf)
    return largest, np.argsort(-length, kind="stable")[:count]
