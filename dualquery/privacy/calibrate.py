"""From a budget to the one open parameter of a schedule: the largest that fits.

`calibrate` searches any one-parameter family of schedules whose cost grows with the parameter, a
real or a whole number; `calibrate_game` poses the families of DualQuery. Every answer is on the
safe side: the epsilon of the schedule that is returned was computed and is at most the budget's.
Only public quantities enter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from dualquery.privacy.accountants.choice import AUTO, Accountant, choices
from dualquery.privacy.accountants.zcdp import rho_for, rho_of
from dualquery.privacy.events import (
    RANGE_SLACK,
    GameSchedule,
    Schedule,
    require_positive,
)
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError

_TOLERANCE = 1e-4
"""Relative distance of a calibrated real parameter from the largest one."""

_LARGEST_COUNT = 10**6
"""Whole numbers beyond this are not searched."""

_SECANT_CALLS = 12
"""A search bisects after this many calls."""

_HALVINGS = 40
"""Of an interval, at most."""

S = TypeVar("S", bound=Schedule)


@dataclass(frozen=True)
class Family(Generic[S]):
    """Schedules with one open parameter.

    Parameters
    ----------
    name
        What messages call the parameter.
    schedule_of
        The schedule of a value of it, from public facts; its cost grows with the value.
    smallest
        The least value that makes sense.
    guess
        A first guess at the largest value that fits.
    whole
        Whether values are whole numbers.
    """

    name: str
    schedule_of: Callable[[float], S]
    smallest: float
    guess: float
    whole: bool = False


@dataclass(frozen=True)
class Calibration(Generic[S]):
    """The largest parameter that fits a budget.

    Parameters
    ----------
    value
        Of the open parameter.
    schedule
        The schedule with this value.
    accountant
        Name of the accountant that proves the guarantee.
    epsilon
        Its epsilon for ``schedule`` at the delta asked for; at most the epsilon asked for.
    """

    value: float
    schedule: S
    accountant: str
    epsilon: float


def calibrate(
    family: Family[S], epsilon: float, delta: float, accountant: str = AUTO
) -> Calibration[S]:
    """Return the largest member of a family that fits a budget.

    A real parameter is found to one part in 10^4, a whole one exactly.

    Parameters
    ----------
    family
        The schedules.
    epsilon, delta
        The budget of a release.
    accountant
        Name of an accountant, or ``"auto"`` for the one that allows the largest value.

    Raises
    ------
    BadInputError
        If the accountant is unknown, or not even the smallest value fits; the message says which
        bound failed.
    """
    found, failures = [], []
    for each in choices(accountant):
        reason = each.supports(family.schedule_of(family.smallest), delta)
        if reason is None:
            calibration = _largest(family, each, epsilon, delta)
            if calibration.epsilon <= epsilon:
                found.append(calibration)
                continue
            reason = (
                f"even {family.name} = {family.smallest:g} costs epsilon = "
                f"{calibration.epsilon:.4g}, above {epsilon:g}"
            )
        failures.append(f"{each.name}: {reason}")
    if not found:
        raise BadInputError(
            f"Nothing fits this budget at delta = {delta:g}: {'; '.join(failures)}. "
            "Ask for a larger epsilon or delta, or use other parameters."
        )
    return max(found, key=lambda calibration: calibration.value)


def calibrate_game(
    epsilon: float,
    delta: float,
    n: int,
    *,
    rounds: int | None = None,
    samples: int | None = None,
    step: float | None = None,
    accountant: str = AUTO,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> Calibration[GameSchedule]:
    """Return the game that spends a budget, given two of its three parameters.

    Parameters
    ----------
    epsilon, delta, n
        The budget and the number of records.
    rounds
        T, >= 2: one round reads nothing private, so everything would fit.
    samples
        s, >= 1.
    step
        eta, > 0.
    accountant
        Name of an accountant, or ``"auto"`` for the one that allows most.
    neighbours
        What neighbouring data sets differ in.

    Raises
    ------
    BadInputError
        If a parameter is out of range, or the open one has no value that fits.
    ValueError
        If not exactly one of the three is open.
    """
    require_positive("epsilon", epsilon)
    if [rounds, samples, step].count(None) != 1:
        raise ValueError("exactly one of rounds, samples and step is left open")
    if rounds == 1:
        fits = "every step fits; set the step" if step is None else "any samples fit; set them"
        raise BadInputError(f"One round reads nothing private, so {fits}.")
    least = GameSchedule(
        rounds=2 if rounds is None else rounds,
        samples=1 if samples is None else samples,
        step=1.0 if step is None else step,
        n=n,
        neighbours=neighbours,
    )
    ratio = rho_for(epsilon, max(delta, 1e-12)) / rho_of(least)
    family: Family[GameSchedule]
    if step is None:
        # Below this the charge for the rounding of the weights is no longer small beside the range.
        smallest = n * RANGE_SLACK
        family = Family("step", lambda value: replace(least, step=value), smallest, ratio**0.5)
    elif samples is None:
        family = Family(
            "samples", lambda value: replace(least, samples=int(value)), 1, ratio, whole=True
        )
    else:
        # rho grows with (T - 1) T (2T - 1) / 6, close to (T - 1/2)^3 / 3.
        guess = 0.5 + (3.0 * ratio) ** (1.0 / 3.0)
        family = Family(
            "rounds", lambda value: replace(least, rounds=int(value)), 2, guess, whole=True
        )
    return calibrate(family, epsilon, delta, accountant)


def bisect_largest(fits: Callable[[float], bool], low: float, high: float, most: float) -> float:
    """Return the largest number up to ``most`` that fits, to one part in 10^9, from below.

    Parameters
    ----------
    fits
        Whether a number fits; it holds for none above one for which it does not hold.
    low
        A number that fits, or 0.
    high
        Where the search begins, above ``low``; it is doubled while it fits.
    most
        Nothing above is tried.
    """
    while high <= most and fits(high):
        low, high = high, 2.0 * high
    high = min(high, most)
    for _ in range(_HALVINGS):
        if high - low <= 1e-9 * high:
            break
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def laplace_scale(epsilon: float, l1_sensitivity: float) -> float:
    """Return the scale of (discrete) Laplace noise that is ``epsilon``-differentially private.

    Parameters
    ----------
    epsilon
        Finite, > 0.
    l1_sensitivity
        Largest sum of absolute differences between the released vectors of two neighbours; > 0.
    """
    require_positive("epsilon", epsilon)
    require_positive("the sensitivity", l1_sensitivity)
    return math.nextafter(l1_sensitivity / epsilon, math.inf)


def _largest(
    family: Family[S], accountant: Accountant, epsilon: float, delta: float
) -> Calibration[S]:
    """Return the largest value that fits by one accountant, or the smallest if none does."""

    def cost(value: float) -> float:
        schedule = family.schedule_of(value)
        if accountant.supports(schedule, delta) is not None:
            return math.inf
        return accountant.epsilon(schedule, delta)

    smallest = family.smallest
    least = accountant.epsilon(family.schedule_of(smallest), delta)
    if least > epsilon:
        value, spent = smallest, least
    elif family.whole:
        value, spent = _largest_integer(cost, epsilon, (int(smallest), least), family.guess)
    else:
        value, spent = _largest_real(cost, epsilon, (smallest, least), family.guess)
    return Calibration(value, family.schedule_of(value), accountant.name, spent)


def _largest_real(
    epsilon_of: Callable[[float], float],
    target: float,
    smallest: tuple[float, float],
    guess: float,
) -> tuple[float, float]:
    """Return a value within `_TOLERANCE` of the largest that fits, and its epsilon.

    ``epsilon_of`` increases and is close to a power of its argument, so a secant on logarithms
    needs few calls; bisection is the safeguard. ``smallest`` is a value that fits, and its epsilon.
    """
    aim = target * (1.0 - 0.2 * _TOLERANCE)
    low, least = smallest
    high = math.inf
    secant = _LogSecant(aim)
    trial = max(guess, low)
    while high > low * (1.0 + _TOLERANCE):
        cost = epsilon_of(trial)
        if cost > target:
            high = trial
        else:
            low, least = trial, cost
            if cost >= target * (1.0 - 0.5 * _TOLERANCE):
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
