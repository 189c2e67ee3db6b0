"""How features are measured: what noise of given scales costs, proven from public quantities.

Feature j gets independent Gaussian noise of standard deviation ``s_j``. With ``v_j(x)`` its value
on a record x, replacing x by x' costs as much as sensitivity 1 and noise of scale 1 would where

    max over x, x' of  sum_j ((v_j(x) - v_j(x')) / s_j)^2                              (1)

is 1: the Renyi divergences of independent noises add up (Canonne, Kamath and Steinke 2020,
Theorem 14). Where x is added or removed, what x contributes takes the place of the difference:

    max over x of  sum_j (v_j(x) / s_j)^2                                              (2)

**Lemma, replace one.** `Strategy.sensitivity` bounds (1):

- a feature of indicators is 0 or 1, and ``(a - b)^2 <= a^2 + b^2`` for these;
- one of indicators and signs is 0, 1 or -1, and ``(a - b)^2 <= 2 a^2 + 2 b^2``: two records that
  both meet the indicators may differ in the sign, by 2;
- so all features with indicators add at most the loads (`loads`) of x and of x', with weights
  ``1 / s^2`` and ``2 / s^2``: at most twice the largest load;
- a feature of p signs only changes, by 2, when an odd number of its columns differ. If x and x'
  differ in a of the d binary columns, at most
  ``K_p(a) = sum over odd i of C(a, i) C(d - a, p - i)`` features of p signs change; if records
  have at most r 1s, a is at most 2r.

**Lemma, add or remove.** The square of a feature with indicators is 1 on a record that meets them
all, whatever the signs, and else 0; the square of a feature of signs only is 1. So (2) *is* the
largest load, with weights ``1 / s^2`` for features of indicators and for mixed ones alike, plus
``1 / s^2`` for every feature of signs only. A mixed feature costs half as much here as in (1):
there is no other record whose sign could be the opposite one. Of the features with the same columns
a record meets the indicators of one at most, so each set of columns adds its largest weight once
(`loads.Loads.proven`).

**Lemma, units.** Between neighbours by a unit of at most K rows (`dualquery.privacy.neighbours`)
the length is at most K times that of one step. Where a unit is replaced, steps of both kinds occur,
and the larger bound counts; loads have the weights of replacing a row, which are those of adding
one or larger.

A row whose load, with the weights of the relation, is above the limit has 0 for every feature with
indicators, and keeps its features of signs only. What a row adds to the sums is so a function of
this row alone, neighbours differ in what one row adds, and the bounds above hold for rows of either
kind: the load of one that is left out is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.neighbours import Neighbours
from dualquery.room.features import Features
from dualquery.room.loads import LightCounts, Loads

if TYPE_CHECKING:
    from dualquery.rows.protocol import Rows

Int64 = NDArray[np.int64]

_LEAST_SCALE, _LARGEST_SCALE = 1e-100, 1e100
"""Within these, no weight and no sum of weights that matters leaves double precision."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """How the features are measured."""

    features: Features
    scales: NDArray[np.float64]
    """Standard deviations of their noise, up to a common factor: ``(f,)``, in 1e-100 .. 1e100."""
    neighbours: Neighbours
    """What neighbouring tables differ in: loads and sensitivity depend on it."""
    limit: float | None = None
    """Rows whose load is above it are left out; None if that cannot be."""

    def __post_init__(self) -> None:
        scales = self.scales
        if (
            scales.dtype != np.float64
            or scales.shape != (len(self.features),)
            or not ((scales >= _LEAST_SCALE) & (scales <= _LARGEST_SCALE)).all()
        ):
            # A weight 1 / s^2 that is 0 would cost nothing, an infinite one hide all others.
            raise ValueError("every feature needs a scale from 1e-100 to 1e100")
        if self.limit is not None and not (math.isfinite(self.limit) and self.limit >= 0):
            raise ValueError(f"the limit on loads is {self.limit}")

    def sums(self, rows: Rows, threads: int) -> Int64:
        """Return the exact sums of the features over private rows, heavy ones left out."""
        if not len(self.features):
            return np.zeros(0, np.int64)
        monomials = self.features.monomials
        counts = rows.total(LightCounts(self.loads, self.limit), threads)
        return monomials.combine(counts, rows.n, len(self.features))

    @cached_property
    def loads(self) -> Loads:
        """The features with indicators, weighted by what they cost."""
        mixed = self.features.kinds[:, 1] > 0
        twice = mixed & self.neighbours.replaces
        return Loads(self.features, np.where(twice, 2.0, 1.0) / self.scales**2)

    @cached_property
    def sensitivity(self) -> float:
        """L2 sensitivity of the features over their scales, above 0 (see the module)."""
        largest = self._largest_load
        pure = self.features.kinds[:, 0] == 0
        squared = []
        if self.neighbours.replaces:
            squared.append(2.0 * largest + _signs_apart(self.features, self.scales))
        if not self.neighbours.rows_public:
            squared.append(largest + float((1.0 / self.scales[pure] ** 2).sum()))
        return self.neighbours.steps * math.sqrt(max(squared) * rounding_room(self.features))

    @property
    def _largest_load(self) -> float:
        proven = self.loads.proven()
        # A limit of lower precision must not lower the precision of the charge.
        return proven if self.limit is None else min(proven, float(self.limit))


def rounding_room(features: Features) -> float:
    """Return more than the rounding of two sums of as many positive terms, relatively, and 1."""
    return 1.0 + 2.0**-51 * (len(features) + 1000)


def _signs_apart(features: Features, scales: NDArray[np.float64]) -> float:
    """Bound what features of signs only add to (1)."""
    kinds = features.kinds
    pure = (kinds[:, 0] == 0) & (kinds[:, 1] > 0)
    if not pure.any():
        return 0.0
    weights = 1.0 / scales[pure] ** 2
    ways = kinds[pure, 1]
    columns = len(np.unique(features.bits[pure][features.bits[pure] >= 0]))
    most = features.domain.max_ones
    apart = np.arange((columns if most is None else min(columns, 2 * most)) + 1)
    changed = np.zeros(len(apart))
    for way in np.unique(ways).tolist():
        of_way = weights[ways == way]
        sets = [
            sum(math.comb(a, i) * math.comb(columns - a, way - i) for i in range(1, way + 1, 2))
            for a in apart.tolist()
        ]
        # There are no more than are measured, nor heavier ones.
        changed += np.minimum(np.array(sets, np.float64) * of_way.max(), of_way.sum())
    return 4.0 * float(changed.max())
