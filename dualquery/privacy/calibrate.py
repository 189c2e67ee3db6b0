"""From a budget to parameters: the largest step, samples or rounds, the smallest noise.

Every answer is on the safe side: the epsilon of the schedule that is returned was computed and is
at most the budget's. Only public quantities enter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from dualquery.privacy.accountants.choice import AUTO, Accountant, choices
from dualquery.privacy.accountants.zcdp import rho_for, rho_of
from dualquery.privacy.budget import check_budget
from dualquery.privacy.events import RANGE_SLACK, GameSchedule, Neighbours
from dualquery.runtime.errors import BadInputError

_STEP_TOLERANCE = 1e-4
"""Relative distance of a calibrated step from the largest one."""

_LARGEST_COUNT = 10**6
"""Samples and rounds beyond this are not searched."""

_SECANT_CALLS = 12
"""A search bisects after this many calls."""


@dataclass(frozen=True)
class Calibration:
    """Parameters that fit a budget.

    Parameters
    ----------
    schedule
        DualQuery's parameters.
    accountant
        Name of the accountant that proves the guarantee.
    epsilon
        Its epsilon for ``schedule`` at the delta asked for; at most the epsilon asked for.
    """

    schedule: GameSchedule
    accountant: str
    epsilon: float


def calibrate_step(
    epsilon: float,
    delta: float,
    n: int,
    rounds: int,
    samples: int,
    accountant: str = AUTO,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> Calibration:
    """Return the largest step eta, to one part in 10^4, that fits the budget.

    Parameters
    ----------
    epsilon, delta, n
        The budget (see `dualquery.privacy.budget.check_budget`) and the number of records.
    rounds
        T, >= 2: one round reads nothing private, so any step would fit.
    samples
        s, >= 1.
    accountant
        Name of an accountant, or ``"auto"`` for the one that allows the largest step.
    neighbours
        What neighbouring data sets differ in.

    Raises
    ------
    BadInputError
        If a parameter is out of range, or no step fits; the message says which bound failed.
    """
    check_budget(epsilon, delta, n)
    if rounds == 1:
        raise BadInputError("One round reads nothing private, so every step fits; set the step.")
    shape = GameSchedule(rounds, samples, 1.0, n, neighbours)

    def with_step(step: float) -> GameSchedule:
        return replace(shape, step=step)

    # Below this the charge for the rounding of the weights is no longer small beside the range.
    smallest = with_step(n * RANGE_SLACK)

    def search(bound: Accountant) -> Calibration:
        target = _Target(bound, epsilon, delta)
        least = target.require_fit(smallest, "step")
        guess = _zcdp_ratio(with_step(1.0), epsilon, delta) ** 0.5
        step, cost = _largest_real(
            lambda step: target.epsilon_of(with_step(step)), epsilon, (smallest.step, least), guess
        )
        return Calibration(with_step(step), bound.name, cost)

    return _best_of(accountant, delta, search, lambda found: found.schedule.step)


def calibrate_samples(
    epsilon: float,
    delta: float,
    n: int,
    rounds: int,
    step: float,
    accountant: str = AUTO,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> Calibration:
    """Return the largest number of samples a round that fits the budget.

    Parameters
    ----------
    epsilon, delta, n
        The budget and the number of records.
    rounds
        T, >= 2: one round reads nothing private, so any number of samples would fit.
    step
        eta, > 0.
    accountant
        Name of an accountant, or ``"auto"`` for the one that allows most samples.
    neighbours
        What neighbouring data sets differ in.

    Raises
    ------
    BadInputError
        If a parameter is out of range, or one sample a round does not fit.
    """
    check_budget(epsilon, delta, n)
    if rounds == 1:
        raise BadInputError("One round reads nothing private, so any samples fit; set the samples.")
    smallest = GameSchedule(rounds, 1, step, n, neighbours)

    def with_samples(samples: int) -> GameSchedule:
        return replace(smallest, samples=samples)

    def search(bound: Accountant) -> Calibration:
        target = _Target(bound, epsilon, delta)
        least = target.require_fit(smallest, "samples")
        guess = _zcdp_ratio(smallest, epsilon, delta)
        samples, cost = _largest_integer(
            lambda samples: target.epsilon_of(with_samples(samples)), epsilon, (1, least), guess
        )
        return Calibration(with_samples(samples), bound.name, cost)

    return _best_of(accountant, delta, search, lambda found: found.schedule.samples)


def calibrate_rounds(
    epsilon: float,
    delta: float,
    n: int,
    samples: int,
    step: float,
    accountant: str = AUTO,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> Calibration:
    """Return the largest number of rounds that fits the budget.

    Parameters
    ----------
    epsilon, delta, n
        The budget and the number of records.
    samples
        s, >= 1.
    step
        eta, > 0.
    accountant
        Name of an accountant, or ``"auto"`` for the one that allows most rounds.
    neighbours
        What neighbouring data sets differ in.

    Raises
    ------
    BadInputError
        If a parameter is out of range, or two rounds (the first that read anything private) do
        not fit.
    """
    check_budget(epsilon, delta, n)
    smallest = GameSchedule(2, samples, step, n, neighbours)

    def with_rounds(rounds: int) -> GameSchedule:
        return replace(smallest, rounds=rounds)

    def search(bound: Accountant) -> Calibration:
        target = _Target(bound, epsilon, delta)
        least = target.require_fit(smallest, "rounds")
        # rho grows with (T - 1) T (2T - 1) / 6, close to (T - 1/2)^3 / 3.
        guess = 0.5 + (3.0 * _zcdp_ratio(smallest, epsilon, delta)) ** (1.0 / 3.0)
        rounds, cost = _largest_integer(
            lambda rounds: target.epsilon_of(with_rounds(rounds)), epsilon, (2, least), guess
        )
        return Calibration(with_rounds(rounds), bound.name, cost)

    return _best_of(accountant, delta, search, lambda found: found.schedule.rounds)


def laplace_scale(epsilon: float, l1_sensitivity: float) -> float:
    """Return the scale of (discrete) Laplace noise that is ``epsilon``-differentially private.

    Parameters
    ----------
    epsilon
        Finite, > 0.
    l1_sensitivity
        Largest sum of absolute differences between the released vectors of two neighbours; > 0.

    Raises
    ------
    BadInputError
        If a parameter is out of its range.
    """
    _require_positive("epsilon", epsilon)
    _require_positive("the sensitivity", l1_sensitivity)
    return math.nextafter(l1_sensitivity / epsilon, math.inf)


def _require_positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise BadInputError(f"{what.capitalize()} is {value}; a finite number > 0 is needed.")


@dataclass(frozen=True)
class _Target:
    """A budget under one accountant."""

    accountant: Accountant
    epsilon: float
    delta: float

    def epsilon_of(self, schedule: GameSchedule) -> float:
        """Return epsilon of ``schedule``; infinite where the accountant does not support it."""
        if self.accountant.supports(schedule, self.delta) is not None:
            return math.inf
        return self.accountant.epsilon(schedule, self.delta)

    def require_fit(self, smallest: GameSchedule, what: str) -> float:
        """Return the epsilon of the smallest schedule in ``what``, or say why it does not fit."""
        name = self.accountant.name
        reason = self.accountant.supports(smallest, self.delta)
        if reason is not None:
            raise _OverBudgetError(f"{name}: {reason}")
        cost = self.accountant.epsilon(smallest, self.delta)
        if cost > self.epsilon:
            raise _OverBudgetError(
                f"{name}: even {what} = {getattr(smallest, what):g} costs epsilon = {cost:.4g}, "
                f"above {self.epsilon:g}"
            )
        return cost


def _best_of(
    name: str,
    delta: float,
    search: Callable[[Accountant], Calibration],
    size: Callable[[Calibration], float],
) -> Calibration:
    """Return the largest calibration over the accountants that ``name`` stands for."""
    found, failures = [], []
    for accountant in choices(name):
        try:
            found.append(search(accountant))
        except _OverBudgetError as failure:
            failures.append(str(failure))
    if not found:
        raise BadInputError(
            f"Nothing fits this budget at delta = {delta:g}: {'; '.join(failures)}. "
            "Ask for a larger epsilon or delta, or use other parameters."
        )
    return max(found, key=size)


class _OverBudgetError(Exception):
    """Even the smallest value exceeds the budget under one accountant."""


def _zcdp_ratio(schedule: GameSchedule, epsilon: float, delta: float) -> float:
    """Return how many times the zCDP cost of ``schedule`` the budget allows: a first guess."""
    return rho_for(epsilon, max(delta, 1e-12)) / rho_of(schedule)


def _largest_real(
    epsilon_of: Callable[[float], float],
    target: float,
    smallest: tuple[float, float],
    guess: float,
) -> tuple[float, float]:
    """Return a value within `_STEP_TOLERANCE` of the largest that fits, and its epsilon.

    ``epsilon_of`` increases and is close to a power of its argument, so a secant on logarithms
    needs few calls; bisection is the safeguard. ``smallest`` is a value that fits, and its epsilon.
    """
    aim = target * (1.0 - 0.2 * _STEP_TOLERANCE)
    low, least = smallest
    high = math.inf
    secant = _LogSecant(aim)
    trial = max(guess, low)
    while high > low * (1.0 + _STEP_TOLERANCE):
        cost = epsilon_of(trial)
        if cost > target:
            high = trial
        else:
            low, least = trial, cost
            if cost >= target * (1.0 - 0.5 * _STEP_TOLERANCE):
                break
        trial = secant.next(trial, cost)
        if not low < trial < high:
            trial = math.sqrt(low * high) if math.isfinite(high) else 2.0 * low
    return low, least


def _largest_integer(
    epsilon_of: Callable[[int], float],
    target: float,
    smallest: tuple[int, float],
    guess: float,
) -> tuple[int, float]:
    """Return the largest count up to `_LARGEST_COUNT` that fits, and its epsilon.

    The search is that of `_largest_real`; one more does not fit.
    """
    low, least = smallest
    high = _LARGEST_COUNT + 1
    secant = _LogSecant(target)
    trial = min(max(guess, low + 1.0), high - 1.0)
    while high > low + 1:
        count = min(max(math.floor(trial), low + 1), high - 1)
        cost = epsilon_of(count)
        if cost > target:
            high = count
        else:
            low, least = count, cost
        trial = secant.next(float(count), cost)
        if not low <= trial < high + 1:
            trial = math.sqrt(low * high)
    return low, least


class _LogSecant:
    """Where a function that is close to a power crosses a level, from its last two values."""

    def __init__(self, level: float) -> None:
        self._level = math.log(level)
        self._last: tuple[float, float] | None = None
        self._calls = 0

    def next(self, argument: float, value: float) -> float:
        """Return the next argument to try, NaN where the values say nothing."""
        self._calls += 1
        if not 0.0 < value < math.inf or self._calls > _SECANT_CALLS:
            return math.nan
        point = (math.log(argument), math.log(value))
        slope = 1.0
        if self._last is not None and self._last[0] != point[0]:
            measured = (point[1] - self._last[1]) / (point[0] - self._last[0])
            slope = measured if 0.25 < measured < 4.0 else slope
        self._last = point
        return math.exp(min(point[0] + (self._level - point[1]) / slope, 700.0))
