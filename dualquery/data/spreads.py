"""How values lie in wide buckets, for a draft: without it a long tail would count as its middle."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualquery.data.buckets import as_written, simplest
from dualquery.data.schema.within import Rule, Within

_WIDE = 3.0
"""A bucket is wide if its one end is more than this many times its other end."""

_ENOUGH = 20
"""Values of a bucket that tell how they lie."""

_PARTS = (0.1, 0.3, 0.5, 0.7, 0.9)
_AROUND = 0.07


def spread(values: NDArray[np.float64], edges: Sequence[float], *, whole: bool) -> Within:
    """Return a rule for each bucket: its only value, or those of a wide one as five numbers.

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


def _within(values: NDArray[np.float64], low: float, high: float, last: float) -> NDArray[np.bool_]:
    """Return which values are in a bucket; the last one has its upper edge, too."""
    below = values <= high if high == last else values < high
    return (values >= low) & below


def _rule(some: NDArray[np.float64], low: float, high: float, *, whole: bool) -> Rule:
    single = whole and high - low == 1
    if not single and len(some) >= _ENOUGH and some.min() == some.max():
        return float(some[0])
    near, far = sorted((abs(low), abs(high)))
    if low * high <= 0 or far <= _WIDE * near:
        return "uniform"
    if len(some) < _ENOUGH:
        return "log-uniform" if low > 0 else "uniform"
    ends = np.quantile(some, [p + e for p in _PARTS for e in (-_AROUND, _AROUND)], method="nearest")
    return tuple(
        float(simplest(as_written(left), as_written(right), whole=whole))
        for left, right in zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True)
    )
