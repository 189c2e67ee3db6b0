"""Evidence: Gaussian sufficient statistics of what was measured, by feature.

Noise is split after the fact (data fission: Rasines and Young, Biometrika 110, 2023): with y of
variance ``s^2`` and independent z of the same variance, ``y + g z`` and ``y - z / g`` measure the
same mean independently, with variances ``(1 + g^2) s^2`` and ``(1 + 1 / g^2) s^2``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.estimates.intervals import LEVEL, Intervals, bounded_interval, gaussian_half_width
from dualquery.mechanisms.adaptive.expansion import ProductTerms, literals_of
from dualquery.mechanisms.adaptive.measurement import Measurement
from dualquery.mechanisms.adaptive.prior import posterior_shares
from dualquery.mechanisms.baselines.independent import to_distributions, uniform_probabilities
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features

Float64 = NDArray[np.float64]

HELD_BACK = 0.25
"""g^2: what is shown has (1 + g^2) times the noise variance."""

MANY = 128
"""Binary columns that are enough to estimate a prior of any shape. With fewer, mean errors on
public tables of 64 to 126 columns grew by a tenth."""


def scale_for(sensitivity: float, ratio: float) -> float:
    """Return the scale of noise with a planned ratio of sensitivity to scale, or a little more."""
    # More than the division's rounding: the ledger compares exactly.
    return sensitivity / ratio * (1.0 + 2.0**-50)


@dataclass(frozen=True, eq=False)
class Shares:
    """Noisy shares of 1s at some bits, all different: main effects; ``(s,)`` each."""

    bits: NDArray[np.int32]
    values: Float64
    deviations: Float64

    @staticmethod
    def of(products: ProductTerms, noisy: Float64, deviations: Float64) -> Shares:
        """Return the shares that single factors among noisy products determine, each bit's once."""
        alone = np.flatnonzero((products.bits >= 0).sum(axis=1) == 1)
        place = (products.bits[alone] >= 0).argmax(axis=1)
        constants, slopes = (each[alone, place] for each in products.linear())
        bits, first = np.unique(products.bits[alone, place], return_index=True)
        values = (noisy[alone] - constants) / slopes
        return Shares(bits, values[first], (deviations[alone] / np.abs(slopes))[first])

    def combined(self, later: Shares) -> Shares:
        """Return these and later shares, with independent noise; new bits come last."""
        new = ~np.isin(later.bits, self.bits)
        values = np.append(self.values, later.values[new])
        deviations = np.append(self.deviations, later.deviations[new])
        first = Shares(np.append(self.bits, later.bits[new]), values, deviations)
        at = first.places(later.bits[~new])
        later_values, noise = later.values[~new], later.deviations[~new]
        return Shares(first.bits, *_combined(values, deviations, at, later_values, noise))

    def places(self, bits: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return where each of some of these bits stands among them."""
        order = np.argsort(self.bits)
        return order[np.searchsorted(self.bits, bits, sorter=order)]

    def as_products(self, products: ProductTerms) -> tuple[NDArray[np.int64], Float64, Float64]:
        """Return the places of single factors of these bits, and what is known of their means."""
        known = np.isin(products.bits[:, 0], self.bits)
        alone = np.flatnonzero(((products.bits >= 0).sum(axis=1) == 1) & known)
        at = self.places(products.bits[alone, 0])
        means, slopes = products.part(alone).linear()
        means = (means + slopes * self.values[at, None])[:, 0]
        return alone, means, np.abs(slopes[:, 0]) * self.deviations[at]

    def shrunk(self, domain: Domain, planned: bool = True) -> Shares:
        """Return posterior means and their standard errors.

        Wider columns are shrunk towards equal shares, few binary ones towards their mean (James and
        Stein 1961; Efron and Morris, JASA 70, 1975); many have a prior of any shape (`prior`). Wide
        ones have it in units of equal shares, if they differ from these by more than noise does,
        and only in answers: plans by it measured columns too often.
        """
        values, deviations = self.values.copy(), self.deviations.copy()
        sizes = axis_sizes(domain)[domain.column_of_bit[self.bits]]
        for binary in (True, False):
            at = np.flatnonzero((sizes <= 2) == binary)
            free = len(at) - 1.0 if binary else (1.0 - 1.0 / sizes[at]).sum()
            if free <= 2:
                continue  # so few determine no prior
            noise, centre = deviations[at] ** 2, values[at].mean() if binary else 1.0 / sizes[at]
            least = noise.sum() / free
            variance = max(((values[at] - centre) ** 2).sum() / (free - 2.0) - least, 0.0)
            clear = variance > 2.0 * math.sqrt(2.0 / free) * least
            if len(at) >= MANY and (binary or (clear and not planned)):
                units = 1.0 if binary else sizes[at] / sizes[at].max()
                found, off = posterior_shares(values[at] * units, deviations[at] * units, 0.5)
                values[at], deviations[at] = found / units, off / units
            else:
                trust = variance / (variance + noise)
                values[at] = centre + trust * (values[at] - centre)
                deviations[at] = np.sqrt(trust * noise)
        return Shares(self.bits, values, deviations)

    def sparse(self) -> Shares:
        """Return posterior means and their standard errors where most shares are likely 0."""
        return Shares(self.bits, *posterior_shares(self.values, self.deviations, 1.0))

    def posterior(self, domain: Domain, planned: bool = True) -> tuple[Float64, Float64]:
        """Return `distributions` and `uncertain` of the shrunk shares."""
        found = self.shrunk(domain, planned)
        return found.distributions(domain), found.uncertain(domain)

    def uncertain(self, domain: Domain) -> Float64:
        """Return the deviations at all bits, 0 where none was measured: float64, ``(bits,)``."""
        placed = np.zeros(domain.bits)
        placed[self.bits] = self.deviations
        return placed

    def distributions(self, domain: Domain) -> Float64:
        """Return distributions of all columns: float64, ``(bits,)``.

        Values not measured share the rest of their column; columns not measured are uniform.
        """
        column, values = domain.column_of_bit, np.zeros(domain.bits)
        known = np.zeros(domain.bits, np.bool_)
        known[self.bits], values[self.bits] = True, self.values
        rest = np.maximum(1.0 - np.bincount(column, values)[column], 0.0)
        others = np.maximum(np.bincount(column, ~known)[column], 1)
        touched = np.bincount(column, known)[column] > 0
        rest = np.where(touched, rest / others, uniform_probabilities(domain))
        return to_distributions(domain, np.where(known, values, rest))


def _combined(
    values: Float64, deviations: Float64, at: NDArray[np.int64], others: Float64, noise: Float64
) -> tuple[Float64, Float64]:
    """Return estimates, some combined with others by the inverses of variances; and deviations."""
    values, deviations = values.copy(), deviations.copy()
    trust = deviations[at] ** 2 / (deviations[at] ** 2 + noise**2)
    values[at] += trust * (others - values[at])
    deviations[at] = np.sqrt(trust) * noise
    return values, deviations


def of_order(features: Features, *orders: int) -> NDArray[np.int64]:
    """Return the places of the features of some numbers of columns."""
    return np.flatnonzero(np.isin((features.bits >= 0).sum(axis=1), orders))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Noisy means of products that determine the answers: float64, shape ``(f,)`` each."""

    source: Measurement
    means: Float64
    deviations: Float64

    @cached_property
    def unbiased(self) -> Float64:
        """The answers that the means determine."""
        return self.source.answers(self.means)

    @cached_property
    def spread(self) -> Float64:
        """Their standard deviations."""
        return self.source.deviations(self.deviations)

    def intervals(self, workload: Workload) -> Intervals:
        """Return intervals of the true answers, which stand on these means alone."""
        source = self.source
        guesses = source.guesses(workload, self.means, self.deviations)
        ends = bounded_interval(self.unbiased, self.spread, 0.0, 1.0, guesses=guesses)
        return Intervals(*ends, source.basis, absent_row_answer=source.absent_row_answer)

    def split(self, generator: np.random.Generator) -> tuple[Evidence, Evidence]:
        """Return two with independent noise: one to show, and one with more noise to hold back."""
        noise, part = self.deviations * generator.standard_normal(len(self.means)), HELD_BACK**0.5
        shown, held_back = (
            Evidence(self.source, self.means + g * noise, math.hypot(1.0, g) * self.deviations)
            for g in (part, -1.0 / part)
        )
        return shown, held_back

    def combined(self, places: NDArray[np.int64], means: Float64, noise: Float64) -> Evidence:
        """Return the same with other noisy means of some of the products; float64, one a place."""
        found, deviations = _combined(self.means, self.deviations, places, means, noise)
        return replace(self, means=found, deviations=deviations)


def share_intervals(
    workload: Workload,
    looks: Sequence[Shares],
    neighbours: Neighbours,
    *,
    chosen_by: Shares | None = None,
) -> Intervals:
    """Return intervals of all queries, from the looks that measured their columns' shares.

    A conjunction holds on no more rows than each literal, and fails on no more than all together;
    the chances to miss a share add up to 1 - `LEVEL`. A look that decided whether its intervals are
    used is not among these if there is another. One that chose the queries (``chosen_by``) gives no
    lower ends: noise far below 0 makes it less likely to choose one, so upper ends hold.
    """
    domain = workload.domain
    bits, negated, possible = literals_of(workload)
    miss = (1.0 - LEVEL) / (len(looks) * workload.way)
    half = gaussian_half_width(1.0, miss)
    low, high = np.zeros(domain.bits), np.ones(domain.bits)
    for measured in looks:
        at = measured.bits
        shares = np.clip(measured.values, 0.0, 1.0)  # no interval is a single point
        if measured is not chosen_by:
            low[at] = np.maximum(low[at], shares - half * measured.deviations)
        high[at] = np.minimum(high[at], shares + half * measured.deviations)
    present = bits >= 0
    fails = np.where(present, np.where(negated, high[bits], 1.0 - low[bits]), 0.0)
    holds = np.where(present, np.where(negated, 1.0 - low[bits], high[bits]), 1.0)
    lower = np.where(possible, 1.0 - fails.sum(axis=1), 0.0)
    upper = np.where(possible, holds.min(axis=1), 0.0)
    if not neighbours.rows_public:
        # A noisy number of rows moves the share of a sign by half its error, one that was measured
        # itself by all of it, and `Intervals.for_total` allows for all of it once.
        halves = np.where(domain.has_two_values[bits], 1, 2)
        lower = np.where((present * halves).sum(axis=1) > 2, 0.0, lower)
    basis = "from the noise of the columns' shares: a query holds on no more rows than its rarest "
    return Intervals(np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0), basis + "literal")
