"""What two looks at a table tell of its columns, and what of the rest is worth a second one.

The first look measures the shares of all columns. From these alone follows how far a column or a
product of columns may still be from what is known; the second look measures what may be further off
than its noise. Post-processing of noisy numbers, but for `look`, which the curator charges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.independence import CORRELATION
from dualquery.mechanisms.matrix.shares import posterior
from dualquery.mechanisms.protocol import Budget
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate_noise import calibrate_rho
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.statistics import FeatureSums
from dualquery.room.strategy import Strategy

Float64 = NDArray[np.float64]


def look(curator: Curator, strategy: Strategy, scale: float, n: int) -> Float64:
    """Return noisy means of features; charged."""
    sums = curator.measure(FeatureSums(strategy), Gaussian(scale))
    return sums.astype(np.float64) / n


def plan_looks(
    sensitivity: float, parts: Sequence[float], budget: Budget
) -> tuple[tuple[GaussianNoise, ...], str]:
    """Return the schedule of looks that fill a budget, and the accountant that says so.

    Parameters
    ----------
    sensitivity
        Of what the first look measures. That of later ones is not known yet: their noise has scale
        1, so the sensitivity is the ratio to the scale.
    parts
        Each look's part of rho, in (0, 1); they add up to 1.
    budget
        What all may cost.
    """

    def schedule_of(rho: float) -> tuple[GaussianNoise, ...]:
        first, *later = (math.sqrt(2.0 * part * rho) for part in parts)
        return (
            GaussianNoise(sensitivity, sensitivity / first),
            *(GaussianNoise(ratio, 1.0) for ratio in later),
        )

    rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
    schedule = schedule_of(rho)
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    return schedule, accountant.name


def alike(features: Features, neighbours: Neighbours) -> Strategy:
    """Return how features are measured: all with the same noise, and no row left out."""
    return Strategy(features, np.ones(len(features)), neighbours)


def scale_for(sensitivity: float, ratio: float) -> float:
    """Return the scale of noise with a planned ratio of sensitivity to scale, or a little more."""
    # More than the division's rounding: the ledger compares exactly.
    return sensitivity / ratio * (1.0 + 2.0**-50)


@dataclass(frozen=True, eq=False)
class Shares:
    """Noisy shares of 1s at some bits, as one look measured them.

    Parameters
    ----------
    bits
        int32, shape ``(s,)``: the bits, all different.
    values, deviations
        float64, shape ``(s,)``: the shares, and the standard deviations of their noise.
    """

    bits: NDArray[np.int32]
    values: Float64
    deviations: Float64

    @staticmethod
    def of(singles: Features, noisy: Float64, deviations: Float64 | float) -> Shares:
        """Return the shares that noisy means of features of one factor tell.

        The contrast of a share p, among k values, is 1 - k p; of two values it is the sign.

        Parameters
        ----------
        singles
            Features of one factor, on different bits.
        noisy, deviations
            float64, one each: their noisy means, and the standard deviations of the noise.
        """
        unit = in_shares(singles)
        values = np.where(singles.contrasts[:, 0], (1.0 - noisy) * unit, noisy)
        return Shares(singles.bits[:, 0], values, unit * deviations)

    def posterior(self) -> tuple[Float64, Float64]:
        """Return posterior means and standard deviations."""
        return posterior(self.values, self.deviations)

    def combined(self, later: Shares) -> Shares:
        """Return what these and later shares, with independent noise, tell.

        Bits that only the later ones tell of come last.
        """
        again = np.isin(later.bits, self.bits)
        at = self.places(later.bits[again])
        values, deviations = self.values.copy(), self.deviations.copy()
        values[at], deviations[at] = by_precision(
            values[at], deviations[at], later.values[again], later.deviations[again]
        )
        return Shares(
            np.append(self.bits, later.bits[~again]),
            np.append(values, later.values[~again]),
            np.append(deviations, later.deviations[~again]),
        )

    def places(self, bits: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return where each of some of these bits stands among them."""
        order = np.argsort(self.bits)
        return order[np.searchsorted(self.bits, bits, sorter=order)]


def by_precision(
    values: Float64, deviations: Float64, others: Float64, noise: Float64
) -> tuple[Float64, Float64]:
    """Return estimates that weigh two by the inverses of their variances, and their deviations.

    Parameters
    ----------
    values, deviations
        float64: estimates, and their standard deviations.
    others, noise
        float64, of the same shape: independent estimates of the same, and theirs, above 0.
    """
    trust = deviations**2 / (deviations**2 + noise**2)
    return values + trust * (others - values), np.sqrt(trust) * noise


def singles_of(features: Features) -> NDArray[np.int64]:
    """Return the places of the features of one column."""
    return np.flatnonzero((features.bits >= 0).sum(axis=1) == 1)


def pairs_of(features: Features) -> NDArray[np.int64]:
    """Return the places of the features of two columns."""
    return np.flatnonzero((features.bits >= 0).sum(axis=1) == 2)


def in_shares(singles: Features) -> Float64:
    """Return by how much a share changes where the mean of its feature changes by 1.

    One over the number of its column's values (a contrast; 1/2 for a sign), or 1.
    """
    return np.where(singles.contrasts[:, 0], 1.0 / singles.values[:, 0], 1.0)


def means_of(singles: Features, shares: Float64) -> Float64:
    """Return the means of features of one factor whose bits have these shares of 1s."""
    return np.where(singles.contrasts[:, 0], 1.0 - shares / in_shares(singles), shares)


def expected_departures(
    features: Features, looked: Features, shares: Float64, uncertain: Float64
) -> Float64:
    """Return by how much each feature may differ from what the columns' shares say of it.

    A factor by what its share may be off; a product by its factors' standard deviations, times how
    large correlations are expected to be (`CORRELATION`).

    Parameters
    ----------
    features
        Products of some of the factors that were looked at.
    looked
        These factors.
    shares, uncertain
        float64, one for each of them: its share, and what that may be off.
    """
    factor = 1.0 / in_shares(looked)
    spread, off = np.zeros((2, features.domain.bits))
    spread[looked.bits[:, 0]] = factor * np.sqrt(shares * (1.0 - shares))
    off[looked.bits[:, 0]] = factor * uncertain
    bits = features.bits
    factors = (bits >= 0).sum(axis=1)
    expected: Float64 = np.where(bits >= 0, spread[bits], 1.0).prod(axis=1)
    expected *= CORRELATION * 0.5 ** np.maximum(factors - 2.0, 0.0)
    return np.where(factors == 1, off[bits[:, 0]], expected)


def worth_measuring(expected: Float64, noise_of_one: float) -> NDArray[np.int64]:
    """Return the features whose measurement tells more than its noise hides; increasing places.

    Parameters
    ----------
    expected
        float64, shape ``(f,)``: by how much each feature may differ from what is known, as a
        standard deviation.
    noise_of_one
        Standard deviation of the noise if one feature is measured; of m of them it is the root of
        m times as large.

    Returns
    -------
    int64: as many as possible of which each may differ by its noise, the most uncertain ones; the
    most uncertain feature if there are none.
    """
    order = np.argsort(-expected, kind="stable")
    noise = noise_of_one * np.sqrt(np.arange(1, len(order) + 1))
    worth = np.flatnonzero(expected[order] >= noise)
    return np.sort(order[: worth[-1] + 1 if len(worth) else 1])
