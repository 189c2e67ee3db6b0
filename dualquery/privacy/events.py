"""What a private run releases, as a list of events fixed before any private value is read.

An *event* is one differentially private release; a *schedule* is the tuple of events of a run in
their order. What an event releases may depend on everything released before it (adaptive
composition), but its cost may not: the schedule is public. Events carry no arithmetic beyond their
own parameters; :mod:`dualquery.privacy.accountants.choice` turns a schedule into a guarantee.
"""

import math
from dataclasses import dataclass
from typing import Any

from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError

WEIGHT_ERROR = 2.0**-44
"""Largest relative error, as a log-ratio, of the integer weight of a query.

The sampler draws exactly from integer weights, and each integer weight is within a factor
``exp(+-WEIGHT_ERROR)`` of the real weight that multiplicative weights defines:
`dualquery.room.weights` adds up the roundings of an 80-bit weight and stays below it. The charge
is far below every range that a useful schedule has.
"""

RANGE_SLACK = 4.0 * WEIGHT_ERROR
"""Added to the range of every sampled query to pay for `WEIGHT_ERROR`.

The log-ratio of one query's weights on two neighbouring data sets moves by at most two errors, and
the range is the difference of two such log-ratios (the normalising constants cancel).
"""

GAUSSIAN_EPSILON_SLACK = 2.0**-35
"""Added to epsilon for every event of Gaussian noise: the lemma is in
`dualquery.room.noise.gaussian`."""

GAUSSIAN_DELTA_GROWTH = 2.0**-49
"""Relative growth of delta for every event of Gaussian noise, by the same lemma."""

GAUSSIAN_DELTA_SLACK = 1e-300
"""Added to delta once, by the same lemma."""


@dataclass(frozen=True)
class SampledQueries:
    """Independent draws from one exponential mechanism of bounded range.

    The draws of one event come from the same distribution; the distribution of the next event may
    depend on them. ``range``, finite, >= 0, is the largest difference, over outcomes, of the
    log-ratio of the probabilities that two neighbouring data sets give to an outcome (Dong, Durfee,
    Rogers 2020); ``draws`` >= 1.
    """

    range: float
    draws: int

    def __post_init__(self) -> None:
        _require_finite("the range of a sampled query", self.range)
        _require_count("the number of draws", self.draws)


@dataclass(frozen=True)
class GaussianNoise:
    """A vector released with independent Gaussian noise in every coordinate.

    The noise is drawn by `dualquery.room.noise.gaussian`, from the discrete Gaussian on a fine
    grid. Its cost in concentrated differential privacy is that of the continuous Gaussian (Canonne,
    Kamath, Steinke 2020, Theorem 14); its (epsilon, delta) curve is that of the continuous one up
    to a slack, which `exact` charges. ``sensitivity`` >= 0 is the largest Euclidean distance
    between the vectors of two neighbouring data sets, ``scale`` > 0 the noise's deviation.
    """

    sensitivity: float
    scale: float

    def __post_init__(self) -> None:
        _require_finite("the sensitivity of Gaussian noise", self.sensitivity)
        require_positive("the scale of Gaussian noise", self.scale)


@dataclass(frozen=True)
class LaplaceNoise:
    """A mechanism of pure ``epsilon``-differential privacy, such as Laplace or geometric noise.

    Nothing but the pure guarantee is used of it; finite, >= 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _require_finite("the epsilon of Laplace noise", self.epsilon)


@dataclass(frozen=True)
class RandomizedReport(LaplaceNoise):
    """Every record reports one column by randomized response; accounted by its pure epsilon."""


@dataclass(frozen=True)
class ThresholdedCounts:
    """Counts with Gaussian noise; those of values that nobody knew are cut by a threshold.

    ``delta``-approximately rho-zCDP, rho being that of the noise: the lemma is in
    `dualquery.room.learning`. It composes by adding both (Bun and Steinke 2016, Section 8).
    ``sensitivity`` and ``scale`` are as of `GaussianNoise`, ``delta`` > 0 the chance, at most, that
    a value is published which only one of two neighbours has.
    """

    sensitivity: float
    scale: float
    delta: float

    def __post_init__(self) -> None:
        _ = self.noise
        require_positive("the delta of a threshold", self.delta)

    @property
    def noise(self) -> GaussianNoise:
        """What it costs besides its delta."""
        return GaussianNoise(self.sensitivity, self.scale)


Event = SampledQueries | GaussianNoise | LaplaceNoise | ThresholdedCounts


@dataclass(frozen=True)
class GameSchedule:
    """DualQuery (Gaboardi et al. 2014, Algorithm 1) with a constant number of samples and step."""

    rounds: int  # T: records that the data player plays, >= 1
    samples: int  # s: queries sampled in each round after the first, >= 1
    step: float  # eta: step of multiplicative weights; finite, > 0
    n: int  # private records, or the public number that stands in for them; >= 2
    neighbours: Neighbours = Neighbours.REPLACE_ONE  # what neighbouring data sets differ in

    def __post_init__(self) -> None:
        _require_count("the number of rounds", self.rounds)
        _require_count("the number of samples a round", self.samples)
        require_positive("the step", self.step)
        if self.n < 2:
            raise BadInputError(f"The number of records is {self.n}; at least 2 are needed.")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters for a release, JSON-able."""
        return {"rounds": self.rounds, "samples": self.samples, "eta": self.step}

    def events(self) -> tuple[Event, ...]:
        """Return the private draws of rounds 2 to T; round 1 reads nothing private.

        In round 1 the weights are uniform, so a query cancels its complement and a public record
        is a best response. Before round t the log-weight of a query has gathered
        ``step * (q(D) - q(x))`` from t - 1 records x, and its complement the negative. Replacing
        one of n records moves q(D) by at most 1/n either way, so log-weights move by at most
        ``step * (t - 1) / n`` up or down and the range is twice that. Adding or removing one moves
        them by half as much (see `dualquery.room.weights`), a unit as often as it has rows.
        """
        each = self.neighbours.furthest(2.0, 1.0)
        return tuple(
            SampledQueries(each * self.step * played / self.n + RANGE_SLACK, self.samples)
            for played in range(1, self.rounds)
        )


_EVENTS = (SampledQueries, GaussianNoise, LaplaceNoise, RandomizedReport, ThresholdedCounts)

Schedule = GameSchedule | tuple[Event, ...]
"""A whole run: DualQuery's own parameters, or any tuple of events in their order."""


def events_of(schedule: Schedule) -> tuple[Event, ...]:
    """Return the events of ``schedule`` in their order.

    `TypeError` if the schedule or an event is of a derived type, which could be priced as one thing
    and charged as another.
    """
    if type(schedule) not in (tuple, GameSchedule):
        raise TypeError(f"{type(schedule).__name__} is no schedule: give a tuple of events")
    events = schedule if isinstance(schedule, tuple) else schedule.events()
    for event in events:
        if type(event) not in _EVENTS:
            raise TypeError(f"{type(event).__name__} is no event that an accountant knows")
    return events


def threshold_delta(schedule: Schedule) -> float:
    """Return the sum of the deltas of all thresholds, rounded up: 0 without any.

    If each law is ``(1 - d) P' + d P''``, and (e, delta) holds for the P', then (e, delta + d)
    holds for the whole: every accountant subtracts it from delta and prices the noise for the rest.
    """
    deltas = [e.delta for e in events_of(schedule) if isinstance(e, ThresholdedCounts)]
    return math.nextafter(math.fsum(deltas), math.inf) if deltas else 0.0


def noise_alone(schedule: Schedule) -> Schedule:
    """Return a schedule with the noise of thresholded counts in their place."""
    if isinstance(schedule, GameSchedule):
        return schedule
    return tuple(e.noise if isinstance(e, ThresholdedCounts) else e for e in events_of(schedule))


def pure_epsilon(event: Event) -> float:
    """Return the pure (delta = 0) cost of ``event``; infinite for Gaussian noise.

    A draw of range r is r-differentially private: some outcome is at least as likely on either data
    set, so all log-ratios lie within r of 0.
    """
    match event:
        case SampledQueries(range=width, draws=draws):
            return width * draws
        case LaplaceNoise(epsilon=epsilon):
            return epsilon
        case GaussianNoise():
            return 0.0 if event.sensitivity == 0 else math.inf
        case ThresholdedCounts():
            return math.inf


def zcdp_rho(event: Event) -> float:
    """Return the cost of ``event`` in zero-concentrated differential privacy.

    A draw of range r costs r^2 / 8 (Cesar and Rogers 2021), Gaussian noise
    sensitivity^2 / (2 scale^2), a pure mechanism epsilon^2 / 2 (Bun and Steinke 2016); a threshold
    has its delta besides (`threshold_delta`).
    """
    match event:
        case SampledQueries(range=width, draws=draws):
            return draws * width * width / 8.0
        case LaplaceNoise(epsilon=epsilon):
            return epsilon * epsilon / 2.0
        case GaussianNoise() | ThresholdedCounts():
            return (event.sensitivity / event.scale) ** 2 / 2.0


def _require_finite(what: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise BadInputError(f"{what.capitalize()} is {value}; a finite number >= 0 is needed.")


def require_positive(what: str, value: float) -> None:
    """Raise `BadInputError` unless a parameter is finite and above 0."""
    if not (math.isfinite(value) and value > 0):
        raise BadInputError(f"{what.capitalize()} is {value}; a finite number > 0 is needed.")


def _require_count(what: str, value: int) -> None:
    if not value >= 1:  # NaN is refused, too
        raise BadInputError(f"{what.capitalize()} is {value}; a whole number >= 1 is needed.")
