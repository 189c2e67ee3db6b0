"""How values lie in buckets, for a draft: without it a long tail would count as its middle, and the
45 hours that most people between 45 and 50 work as any of five.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.buckets import as_written, simplest
from dualquery.data.schema.columns import MOST_DECIMALS, Numeric
from dualquery.data.schema.within import Rule, Within
from dualquery.runtime.errors import BadInputError

_WIDE = 3.0
"""A bucket is wide if its one end is more than this many times its other end."""

_ENOUGH = 20
"""Values of a bucket that tell how they lie."""

_PARTS = (0.1, 0.3, 0.5, 0.7, 0.9)
_AROUND = 0.07

_UNEVEN = 0.2
"""Values lie unevenly if a cut of their bucket would be wrong by more than this part of them: twice
what the five numbers that say how they lie may be wrong by."""

_BY_CHANCE = 1.63
"""Even values are as uneven as this over the root of their number once in a hundred times
(Kolmogorov's test)."""


def spread(values: NDArray[np.float64], edges: Sequence[float], *, whole: bool) -> Within:
    """Return a rule for each bucket: its only value, or five numbers where even ones would mislead.

    They would in a bucket that is wide, or in which values heap.

    Parameters
    ----------
    values
        float64, finite: the values of the column, or a sample of them.
    edges
        Of the buckets, increasing.
    whole
        Whether the values are whole numbers.

    Returns
    -------
    ``"uniform"`` if every bucket is.
    """
    rules = tuple(
        _rule(values[_within(values, low, high, edges[-1])], low, high, whole=whole)
        for low, high in itertools.pairwise(edges)
    )
    return "uniform" if set(rules) == {"uniform"} else rules


def with_decimals(column: Numeric, values: NDArray[np.float64]) -> Numeric:
    """Return the column with the decimals that values have: float64, finite.

    As it is, if they are whole numbers or have more decimals than people write.
    """
    if not column.integer:
        for decimals in range(1, MOST_DECIMALS + 1):
            if np.array_equal(np.round(values, decimals), values):
                with contextlib.suppress(BadInputError):  # narrower buckets have more of them
                    return replace(column, decimals=decimals)
    return column


def _within(values: NDArray[np.float64], low: float, high: float, last: float) -> NDArray[np.bool_]:
    """Return which values are in a bucket; the last one has its upper edge, too."""
    below = values <= high if high == last else values < high
    return (values >= low) & below


def _rule(some: NDArray[np.float64], low: float, high: float, *, whole: bool) -> Rule:
    single = whole and high - low == 1
    if not single and len(some) >= _ENOUGH and some.min() == some.max():
        return float(some[0])
    near, far = sorted((abs(low), abs(high)))
    wide = low * high > 0 and far > _WIDE * near
    if len(some) < _ENOUGH:
        return "log-uniform" if wide and low > 0 else "uniform"
    if not wide and _unevenness(some, low, high, whole) <= max(
        _UNEVEN, _BY_CHANCE / math.sqrt(len(some))
    ):
        return "uniform"
    ends = np.quantile(some, [p + e for p in _PARTS for e in (-_AROUND, _AROUND)], method="nearest")
    return tuple(
        float(simplest(as_written(left), as_written(right), whole=whole))
        for left, right in zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True)
    )


def _unevenness(some: NDArray[np.float64], low: float, high: float, whole: bool) -> float:
    """Return the largest part by which a bucket's values below a cut differ from even ones."""
    step = 1.0 if whole else 0.0
    distinct, counts = np.unique(some, return_counts=True)
    even = (distinct - low + step) / (high - low)
    upto = np.cumsum(counts) / len(some)
    above, below = upto - even, upto - counts / len(some) - (even - step / (high - low))
    return float(max(np.abs(above).max(), np.abs(below).max()))
