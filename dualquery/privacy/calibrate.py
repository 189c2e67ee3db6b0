"""From a budget to the one open parameter of a schedule: the largest that fits.

One search, `largest_that_fits`, serves every parameter whose cost grows with it, a real or a whole
number; `calibrate_game` poses the schedules of DualQuery, `calibrate_rho` those of Gaussian noise,
alone or among other private draws. Every answer is on the safe side: the epsilon of the schedule
that it stands for was computed and is at most the budget's. Only public quantities enter.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from dualquery.privacy.accountants.choice import AUTO, Accountant, best, choices
from dualquery.privacy.accountants.formulas import epsilon_from_rho, rho_of
from dualquery.privacy.events import (
    RANGE_SLACK,
    GameSchedule,
    GaussianNoise,
    Schedule,
    require_positive,
)
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError

_STEP_TOLERANCE, _RHO_TOLERANCE = 1e-4, 1e-6
"""Relative distance of a game's step, and of a calibrated rho, from the largest one."""

_LEAST = 1e-10
"""The smallest rho that is tried, in parts of the one that zCDP allows."""

_LARGEST_COUNT = 10**6
"""Whole numbers beyond this are not searched."""

_SECANT_CALLS, _MOST_CALLS = 12, 200
"""A search bisects after the first number of calls, and ends after the second."""


def largest_that_fits(
    cost: Callable[[float], float],
    limit: float,
    smallest: float,
    guess: float,
    tolerance: float,
    *,
    whole: bool = False,
) -> tuple[float, float]:
    """Return the largest argument that costs at most a limit > 0, and its cost.

    ``cost`` increases, and is close to a power of its argument: so a secant on logarithms needs few
    calls, from a first ``guess`` on; bisection is the safeguard. ``smallest`` is the least
    argument, returned where no other fits; ``tolerance`` the relative distance from the largest. Of
    ``whole`` numbers the last that fits up to 10^6 is returned. `BadInputError` if no argument
    costs more.
    """
    low = smallest
    spent = math.nan
    high = float(_LARGEST_COUNT + 1) if whole else math.inf
    aim = math.log(limit if whole else limit * (1.0 - 0.2 * tolerance))
    trial, last = max(guess, smallest), (math.nan, math.nan)
    for calls in range(_MOST_CALLS):
        if high <= (low + 1 if whole else low * (1.0 + tolerance)):
            break
        # The least argument is tried if the guess is not above it, and at the end.
        first = low if math.isnan(spent) else low + whole
        value = float(min(max(math.floor(trial), first), high - 1)) if whole else trial
        now = cost(value)
        if now <= limit:
            low, spent = value, now
            if not whole and now >= limit * (1.0 - 0.5 * tolerance):
                break
        else:  # not a number does not fit either
            high = value
        trial = math.nan
        if 0.0 < now < math.inf and calls < _SECANT_CALLS:
            point = (math.log(value), math.log(now))
            slope = (point[1] - last[1]) / (point[0] - last[0]) if point[0] != last[0] else 1.0
            slope = slope if 0.25 < slope < 4.0 else 1.0
            trial = math.exp(min(point[0] + (aim - point[1]) / slope, 700.0))
            last = point
        if not low < trial < high:
            trial = math.sqrt(low * high) if math.isfinite(high) else 2.0 * low
    if math.isinf(high) and spent < limit * (1.0 - tolerance):
        raise BadInputError("No noise is too small for this budget; ask for a smaller epsilon.")
    return low, cost(low) if math.isnan(spent) else spent


@dataclass(frozen=True)
class Calibration:
    """The game with the largest open parameter that fits a budget."""

    value: float  # of the open parameter
    schedule: GameSchedule  # with this value
    accountant: str  # name of the one that proves the guarantee
    epsilon: float  # of the schedule at the delta asked for; at most the one asked for


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
) -> Calibration:
    """Return the game that spends a budget, given two of its three parameters.

    Parameters
    ----------
    epsilon, delta, n
        The budget and the number of records.
    rounds, samples, step
        T >= 2 (one round reads nothing private, so everything would fit), s >= 1, eta > 0.
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
    if step is None:
        # Below this the charge for the rounding of the weights is no longer small beside the range.
        name = "step"
        smallest = n * RANGE_SLACK
        guess = ratio**0.5
    elif samples is None:
        name, smallest, guess = "samples", 1.0, ratio
    else:
        # rho grows with (T - 1) T (2T - 1) / 6, close to (T - 1/2)^3 / 3.
        name = "rounds"
        smallest = 2.0
        guess = 0.5 + (3.0 * ratio) ** (1.0 / 3.0)
    whole = name != "step"

    def schedule_of(value: float) -> GameSchedule:
        changed: dict[str, float] = {name: int(value) if whole else value}
        return replace(least, **changed)  # type: ignore[arg-type]  # samples and rounds are whole

    found, failures = [], []
    for each in choices(accountant):

        def cost(value: float, each: Accountant = each) -> float:
            schedule = schedule_of(value)
            supported = each.supports(schedule, delta) is None
            return each.epsilon(schedule, delta) if supported else math.inf

        reason = each.supports(schedule_of(smallest), delta)
        if reason is None:
            value, spent = largest_that_fits(
                cost, epsilon, smallest, guess, _STEP_TOLERANCE, whole=whole
            )
            if spent <= epsilon:
                value = int(value) if whole else value
                found.append(Calibration(value, schedule_of(value), each.name, spent))
                continue
            reason = f"even {name} = {smallest:g} costs epsilon = {spent:.4g}, above {epsilon:g}"
        failures.append(f"{each.name}: {reason}")
    if not found:
        raise BadInputError(
            f"Nothing fits this budget at delta = {delta:g}: {'; '.join(failures)}. "
            "Ask for a larger epsilon or delta, or use other parameters."
        )
    return max(found, key=lambda calibration: calibration.value)


def laplace_scale(epsilon: float, l1_sensitivity: float) -> float:
    """Return the scale of (discrete) Laplace noise that is ``epsilon``-differentially private.

    ``l1_sensitivity`` is the largest sum of absolute differences between the released vectors of
    two neighbours; both are finite and above 0.
    """
    require_positive("epsilon", epsilon)
    require_positive("the sensitivity", l1_sensitivity)
    return math.nextafter(l1_sensitivity / epsilon, math.inf)


@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> float:
    """Return the largest rho whose guarantee at ``delta`` in (0, 1) is at most ``epsilon``."""
    guess = epsilon / (1.0 + 4.0 * -math.log(delta) / epsilon)
    rho, spent = largest_that_fits(
        lambda rho: epsilon_from_rho(rho, delta), epsilon, _LEAST * guess, guess, 1e-10
    )
    return rho if spent <= epsilon else 0.0


def calibrate_rho(
    schedule_of: Callable[[float], Schedule], epsilon: float, delta: float, accountant: str = AUTO
) -> float:
    """Return the largest rho whose schedule fits a budget, or one part in 10^6 less.

    For mechanisms that share a budget of zero-concentrated differential privacy out among their
    draws: an accountant tighter than its conversion leaves them more to share than `rho_for`.

    ``schedule_of`` makes the schedule of a rho, from public facts; its cost grows with rho, and
    what it raises is passed on. ``epsilon`` > 0, ``delta`` in (0, 1). `BadInputError` if one is out
    of its range, the accountant does not support the schedule, or no rho is small enough.
    """
    require_positive("epsilon", epsilon)
    if not 0.0 < delta < 1.0:
        raise BadInputError(f"Gaussian noise needs a delta between 0 and 1; found {delta}.")

    def cost(rho: float) -> float:
        return best(schedule_of(rho), delta, accountant)[1]

    guess = rho_for(epsilon, delta)
    rho, spent = largest_that_fits(cost, epsilon, _LEAST * guess, guess, _RHO_TOLERANCE)
    if not spent <= epsilon:
        raise BadInputError(
            f"Even very large noise costs more than epsilon = {epsilon:g}; ask for a larger "
            "epsilon or another accountant."
        )
    return rho


def calibrate_gaussian_scale(
    epsilon: float, delta: float, sensitivity: float, accountant: str = AUTO
) -> float:
    """Return the smallest scale of one Gaussian measurement that fits the budget.

    In the units of ``sensitivity``, the largest Euclidean distance between the released vectors of
    two neighbours. With ``"auto"`` or ``"exact"`` it is that of the analytic Gaussian mechanism
    (Balle and Wang 2018, Theorem 8). The budget is as for `calibrate_rho`.
    """
    require_positive("the sensitivity", sensitivity)

    def scale_of(rho: float) -> float:
        return sensitivity / math.sqrt(2.0 * rho)

    def schedule_of(rho: float) -> Schedule:
        return (GaussianNoise(sensitivity, scale_of(rho)),)

    return scale_of(calibrate_rho(schedule_of, epsilon, delta, accountant))
