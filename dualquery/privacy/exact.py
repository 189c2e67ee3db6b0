"""Exact adaptive composition, computed backwards over the events and rounded upwards.

**What is computed.** Let V(e) be the largest delta that an adversary can still reach when the
threshold that remains is e, that is the largest ``E_P[(1 - exp(e - loss))_+]`` over adaptive
choices of the events to come. After the last event ``V(e) = max(0, 1 - exp(e))``; before an event
``V_new(e) = sup over the event's pairs (P, Q) of E_P[V(e - loss)]``; before the first event
``delta(epsilon) = V(epsilon)``. As a function of ``y = exp(e)`` every V is convex and decreasing
with V(0) = 1: this holds for the last one, and is kept by averages over shifts of e and by suprema.

**Which pairs an event has.**

- *Draws of range r.* On neighbouring data sets the loss of an outcome lies in ``[t - r, t]`` for
  some t in [0, r]. Any such pair is a randomised function of the two-point pair with just the
  losses t and t - r (split each outcome between the two points in the unique way that keeps both
  of its probabilities; the splits sum to 1). Post-processing cannot increase
  ``E_P[V(e - loss)]``, an f-divergence for convex V, so the adversary may be taken to choose t,
  the same for all the s draws of the event, which are independent (Dong, Durfee, Rogers 2020,
  "Optimal differential privacy composition for exponential mechanisms", Section 3).
- *Gaussian noise*: a Gaussian shifted by sensitivity / scale. *Pure mechanism*: the two-point pair
  with the losses +epsilon and -epsilon (randomised response). Dominating pairs compose adaptively
  (Zhu, Dong, Wang 2022, Theorem 10).

**How the supremum over t is covered.** [0, r] is cut into pieces [a, b]. Pairs with t in a piece
are randomised functions of the two-point pair with the losses b and a - r, whose range is slightly
wider. Pieces are fine near r/2, where the variance of the loss is largest, and grow outwards, where
their wider range costs less than the distance from r/2 gains. V_new is the maximum over the pieces
of one convolution each. The pointwise maximum of the s-fold privacy profiles of all pieces is
itself the profile of a pair that dominates every t (a maximum of convex functions is convex); it
picks the best position of the lattice of losses for each threshold, which adds about 1/s to the
variance. So from `_MANY_DRAWS` draws on an event is a single convolution with that pair.

**Why every rounding is upward.**

1. *Grid.* Profiles and V are known at the points e = m h and taken to be linear in y between them:
   a chord lies above a convex function ("connect the dots", Doroshenko et al. 2022). The loss
   distribution of a chorded profile lives on the same grid, with weights that do not depend on e.
2. *Ends of a profile.* Right of its last point it stays constant: this probability of an infinite
   loss counts in full. Left of its first point it is the chord to 1 at y = 0.
3. *Ends of V.* Below the grid V is the chord from V(y = 0) = 1; above, its last value.
4. *Binomial tails* that are not summed are bounded by geometric series and added to the profile.
5. *Floating point.* V, profiles and loss weights are sums and products of positive terms, so errors
   are relative: no FFT, whose error would be relative to 1 and not to delta. Binomial terms are
   products of at most 13 sqrt(s) ratios out from the mode, and a profile sums as many: with
   s <= `_MOST_DRAWS` its error is below 1e-11. Ranges are widened by `_RANGE_MARGIN`, profiles
   raised by `_PROFILE_MARGIN` (both relative) before use. A loss weight is a difference of
   neighbouring slopes of a profile, which differ by 1e-3 of themselves or more wherever the weight
   matters (the grid has 200 points in a deviation), so rounding costs below 1e-12 of it; a
   convolution adds 1e-13. Over `_MOST_EVENTS` events all this stays below `_RESULT_MARGIN`, by
   which the result is raised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import (
    DiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    SampledQueries,
    Schedule,
    events_of,
    pure_epsilon,
    zcdp_rho,
)
from dualquery.privacy.zcdp import delta_from_rho, epsilon_from_rho

_POINTS_PER_DEVIATION = 200
"""Grid points in one standard deviation of the total loss, sqrt(2 rho).

Chords add at most step^2 / 4 to the variance of one event, step^2 / 6 on average: over 200 events
0.1% of the total.
"""

_VARIANCE_TOLERANCE = 0.002
"""Relative excess variance of the widened two-point pair of the piece of [0, r] around r/2."""

_MANY_DRAWS = 64
"""From here on the pieces of an event share one loss distribution: about 0.4% of the step at 64,
0.05% at 500, for a cost that is 90 times smaller."""

_LEFT_DEVIATIONS = 6.0
"""Where profiles end on the left; less likely losses count as this one, which is larger."""

_NEGLIGIBLE_SHARE = 1e-4
"""Share of delta that may go to infinite losses in all."""

_RANGE_MARGIN = 1e-12
_PROFILE_MARGIN = 1e-10
_RESULT_MARGIN = 1e-6
_MOST_EVENTS = 5_000
_MOST_DRAWS = 1_000_000
_LARGEST_RHO = 50.0
_SMALLEST_DELTA = 1e-30
"""Below it zCDP answers: binomial tails this small are bounded, not summed."""


@dataclass(frozen=True)
class _Losses:
    """Distribution of a privacy loss on the grid; what is missing to 1 is at infinity."""

    weights: NDArray[np.float64]
    first: int
    infinite: float


@dataclass(frozen=True, eq=False)
class _Grid:
    """Points ``m * step`` for m = first, ..., first + points - 1, with 0 among them."""

    step: float
    first: int
    points: int
    negligible: float
    """Probability that one event may move to an infinite loss."""

    @property
    def thresholds(self) -> NDArray[np.float64]:
        return self.step * np.arange(self.first, self.first + self.points, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ExactProfile:
    """An upper bound of delta(epsilon) of a schedule, for all epsilon at once.

    Parameters
    ----------
    epsilons
        float64, shape ``(points,)``, increasing, >= 0, starting at 0.
    deltas
        float64, shape ``(points,)``, decreasing. Between two points delta is at most the linear
        interpolation in ``exp(epsilon)``; beyond the last it is at most the last.
    """

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]

    def delta(self, epsilon: float) -> float:
        """Return the bound at ``epsilon`` >= 0."""
        # Relative to the larger end of its cell, so that exp does not overflow.
        i = int(np.searchsorted(self.epsilons, epsilon, side="right"))
        if i == len(self.epsilons):
            return float(self.deltas[-1])
        left, right = self.epsilons[i - 1], self.epsilons[i]
        share = math.expm1(epsilon - left) / math.expm1(right - left)
        return float((1.0 - share) * self.deltas[i - 1] + share * self.deltas[i])

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at which the bound is at most ``delta``; infinite if none."""
        if self.deltas[0] <= delta:
            return 0.0
        if self.deltas[-1] > delta:
            return math.inf
        i = int(np.argmax(self.deltas <= delta))
        left, right = self.epsilons[i - 1], self.epsilons[i]
        share = (self.deltas[i - 1] - delta) / (self.deltas[i - 1] - self.deltas[i])
        return float(min(right, left + math.log1p(share * math.expm1(right - left))))


@dataclass(frozen=True)
class ExactAccountant:
    """Optimal adaptive composition of bounded-range draws, Gaussian noise and pure mechanisms."""

    name: str = "exact"
    assumptions: str = (
        "Optimal adaptive composition by backward recursion over dominating pairs, rounded upwards "
        "(Dong, Durfee and Rogers 2020 for bounded-range draws; Zhu, Dong and Wang 2022, "
        "Theorem 10, for their composition)."
    )

    def supports(self, schedule: Schedule, delta: float) -> str | None:
        """Return why ``schedule`` cannot be accounted at ``delta``, or None if it can."""
        events = events_of(schedule)
        if delta <= 0.0:
            return "the recursion bounds a positive delta only; use advanced at delta = 0"
        if any(isinstance(event, DiscreteGaussianNoise) for event in events):
            return "no dominating pair is proven for discrete Gaussian noise"
        if any(isinstance(e, SampledQueries) and e.draws > _MOST_DRAWS for e in events):
            return f"an event has more than the {_MOST_DRAWS:,} draws it is made for"
        if len(events) > _MOST_EVENTS:
            return f"{len(events)} events are more than the {_MOST_EVENTS} it is made for"
        if math.fsum(map(zcdp_rho, events)) > _LARGEST_RHO:
            return f"the schedule's rho is above {_LARGEST_RHO:g}, beyond its range of numbers"
        return None

    def epsilon(self, schedule: Schedule, delta: float) -> float:
        """Return epsilon of ``schedule`` at ``delta``."""
        events = events_of(schedule)
        rho = math.fsum(map(zcdp_rho, events))
        if rho == 0.0:
            return 0.0
        reach = epsilon_from_rho(rho, delta)
        return min(_pure(events), _profile(events, reach, delta).epsilon(delta))

    def delta(self, schedule: Schedule, epsilon: float) -> float:
        """Return delta of ``schedule`` at ``epsilon``."""
        events = events_of(schedule)
        if epsilon >= _pure(events):
            return 0.0
        rho = math.fsum(map(zcdp_rho, events))
        bound = delta_from_rho(rho, epsilon)
        if bound < _SMALLEST_DELTA:
            return bound
        return min(bound, _profile(events, epsilon, 0.01 * bound).delta(epsilon))


def _pure(events: tuple[Event, ...]) -> float:
    return math.fsum(map(pure_epsilon, events)) * (1.0 + _RANGE_MARGIN)


def _profile(events: tuple[Event, ...], reach: float, delta: float) -> ExactProfile:
    """Run the recursion on a grid for epsilons up to ``reach`` and deltas down to ``delta``."""
    from dualquery.privacy.exact_kernels import raise_to_expectation

    active = tuple(event for event in events if zcdp_rho(event) > 0.0)
    grid = _grid(active, reach, delta)
    values = -np.expm1(np.minimum(grid.thresholds, 0.0))
    candidates: dict[Event, tuple[_Losses, ...]] = {}
    for event in reversed(active):
        if event not in candidates:
            candidates[event] = _candidates(event, grid)
        expected = np.zeros(grid.points)
        for losses in candidates[event]:
            padded = np.empty(2 * grid.points + len(losses.weights) - 1)
            raise_to_expectation(
                values, grid.step, losses.weights, losses.first, losses.infinite, expected, padded
            )
        values = expected
    start = -grid.first
    return ExactProfile(
        grid.thresholds[start:], np.minimum(1.0, values[start:] * (1.0 + _RESULT_MARGIN))
    )


def _grid(events: tuple[Event, ...], reach: float, delta: float) -> _Grid:
    rho = math.fsum(map(zcdp_rho, events))
    deviation = math.sqrt(2.0 * rho)
    step = deviation / _POINTS_PER_DEVIATION
    # V(last) stands for all larger thresholds: there it must be far below delta.
    far = rho + deviation * math.sqrt(2.0 * math.log(1e6 / delta))
    last = math.ceil(min(max(far, reach + deviation), _pure(events)) / step) + 1
    first = -math.ceil(min(4.0 * deviation, _pure(events)) / step) - 1
    return _Grid(step, first, last - first + 1, _NEGLIGIBLE_SHARE * delta / len(events))


def _candidates(event: Event, grid: _Grid) -> tuple[_Losses, ...]:
    """Return loss distributions, one of which dominates every pair that ``event`` can have."""
    match event:
        case SampledQueries(draws=draws):
            pieces = len(_PIECE_EDGES) - 1
            group = 1 if draws < _MANY_DRAWS else pieces
            return tuple(
                _sampled_losses(event, _PIECE_EDGES[start : start + group + 1], grid)
                for start in range(0, pieces, group)
            )
        case LaplaceNoise(epsilon=epsilon):
            profile, first = _empty_profile(event, grid)
            _raise(profile, first, grid, 1, epsilon * (1.0 + _RANGE_MARGIN), epsilon)
            return (_losses(profile, first, grid),)
        case GaussianNoise(sensitivity=sensitivity, scale=scale):
            profile, first = _empty_profile(event, grid)
            points = grid.step * np.arange(first, first + len(profile))
            curve = gaussian_delta(sensitivity / scale, np.abs(points))
            # delta(-e) - (1 - exp(-e)) = exp(-e) delta(e) for a symmetric pair.
            profile[:] = np.where(points < 0, np.exp(points), 1.0) * curve
            return (_losses(profile, first, grid),)
        case DiscreteGaussianNoise():
            raise AssertionError("supports() refuses discrete Gaussian noise")


def _sampled_losses(event: SampledQueries, edges: NDArray[np.float64], grid: _Grid) -> _Losses:
    """Dominate all pairs of ``event`` with t / range between the first and last of ``edges``."""
    profile, first = _empty_profile(event, grid)
    width = event.range * (1.0 + _RANGE_MARGIN)
    for left, right in pairwise(edges):
        _raise(profile, first, grid, event.draws, width * right, width * (1.0 - left))
    return _losses(profile, first, grid)


def _raise(
    profile: NDArray[np.float64], first: int, grid: _Grid, draws: int, high: float, low: float
) -> None:
    """Raise ``profile`` to that of independent two-point pairs with the losses high and -low."""
    from dualquery.privacy.exact_kernels import raise_to_two_point

    raise_to_two_point(draws, high, -low, grid.step, first, profile, np.empty(draws + 1))


def _empty_profile(event: Event, grid: _Grid) -> tuple[NDArray[np.float64], int]:
    """Return zeros and the first grid point for the profile of ``event``, wide enough for it."""
    rho = zcdp_rho(event)
    deviation = math.sqrt(2.0 * rho)
    most = pure_epsilon(event)
    high = min(most, rho + deviation * math.sqrt(2.0 * math.log(1.0 / grid.negligible)))
    low = min(most, rho + deviation * _LEFT_DEVIATIONS)
    first, last = -math.ceil(low / grid.step) - 1, math.ceil(high / grid.step) + 1
    return np.zeros(last - first + 1), first


def _losses(profile: NDArray[np.float64], first: int, grid: _Grid) -> _Losses:
    from dualquery.privacy.exact_kernels import profile_to_losses

    profile *= 1.0 + _PROFILE_MARGIN
    weights = np.empty_like(profile)
    profile_to_losses(profile, first, grid.step, weights)
    return _Losses(weights, first, float(profile[-1]))


def piece_edges() -> NDArray[np.float64]:
    """Return the edges, from 0 to 1, of the pieces of t / range.

    A piece [a, b] right of 1/2 has the widened pair with losses b and a - 1, whose variance is
    close to ``b (1 - a)`` (in units of range^2) against 1/4 at the centre. With x = a - 1/2 pieces
    are as long as ``b (1 - a) <= (1 + tolerance) / 4 - x^2 / 2`` allows: the excess near the
    centre is the tolerance, and the outer pieces, whose skewness is larger, stay below it.

    Returns
    -------
    NDArray[np.float64]
        Shape ``(pieces + 1,)``, increasing, symmetric about 1/2.
    """
    half = 0.5 * (math.sqrt(1.0 + _VARIANCE_TOLERANCE) - 1.0)
    outward = [half]
    while outward[-1] < 0.5:
        x = outward[-1]
        length = (0.25 * _VARIANCE_TOLERANCE + 0.5 * x * x) / (0.5 - x)
        outward.append(min(0.5, x + length))
    right = np.array(outward)
    return np.concatenate((0.5 - right[::-1], 0.5 + right))


_PIECE_EDGES = piece_edges()


def gaussian_delta(shift: float, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return delta(epsilon) of Gaussian noise (Balle and Wang 2018, Theorem 8).

    Parameters
    ----------
    shift
        Sensitivity / scale, > 0.
    epsilons
        float64, any shape, >= 0.

    Returns
    -------
    NDArray[np.float64]
        ``Phi(-a) - exp(epsilon) Phi(-b)`` with a, b = epsilon / shift -+ shift / 2, written with
        the scaled complementary error function so that it is accurate far in the tail.
    """
    from scipy.special import erfcx

    a = epsilons / shift - 0.5 * shift
    b = epsilons / shift + 0.5 * shift
    scaled: NDArray[np.float64] = erfcx(a / math.sqrt(2.0)) - erfcx(b / math.sqrt(2.0))
    return 0.5 * np.exp(-0.5 * a * a) * scaled
