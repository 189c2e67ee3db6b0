"""Loss distributions on a grid that dominate an event: what the exact accountant convolves with.

Why each dominates, and why every rounding is upward: :mod:`dualquery.privacy.accountants.exact`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    SampledQueries,
    pure_epsilon,
    zcdp_rho,
)

RANGE_MARGIN = 1e-12
"""Relative widening of every range, over the rounding of losses and probabilities."""

_PROFILE_MARGIN = 1e-10
"""Relative raise of every profile, over the rounding of its sums."""

_VARIANCE_TOLERANCE = 0.002
"""Relative excess variance of the widened two-point pair of the piece of [0, r] around r/2."""

_LONGEST_PIECE = 0.01
"""Longest piece, as a share of [0, r], of an event of 32 draws; it grows as sqrt(draws)."""

_LEFT_DEVIATIONS = 6.0
"""Where profiles end on the left; less likely losses count as this one, which is larger."""


@dataclass(frozen=True, eq=False)
class Losses:
    """Distribution of a privacy loss on the points ``(first + i) * step`` of a grid."""

    weights: NDArray[np.float64]  # (points,), >= 0: the probability of each loss
    first: int  # number of the first grid point, < 0
    infinite: float  # probability of an infinite loss; all probabilities sum to 1


def dominating_losses(event: Event, step: float, negligible: float) -> Losses:
    """Return a loss distribution that dominates every pair that ``event``, of rho > 0, can have.

    ``step`` is the spacing of the grid; the probability ``negligible`` may move to an infinite
    loss.
    """
    profile, first = _empty_profile(event, step, negligible)
    match event:
        case SampledQueries(range=width, draws=draws):
            edges = np.array(piece_edges(draws))
            ends = (width * edges[1:], width * (1.0 - edges[:-1]))
            _raise(profile, first, step, draws, ends)
        case LaplaceNoise(epsilon=epsilon):
            _raise(profile, first, step, 1, (np.array([epsilon]), np.array([epsilon])))
        case GaussianNoise(sensitivity=sensitivity, scale=scale):
            points = step * np.arange(first, first + len(profile))
            curve = gaussian_delta(sensitivity / scale, np.abs(points))
            # delta(-e) - (1 - exp(-e)) = exp(-e) delta(e) for a symmetric pair.
            profile[:] = np.where(points < 0, np.exp(points), 1.0) * curve
    return _losses_of(profile * (1.0 + _PROFILE_MARGIN), first, step)


def _empty_profile(event: Event, step: float, negligible: float) -> tuple[NDArray[np.float64], int]:
    """Return zeros and the first grid point for the profile of ``event``, wide enough for it."""
    rho = zcdp_rho(event)
    deviation = math.sqrt(2.0 * rho)
    most = pure_epsilon(event)
    high = min(most, rho + deviation * math.sqrt(2.0 * math.log(1.0 / negligible)))
    low = min(most, rho + deviation * _LEFT_DEVIATIONS)
    first, last = -math.ceil(low / step) - 1, math.ceil(high / step) + 1
    return np.zeros(last - first + 1), first


def _raise(
    profile: NDArray[np.float64],
    first: int,
    step: float,
    draws: int,
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    """Raise ``profile`` to those of independent two-point pairs: losses ends[0], -ends[1] each."""
    from dualquery.privacy.accountants.exact_kernels import raise_to_two_points

    highs, lows = ends[0] * (1.0 + RANGE_MARGIN), -ends[1] * (1.0 + RANGE_MARGIN)
    raise_to_two_points(draws, highs, lows, step, first, profile, np.empty(draws + 1))


def _losses_of(profile: NDArray[np.float64], first: int, step: float) -> Losses:
    from dualquery.privacy.accountants.exact_kernels import profile_to_losses

    weights = np.empty_like(profile)
    profile_to_losses(profile, first, step, weights)
    return Losses(weights, first, float(profile[-1]))


@lru_cache(maxsize=64)
def piece_edges(draws: int) -> tuple[float, ...]:
    """Return the edges, from 0 to 1, of the pieces of t / range for an event of ``draws`` draws.

    A piece [a, b] right of 1/2 has the widened pair with losses b and a - 1, whose variance is
    close to ``b (1 - a)`` (in units of range^2) against 1/4 at the centre. With x = a - 1/2 pieces
    are as long as ``b (1 - a) <= (1 + tolerance) / 4 - 3 x^2 / 4`` allows: the excess near the
    centre is the tolerance, and the outer pieces, whose loss is more skewed, stay below it. The
    fewer the draws, the more skewness shows in the tails, so pieces are also limited in length.
    """
    longest = _LONGEST_PIECE * math.sqrt(draws / 32.0)
    half = 0.5 * (math.sqrt(1.0 + _VARIANCE_TOLERANCE) - 1.0)
    outward = [half]
    while outward[-1] < 0.5:
        x = outward[-1]
        length = (0.25 * _VARIANCE_TOLERANCE + 0.25 * x * x) / (0.5 - x)
        outward.append(min(0.5, x + min(length, longest)))
    return (*(0.5 - x for x in reversed(outward)), *(0.5 + x for x in outward))


def gaussian_delta(shift: float, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return delta of Gaussian noise at each epsilon >= 0 (Balle and Wang 2018, Theorem 8).

    ``Phi(-a) - exp(epsilon) Phi(-b)`` with a, b = epsilon / shift -+ shift / 2, where ``shift`` is
    sensitivity / scale > 0, written with the scaled complementary error function so that it is
    accurate far in the tail.
    """
    from scipy.special import erfcx

    a = epsilons / shift - 0.5 * shift
    b = epsilons / shift + 0.5 * shift
    scaled: NDArray[np.float64] = erfcx(a / math.sqrt(2.0)) - erfcx(b / math.sqrt(2.0))
    return 0.5 * np.exp(-0.5 * a * a) * scaled
