"""Bought means: the likely ones, and numbers within buckets that give the records these means.

All of it is post-processing of what was released, and costs no privacy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.numeric import ExampleNumbers, Numeric, quantile_of, shortened
from dualquery.data.schema.table import TableSchema
from dualquery.estimates.intervals import Intervals
from dualquery.estimates.means import BoughtMean, combined
from dualquery.questions.compiler import CompiledQuestion, ask
from dualquery.questions.syntax_tree import MEAN, Question
from dualquery.releases.answer.knowledge import Knowledge

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.releases.keep.folder import Release

Float64 = NDArray[np.float64]

_NUMBERS = 1_000  # that stand for a bucket
_STEEPEST = 100.0
"""Largest tilt: numbers of the widest bucket are within a hundredth of its length on average."""


def likely_mean(knowledge: Knowledge, bought: BoughtMean) -> float:
    """Return a bought mean, combined with the mean that measured buckets give where they do."""
    asked = ask(Question(MEAN, column=bought.column), knowledge.release.schema)
    assert isinstance(asked, CompiledQuestion)
    found, mean = knowledge.estimates([asked.numerator.likely]), bought.mean
    if asked.denominator is None and not isinstance(found, str) and found.spanned[0]:
        likely, deviation = found.values[0] + asked.nearest, np.sqrt(found.covariance[0, 0])
        mean = combined(bought, float(likely), float(deviation))
    interval = bought.interval(knowledge.base)
    return float(np.clip(mean, interval.lower[0], interval.upper[0]))


def means_of(release: Release) -> list[tuple[str, float, Intervals]]:
    """Return each column whose mean was bought, its `likely_mean`, and its interval."""
    knowledge = Knowledge(release)
    return [(bought.column, likely_mean(knowledge, bought), bought.interval(knowledge.base))
            for bought in release.means]  # fmt: skip


def calibrated_schema(release: Release) -> Schema:
    """Return the schema by which a release's records and answers read the numbers in buckets.

    Where a mean was bought, a number x of its column becomes ``exp(t x)`` times as frequent in its
    bucket as the schema says, with one t for all buckets, such that the records have the mean (but
    for an order that moves them). Of all ways to bring a mean about with given shares of the
    buckets, this has the least information relative to the schema's rules (Csiszár, "I-divergence
    geometry of probability distributions and minimization problems", Ann. Probability 3, 1975).
    """
    schema, records = release.schema, release.records
    if records is None or not isinstance(schema, TableSchema):
        return schema
    knowledge, columns = Knowledge(release), list(schema.columns)
    for bought in release.means:
        place, column = schema.column(bought.column)
        assert isinstance(column, Numeric)
        first = int(schema.domain.offsets[place])
        shares = records[:, first : first + column.buckets].mean(axis=0, dtype=np.float64)
        columns[place] = with_mean(column, shares, likely_mean(knowledge, bought))
    return replace(schema, columns=tuple(columns))


def with_mean(column: Numeric, shares: Float64, mean: float) -> Numeric:
    """Return a column whose numbers have a mean, or the nearest one that its buckets allow.

    ``shares``, float64 of shape ``(buckets,)``, are of the rows, in each bucket.
    """
    from scipy.optimize import brentq

    levels = (np.arange(_NUMBERS) + 0.5) / _NUMBERS
    buckets = [*zip(column.rules, column.bounds, strict=True)]
    numbers = np.array([[quantile_of(rule, column.places, *ends, level) for level in levels]
                        for rule, ends in buckets])  # fmt: skip
    widest = float(np.ptp(numbers, axis=1).max())
    if widest == 0:
        return column
    distances = (numbers - numbers.max(axis=1, keepdims=True)) / widest

    def weights(tilt: float) -> Float64:
        parts = np.exp(tilt * distances)
        return np.asarray(parts / parts.sum(axis=1, keepdims=True))

    def excess(tilt: float) -> float:
        return float(shares @ (weights(tilt) * numbers).sum(axis=1)) - mean

    if excess(-_STEEPEST) < 0 < excess(_STEEPEST):
        tilt = float(brentq(excess, -_STEEPEST, _STEEPEST))
    else:
        tilt = -_STEEPEST if excess(0.0) > 0 else _STEEPEST
    drawn: list[tuple[float, ...]] = []
    for (rule, ends), own, parts in zip(buckets, numbers, weights(tilt), strict=True):
        reached = parts.cumsum()
        if isinstance(rule, str):
            found = np.interp(levels, reached - parts / 2.0, own)
            found = np.rint(found) if column.integer else shortened(found, ends, column.decimals)
            drawn.append(ExampleNumbers(found.tolist()))
        else:
            found = own[np.searchsorted(reached, levels).clip(max=_NUMBERS - 1)]
            # An order may need a listed number that is drawn less than once in a thousand times.
            drawn.append((*found.tolist(), *np.setdiff1d(own, found).tolist()))
    return replace(column, within=tuple(drawn))
