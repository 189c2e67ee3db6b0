"""Loss distributions on a grid that dominate an event: what the exact accountant convolves with.

Why each dominates, and why every rounding is upward: :mod:`dualquery.privacy.accountants.exact`.

Exact adaptive composition, computed backwards over the events and rounded upwards.

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
  "Optimal differential privacy composition for exponential mechanisms").
- *Gaussian noise*: a Gaussian shifted by sensitivity / scale, as drawn up to the slack of
  :mod:`dualquery.room.noise.gaussian`; noises alone compose to one Gaussian, whose curve has a
  closed form. *Pure mechanism*: the two-point pair with the losses +epsilon and -epsilon
  (randomised response). Dominating pairs compose adaptively (Zhu, Dong, Wang 2022, Theorem 10).

**How the supremum over t is taken.**

- *Few draws* (below `FEW_DRAWS`): the adversary is even allowed to choose t anew for every draw.
  Before a draw, ``V_new(y)`` is the largest value at y of the chord of V between a and a R, over
  a in [y / R, y], where R = exp(r). V is piecewise linear in y; while a and a R stay on one piece
  each, the value is a constant minus ``A a + B / a`` with A, B >= 0: the largest is in closed form.
- *Many draws*: [0, r] is cut into pieces [a, b]. Pairs with t in a piece are randomised functions
  of the two-point pair with the losses b and a - r, whose range is slightly wider. Pieces are fine
  near r/2, where the variance of the loss is largest, and grow outwards, where their wider range
  costs less than the distance from r/2 gains. The pointwise maximum of the s-fold privacy profiles
  of all pieces is again the profile of a pair (a maximum of convex functions is convex), which
  dominates every t: the event is one convolution with its loss distribution. That maximum picks
  the best position of the lattice of losses for each threshold, which adds about 1/s to the
  variance.

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
   s <= `_MOST_DRAWS` its error is below 1e-11. Ranges are widened by `RANGE_MARGIN`, profiles
   raised by `_PROFILE_MARGIN` (both relative) before use. A loss weight is a difference of
   neighbouring slopes of a profile, which differ by 1e-3 of themselves or more wherever the weight
   matters (the grid has 200 points in a deviation), so rounding costs below 1e-12 of it; a
   convolution adds 1e-13. A single draw interpolates V between neighbouring points, with an error
   below 1e-13; where exactly its best a lies matters in second order only. Over `_MOST_EVENTS`
   events all this stays below `_RESULT_MARGIN`, by which the result is raised.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.accountants.formulas import delta_from_rho, epsilon_from_rho
from dualquery.privacy.events import (
    GAUSSIAN_DELTA_GROWTH,
    GAUSSIAN_DELTA_SLACK,
    GAUSSIAN_EPSILON_SLACK,
    Event,
    GaussianNoise,
    LaplaceNoise,
    SampledQueries,
    Schedule,
    events_of,
    noise_alone,
    pure_epsilon,
    threshold_delta,
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


FEW_DRAWS = 32
"""Events with fewer draws are taken draw by draw, others at once; either way costs about 1% of the
step at 32 draws over a hundred events, and less away from there."""

_POINTS_PER_DEVIATION = 200
"""Grid points in one standard deviation of the total loss, sqrt(2 rho).

Chords add at most step^2 / 4 to the variance of one step of the recursion, step^2 / 6 on average:
over 200 steps 0.1% of the total. From `_STEPS_PER_GRID` steps on the grid becomes finer, so that
they never add more than 1%.
"""

_STEPS_PER_GRID = 2_400

_NEGLIGIBLE_SHARE = 1e-4
"""Share of delta that may go to infinite losses in all."""

_RESULT_MARGIN = 1e-6
_BISECTION = 1e-9
_SMALLEST_SHIFT = 1e-8
"""Below it the difference of two Gaussian tails loses more digits than `_RESULT_MARGIN` covers."""
_SMALLEST_RANGE = 1e-9
"""Below it a single draw's interpolation would lose more digits than `_RESULT_MARGIN` covers."""
_MOST_EVENTS = 5_000
_MOST_DRAWS = 1_000_000
_LARGEST_RHO = 50.0
_SMALLEST_DELTA = 1e-30
"""Below it zCDP answers: binomial tails this small are bounded, not summed."""


@dataclass(frozen=True, eq=False)
class _Grid:
    """Points ``m * step`` for m = first, ..., first + points - 1, with 0 among them."""

    step: float
    first: int
    points: int
    negligible: float  # probability that one event may move to an infinite loss

    @property
    def thresholds(self) -> NDArray[np.float64]:
        return self.step * np.arange(self.first, self.first + self.points, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ExactProfile:
    """An upper bound of delta(epsilon) of a schedule, for all epsilon at once.

    Between two points delta is at most the linear interpolation in ``exp(epsilon)``; beyond the
    last it is at most the last.
    """

    epsilons: NDArray[np.float64]  # (points,), increasing from 0 on
    deltas: NDArray[np.float64]  # (points,), decreasing

    def delta(self, epsilon: float) -> float:
        """Return the bound at ``epsilon`` >= 0."""
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


class ExactAccountant:
    """Optimal adaptive composition of bounded-range draws, Gaussian noise and pure mechanisms."""

    name: str = "exact"
    assumptions: str = (
        "Optimal adaptive composition by backward recursion over dominating pairs, rounded upwards "
        "(Dong, Durfee and Rogers 2020 for bounded-range draws; Balle and Wang 2018 for Gaussian "
        "noise; Zhu, Dong and Wang 2022, Theorem 10, for their composition)."
    )

    def supports(self, schedule: Schedule, delta: float) -> str | None:
        """Return why ``schedule`` cannot be accounted at ``delta``, or None if it can."""
        events = events_of(schedule)
        if delta <= threshold_delta(schedule):
            return "the recursion bounds a positive delta only; use advanced at delta = 0"
        if any(isinstance(e, SampledQueries) and e.draws > _MOST_DRAWS for e in events):
            return f"an event has more than the {_MOST_DRAWS:,} draws it is made for"
        if len(events) > _MOST_EVENTS:
            return f"{len(events)} events are more than the {_MOST_EVENTS} it is made for"
        if math.fsum(map(zcdp_rho, events)) > _LARGEST_RHO:
            return f"the schedule's rho is above {_LARGEST_RHO:g}, beyond its range of numbers"
        return None

    def epsilon(self, schedule: Schedule, delta: float) -> float:
        """Return epsilon of ``schedule`` at ``delta``."""
        delta -= threshold_delta(schedule)
        events = _costly(schedule)
        if not events:
            return 0.0
        slack = _slack(events)
        if delta < _SMALLEST_DELTA:
            return epsilon_from_rho(math.fsum(map(zcdp_rho, events)), delta)
        left = (delta - slack.delta) / slack.growth
        if all(isinstance(event, GaussianNoise) for event in events):
            return slack.epsilon + _gaussian_epsilon(_shift(events), left)
        reach = epsilon_from_rho(math.fsum(map(zcdp_rho, events)), left)
        found = _profile(events, reach, left).epsilon(left)
        return min(_pure(events), found + slack.epsilon)

    def delta(self, schedule: Schedule, epsilon: float) -> float:
        """Return delta of ``schedule`` at ``epsilon``."""
        return min(1.0, threshold_delta(schedule) + self._of_noise(schedule, epsilon))

    def _of_noise(self, schedule: Schedule, epsilon: float) -> float:
        """Return delta without that of thresholds."""
        events = _costly(schedule)
        if epsilon >= _pure(events):
            return 0.0
        bound = delta_from_rho(math.fsum(map(zcdp_rho, events)), epsilon)
        slack = _slack(events)
        if bound < _SMALLEST_DELTA:
            return bound
        left = max(epsilon - slack.epsilon, 0.0)
        # (e1, d) implies (e0, d + exp(e1) - exp(e0)) for e0 < e1.
        missing = max(slack.epsilon - epsilon, 0.0)
        short = math.exp(slack.epsilon) * -math.expm1(-missing)
        if all(isinstance(event, GaussianNoise) for event in events):
            found = _gaussian_delta(_shift(events), left)
        else:
            found = _profile(events, left, 0.01 * bound).delta(left)
        return min(bound, found * slack.growth + slack.delta + short)


@dataclass(frozen=True)
class _Slack:
    """What `dualquery.room.noise.gaussian` charges for drawing Gaussian noise on a grid."""

    epsilon: float
    growth: float
    delta: float


def _slack(events: tuple[Event, ...]) -> _Slack:
    noisy = sum(isinstance(event, GaussianNoise) for event in events)
    if noisy == 0:
        return _Slack(0.0, 1.0, 0.0)
    return _Slack(
        noisy * GAUSSIAN_EPSILON_SLACK,
        1.0 + 2.0 * noisy * GAUSSIAN_DELTA_GROWTH,
        GAUSSIAN_DELTA_SLACK,
    )


def _costly(schedule: Schedule) -> tuple[Event, ...]:
    return tuple(event for event in events_of(noise_alone(schedule)) if zcdp_rho(event) > 0.0)


def _shift(events: tuple[Event, ...]) -> float:
    """Return sensitivity / scale of the one Gaussian that Gaussian noises compose to."""
    shift = math.sqrt(2.0 * math.fsum(map(zcdp_rho, events))) * (1.0 + RANGE_MARGIN)
    return max(shift, _SMALLEST_SHIFT)


def _gaussian_delta(shift: float, epsilon: float) -> float:
    curve = float(gaussian_delta(shift, np.array([epsilon]))[0])
    return min(1.0, max(curve, 0.0) * (1.0 + _RESULT_MARGIN))


def _gaussian_epsilon(shift: float, delta: float) -> float:
    """Return an epsilon at which one Gaussian's curve is at most ``delta``, by bisection."""
    if _gaussian_delta(shift, 0.0) <= delta:
        return 0.0
    low, high = 0.0, epsilon_from_rho(0.5 * shift * shift, delta)
    while high - low > _BISECTION * high:
        middle = 0.5 * (low + high)
        if _gaussian_delta(shift, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _pure(events: tuple[Event, ...]) -> float:
    return math.fsum(map(pure_epsilon, events)) * (1.0 + RANGE_MARGIN)


def _profile(events: tuple[Event, ...], reach: float, delta: float) -> ExactProfile:
    """Run the recursion on a grid for epsilons up to ``reach`` and deltas down to ``delta``."""
    active = tuple(map(_raised, events))
    grid = _grid(active, reach, delta)
    values = -np.expm1(np.minimum(grid.thresholds, 0.0))
    known: dict[Event, Losses] = {}
    for event in reversed(active):
        if isinstance(event, SampledQueries) and event.draws < FEW_DRAWS:
            values = _before_single_draws(values, event, grid)
        else:
            if event not in known:
                known[event] = dominating_losses(event, grid.step, grid.negligible)
            values = _before_losses(values, known[event], grid)
    start = -grid.first
    return ExactProfile(
        grid.thresholds[start:], np.minimum(1.0, values[start:] * (1.0 + _RESULT_MARGIN))
    )


def _raised(event: Event) -> Event:
    """Return an event of sampled queries with its range raised to `_SMALLEST_RANGE`: no cheaper."""
    if isinstance(event, SampledQueries):
        return replace(event, range=max(event.range, _SMALLEST_RANGE))
    return event


def _grid(events: tuple[Event, ...], reach: float, delta: float) -> _Grid:
    rho = math.fsum(map(zcdp_rho, events))
    deviation = math.sqrt(2.0 * rho)
    steps = sum(
        event.draws if isinstance(event, SampledQueries) and event.draws < FEW_DRAWS else 1
        for event in events
    )
    step = deviation / (_POINTS_PER_DEVIATION * math.sqrt(max(1.0, steps / _STEPS_PER_GRID)))
    # V(last) stands for all larger thresholds: there it must be far below delta.
    far = rho + deviation * math.sqrt(2.0 * math.log(1e6 / delta))
    last = math.ceil(min(max(far, reach + deviation), _pure(events)) / step) + 1
    first = -math.ceil(min(4.0 * deviation, _pure(events)) / step) - 1
    return _Grid(step, first, last - first + 1, _NEGLIGIBLE_SHARE * delta / len(events))


def _before_single_draws(
    values: NDArray[np.float64], event: SampledQueries, grid: _Grid
) -> NDArray[np.float64]:
    """Return V before an event from V after it, t chosen anew for each draw."""
    from dualquery.privacy.accountants.exact_kernels import best_single_draw

    width = event.range * (1.0 + RANGE_MARGIN)
    padded = np.empty(grid.points + 2 * (math.ceil(width / grid.step) + 2))
    for _ in range(event.draws):
        before = np.empty_like(values)
        best_single_draw(values, grid.step, width, before, padded)
        values = before
    return values


def _before_losses(values: NDArray[np.float64], losses: Losses, grid: _Grid) -> NDArray[np.float64]:
    """Return V before an event from V after it and the loss distribution that dominates it."""
    from dualquery.privacy.accountants.exact_kernels import expect

    before = np.empty_like(values)
    padded = np.empty(grid.points + len(losses.weights) - 1)
    expect(values, grid.step, losses.weights, losses.first, losses.infinite, before, padded)
    return before
