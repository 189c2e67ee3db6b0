"""Rounds, samples and step for a budget, from public facts only.

Three ways to come by them: the user's own values, Theorem 4.2 for a target error, and a practical
policy. Whatever is left open is solved for so that the accounted guarantee is the budget.

**The policy.** For every accountant here the budget fixes ``A = eta T sqrt(s T)`` up to small
terms (zCDP: ``A = n sqrt(6 rho)``). With ``N = s T`` draws in all, the regret of the query player
is about ``ln(2m) / (eta T) = ln(2m) sqrt(N) / A``, and the records' overfitting to the samples
about ``sqrt(H / N)``, ``H`` being the log-size of the record space. Their sum is least at ``N ~
sqrt(H) A / ln(2m)``. Rounds then follow from a step that moves a weight by a constant factor a
round. The two constants were fitted once, on public data sets of several kinds (Adult, plants,
pumsb_star, mushroom, msweb, product data), for 3-way conjunctions at epsilon 1; they are not tuned
to the data of a release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dualquery.errors import BadInputError
from dualquery.game.options import GameOptions
from dualquery.mechanism import Budget, Task
from dualquery.privacy.accountants import AUTO, best
from dualquery.privacy.calibrate import calibrate_rounds, calibrate_samples, calibrate_step
from dualquery.privacy.events import GameSchedule

DRAWS = 3.5
"""N in units of ``sqrt(H) A / ln(2m)``."""
STEP = 0.65
"""The step that fixes the number of rounds, given eta T."""
FEWEST_ROUNDS = 8
MOST_ROUNDS = 5_000
"""A tiny step given by the user would ask for more rounds than can be accounted or played."""


@dataclass(frozen=True)
class Chosen:
    """Parameters of the game, the accountant that priced them, and how they came about."""

    schedule: GameSchedule
    accountant: str
    reason: str


def choose_parameters(options: GameOptions, task: Task, budget: Budget) -> Chosen:
    """Fix rounds, samples and step.

    Raises
    ------
    BadInputError
        If all three are given and cost more than the budget, or nothing fits it.
    """
    if options.alpha is not None:
        rounds, samples, eta = theory_parameters(options.alpha, options.beta, task)
        game = GameSchedule(rounds, samples, eta, task.n, budget.neighbours)
        return _check(game, budget, "Theorem 4.2")
    rounds_, samples_, eta_ = options.rounds, options.samples, options.eta
    if rounds_ and samples_ and eta_:
        game = GameSchedule(rounds_, samples_, eta_, task.n, budget.neighbours)
        return _check(game, budget, "the user")
    given = [x for x in (rounds_, samples_, eta_) if x is not None]
    reason = "the user and the budget" if len(given) == 2 else "the practical policy"
    if len(given) < 2:
        rounds_, samples_, eta_ = _policy(options, task, budget)
    return _solve(rounds_, samples_, eta_, task.n, budget, reason)


def theory_parameters(alpha: float, beta: float, task: Task) -> tuple[int, int, float]:
    """Return T, s and eta of Algorithm 1 for error ``alpha`` with probability ``1 - beta``.

    Theorem 4.2 with the class closed under complement (``|Q| = 2m``) and the records that the
    schema allows as the universe.
    """
    rounds = math.ceil(16 * math.log(2 * len(task.queries)) / alpha**2)
    log_universe = log_records(task)
    samples = math.ceil(48 * (math.log(2 * rounds / beta) + log_universe) / alpha**2)
    return rounds, samples, alpha / 4


def log_records(task: Task) -> float:
    """Return the natural logarithm of the number of records that the schema allows."""
    return float(np.log(np.maximum(task.queries.domain.sizes, 2)).sum())


def _policy(
    options: GameOptions, task: Task, budget: Budget
) -> tuple[int | None, int | None, float | None]:
    """Fill in what the user left open, all but one parameter."""
    queries = len(task.queries)
    # Records matter only through their answers: there are at most 2^m answer vectors.
    entropy = min(log_records(task), queries * math.log(2))
    strength = _strength(task.n, budget)
    draws = max(DRAWS * math.sqrt(entropy) * strength / math.log(2 * queries), 1.0)
    if options.rounds is not None:
        return options.rounds, max(1, round(draws / options.rounds)), None
    if options.samples is not None:
        rounds = (strength / (STEP * math.sqrt(options.samples))) ** (2 / 3)
        return _clamped(rounds), options.samples, None
    step = STEP if options.eta is None else options.eta
    rounds = _clamped(strength / math.sqrt(draws) / step)
    if options.eta is not None:
        return rounds, None, options.eta
    return rounds, max(1, round(draws / rounds)), None


def _clamped(rounds: float) -> int:
    return round(min(max(rounds, FEWEST_ROUNDS), MOST_ROUNDS))


def _strength(n: int, budget: Budget) -> float:
    """Return ``A = eta T sqrt(s T)``, which the budget fixes whatever T and s are.

    It only guides the policy, so the quick accountant stands in for the exact one.
    """
    quick = budget.accountant
    if quick in (AUTO, "exact"):
        quick = "zcdp" if budget.delta > 0 else "advanced"
    rounds, samples = 100, 100
    found = calibrate_step(
        budget.epsilon, budget.delta, n, rounds, samples, quick, budget.neighbours
    )
    return found.schedule.step * rounds * math.sqrt(samples * rounds)


def _solve(
    rounds: int | None,
    samples: int | None,
    eta: float | None,
    n: int,
    budget: Budget,
    reason: str,
) -> Chosen:
    """Find the one open parameter that spends the budget."""
    spend = (budget.epsilon, budget.delta, n)
    how = (budget.accountant, budget.neighbours)
    match rounds, samples, eta:
        case int(), int(), None:
            found = calibrate_step(*spend, rounds, samples, *how)
        case int(), None, float():
            found = calibrate_samples(*spend, rounds, eta, *how)
        case None, int(), float():
            found = calibrate_rounds(*spend, samples, eta, *how)
        case _:
            raise RuntimeError("two of rounds, samples and eta must be fixed before the third")
    return Chosen(found.schedule, found.accountant, reason)


def _check(schedule: GameSchedule, budget: Budget, who: str) -> Chosen:
    """Accept a full set of parameters if it keeps to the budget."""
    accountant, epsilon = best(schedule, budget.delta, budget.accountant)
    if epsilon > budget.epsilon:
        raise BadInputError(
            f"rounds {schedule.rounds}, samples {schedule.samples} and eta "
            f"{schedule.step:g} (from {who}) cost epsilon {epsilon:.4g} at delta "
            f"{budget.delta:.3g}, above the budget's {budget.epsilon:g}; leave one of them out to "
            "have it solved for"
        )
    return Chosen(schedule, accountant.name, who)
