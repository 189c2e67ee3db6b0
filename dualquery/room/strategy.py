"""How features are measured: what noise of given scales costs, proven from public quantities.

Feature j gets independent Gaussian noise of standard deviation ``s_j``. With ``v_j(x)`` its value
on a record x, replacing x by x' costs as much as sensitivity 1 and noise of scale 1 would where

    max over x, x' of  sum_j ((v_j(x) - v_j(x')) / s_j)^2                              (1)

is 1: the Renyi divergences of independent noises add up (Canonne, Kamath and Steinke 2020,
Theorem 14). Where x is added or removed, what x contributes takes the place of the difference:

    max over x of  sum_j (v_j(x) / s_j)^2                                              (2)

**Lemma, replace one.** `Strategy.sensitivity` bounds (1):

- features of contrasts only (signs are contrasts) add what `sensitivity.contrasts` proves; their
  blocks are whole (`features.Features`) and of one scale;
- a feature of indicators is 0 or 1, and ``(a - b)^2 <= a^2 + b^2`` for these;
- one of indicators and signs is 0, 1 or -1, and ``(a - b)^2 <= 2 a^2 + 2 b^2``: two records that
  both meet the indicators may differ in the sign, by 2;
- so all features with indicators add at most the loads (`loads`) of x and of x', with weights
  ``1 / s^2`` and ``2 / s^2``: at most twice the largest load.

**Lemma, add or remove.** The square of a feature with indicators is 1 on a record that meets them
all, whatever the signs, and else 0. So (2) *is* the largest load, with weights ``1 / s^2`` for
features of indicators and for mixed ones alike, plus the squared lengths of the blocks of
contrasts, which are the same on every record. A mixed feature costs half as much here as in (1):
there is no other record whose sign could be the opposite one. Of the features with the same columns
a record meets the indicators of one at most, so each set of columns adds its largest weight once
(`loads.Loads.proven`).

**Lemma, units.** Between neighbours by a unit of at most K rows (`dualquery.privacy.neighbours`)
the length is at most K times that of one step. Where a unit is replaced, steps of both kinds occur,
and the larger bound counts; loads have the weights of replacing a row, which are those of adding
one or larger.

A row whose load, with the weights of the relation, is above the limit has 0 for every feature with
indicators, and keeps its features of contrasts only. What a row adds to the sums is so a function
of this row alone, neighbours differ in what one row adds, and the bounds above hold for rows of
either kind: the load of one that is left out is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.neighbours import Neighbours
from dualquery.room.features import Features, Monomials
from dualquery.room.loads import LightCounts, Loads
from dualquery.room.sensitivity.contrasts import largest_distance, squared_lengths

if TYPE_CHECKING:
    from dualquery.rows.protocol import Rows

Int64 = NDArray[np.int64]

_LEAST_SCALE, _LARGEST_SCALE = 1e-100, 1e100
"""Within these, no weight and no sum of weights that matters leaves double precision."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """How the features are measured."""

    features: Features
    scales: NDArray[np.float64]  # (f,): deviations of their noise, up to a factor; 1e-100 .. 1e100
    neighbours: Neighbours  # what neighbouring tables differ in
    limit: float | None = None  # rows whose load is above it are left out; None if that cannot be

    def __post_init__(self) -> None:
        scales = self.scales
        if (
            scales.dtype != np.float64
            or scales.shape != (len(self.features),)
            or not ((scales >= _LEAST_SCALE) & (scales <= _LARGEST_SCALE)).all()
        ):
            # A weight 1 / s^2 that is 0 would cost nothing, an infinite one hide all others.
            raise ValueError("every feature needs a scale from 1e-100 to 1e100")
        blocks = self.features.blocks
        if not np.array_equal(self._block_scales[blocks.of], scales[blocks.features]):
            raise ValueError("the features of a block have one scale")
        if self.limit is not None and not (math.isfinite(self.limit) and self.limit >= 0):
            raise ValueError(f"the limit on loads is {self.limit}")

    def sums(self, rows: Rows, threads: int) -> Int64:
        """Return the exact sums of the features over private rows, heavy ones left out."""
        sums = np.zeros(len(self.features), np.int64)
        parts = np.flatnonzero(self.features.kinds[:, 0] > 0), self.features.blocks.features
        light, every = (Monomials.of(self.features.part(part)) for part in parts)
        wanted = LightCounts(self.loads, self.limit, light.literals, every.literals)
        counts = np.split(rows.total(wanted, threads), [len(light.literals)])
        for part, monomials, counted in zip(parts, (light, every), counts, strict=True):
            sums[part] = monomials.combine(counted, rows.n, len(part))
        return sums

    @cached_property
    def loads(self) -> Loads:
        """The features with indicators, weighted by what they cost."""
        mixed = self.features.kinds[:, 1] > 0
        twice = mixed & self.neighbours.replaces
        return Loads(self.features, np.where(twice, 2.0, 1.0) / self.scales**2)

    @cached_property
    def sensitivity(self) -> float:
        """L2 sensitivity of the features over their scales, above 0 (see the module)."""
        blocks, domain = self.features.blocks, self.features.domain
        weights = 1.0 / self._block_scales**2
        squared = []
        if self.neighbours.replaces:
            apart = largest_distance(domain, blocks.columns, weights)
            squared.append(2.0 * self._largest_load + apart)
        if not self.neighbours.rows_public:
            lengths = weights * squared_lengths(domain, blocks.columns)
            squared.append(self._largest_load + float(lengths.sum()))
        return self.neighbours.steps * math.sqrt(max(squared) * rounding_room(self.features))

    @cached_property
    def _block_scales(self) -> NDArray[np.float64]:
        """The scale of each block."""
        blocks = self.features.blocks
        scales = np.empty(len(blocks.columns))
        scales[blocks.of] = self.scales[blocks.features]
        return scales

    @property
    def _largest_load(self) -> float:
        proven = self.loads.proven()
        # A limit of lower precision must not lower the precision of the charge.
        return proven if self.limit is None else min(proven, float(self.limit))


def rounding_room(features: Features) -> float:
    """Return more than the rounding of two sums of as many positive terms, relatively, and 1."""
    return 1.0 + 2.0**-51 * (len(features) + 1000)
