"""Rounds, samples and step for a budget, from public facts only.

Three ways to come by them: the user's own values, Theorem 4.2 for a target error, and a practical
policy. Whatever is left open is solved for so that the accounted guarantee is the budget.

**The policy.** For every accountant here the budget fixes ``A = eta T sqrt(s T)`` up to small
terms (zCDP: ``A = n sqrt(6 rho)``). With ``N = s T`` draws in all, the regret of the query player
is about ``ln(2m) / (eta T) = ln(2m) sqrt(N) / A``, and the records' overfitting to the samples
about ``sqrt(H / N)``, ``H`` being the log-size of the record space. Their sum is least at ``N ~
sqrt(H) A / ln(2m)``. Rounds then follow from a step: the smaller, the more records the shares have
to choose from, the closer the draws of neighbouring rounds, and the more of them a best response
can use (`dualquery.mechanisms.dualquery.transcript`). What it costs is time: best responses look at
``16 N / step`` draws in all (fewer where `MOST_CHOSEN` bounds the rounds). The constants were
chosen by the error of Adult, plants, groceries and mushroom at epsilon 1, between values far apart,
against that time; `experiments/parameters.py` measures how far from the best of a grid they are, on
these and other data. ``effort`` divides the step and multiplies these bounds, so best responses
look at as many times more draws, or fewer.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from dualquery.mechanisms.dualquery.game_options import GameOptions
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.accountants.choice import AUTO, best
from dualquery.privacy.calibrate import Calibration, calibrate_game
from dualquery.privacy.events import GameSchedule
from dualquery.privacy.guarantee import round_up
from dualquery.runtime.errors import BadInputError

DRAWS = 1.75  # N in units of ``sqrt(H) A / ln(2m)``
STEP, LARGEST_STEP = 0.1, 0.5
"""The step that fixes the number of rounds, given eta T; and the largest that it may become."""
REMEMBERED_STEPS = 16.0  # remembered rounds times the step
MOST_LOOKED_AT = 2e8
"""Draws that all best responses of a game look at together, a minute's work: of each that is paid
for as many as rounds remember it. Where draws are many, steps grow, or fewer rounds remember."""
LONE_DRAWS, LONE_STEP = 3.5, 0.65  # `DRAWS` and `STEP` where the user sets remembered_rounds to 1
FEWEST_ROUNDS, MOST_CHOSEN = 8, 1_750
"""Of the policy: each round looks at all queries, and the fit's time grows as their square."""
MOST_ROUNDS = 5_000  # where rounds are left open: a tiny step of the user's would ask for millions


@dataclass(frozen=True)
class Chosen:
    """Parameters of the game, the accountant that priced them, and how they came about."""

    schedule: GameSchedule
    accountant: str
    reason: str
    remembered_rounds: int
    solver: str


def choose_parameters(options: GameOptions, task: Task, budget: Budget) -> Chosen:
    """Fix rounds, samples and step; `BadInputError` if nothing, or not what is given, fits."""
    schedule, accountant, reason = _schedule(options, task, budget)
    if (remembered := options.remembered_rounds) is None:
        most = options.effort * MOST_LOOKED_AT / (schedule.samples * (schedule.rounds - 1))
        longest = min(REMEMBERED_STEPS / schedule.step, most)
        remembered = min(max(round(longest), 1), schedule.rounds)
    # `auto` goes on until a proof or its limit. Rounds are worth more than proofs, above all where
    # weights of remembered draws are estimates.
    brief = "auto:fast" if options.remembered_rounds == 1 else "auto:brief"
    solver = brief if options.solver == "auto" else options.solver
    return Chosen(schedule, accountant, reason, remembered, solver)


def _schedule(options: GameOptions, task: Task, budget: Budget) -> tuple[GameSchedule, str, str]:
    """Return a schedule, the accountant that priced it, and who chose it."""
    rounds, samples, eta = options.rounds, options.samples, options.eta
    reason = "the user"
    if options.alpha is not None:
        rounds, samples, eta = theory_parameters(options.alpha, options.beta, task)
        reason = "Theorem 4.2"
    if rounds and samples and eta:
        game = GameSchedule(rounds, samples, eta, task.n, budget.neighbours)
        return game, _accountant_for(game, budget, reason), reason
    reason = "the user and the budget"
    if [rounds, samples, eta].count(None) > 1:
        rounds, samples, eta = _policy(options, task, budget)
        reason = "the practical policy"
    found = _calibrated(task.n, budget, rounds, samples, eta)
    return found.schedule, found.accountant, reason


def theory_parameters(alpha: float, beta: float, task: Task) -> tuple[int, int, float]:
    """Return T, s and eta of Algorithm 1 for error ``alpha`` with probability ``1 - beta``.

    Theorem 4.2 with the class closed under complement (``|Q| = 2m``) and the records that the
    schema allows as the universe.
    """
    rounds = math.ceil(16 * math.log(2 * len(task.queries)) / alpha**2)
    log_universe = log_records(task)
    samples = math.ceil(48 * (math.log(2 * rounds) - math.log(beta) + log_universe) / alpha**2)
    return rounds, samples, alpha / 4


def log_records(task: Task) -> float:
    """Return the natural logarithm of the number of records that the schema allows."""
    return float(np.log(np.maximum(task.queries.domain.sizes, 2)).sum())


def entropy(task: Task) -> float:
    """Return H: records matter only through their answers, at most 2^m different ones."""
    return min(log_records(task), len(task.queries) * math.log(2))


def _policy(
    options: GameOptions, task: Task, budget: Budget
) -> tuple[int | None, int | None, float | None]:
    """Fill in the parameters that the user left open, all but one."""
    strength = _strength(task.n, budget)
    unit = math.sqrt(entropy(task)) * strength / math.log(2 * len(task.queries))
    if options.remembered_rounds == 1:
        draws, step = max(LONE_DRAWS * unit, 1.0), LONE_STEP
    else:
        draws = max(DRAWS * unit, 1.0)
        usual = max(STEP, REMEMBERED_STEPS * draws / MOST_LOOKED_AT)
        step = min(usual / options.effort, LARGEST_STEP)
    most_rounds = _clamped(MOST_CHOSEN * options.effort)
    if options.rounds is not None:
        return options.rounds, max(1, round(draws / options.rounds)), None
    if options.samples is not None:
        longest = (strength / (step * math.sqrt(options.samples))) ** (2 / 3)
        return min(_clamped(longest), most_rounds), options.samples, None
    if options.eta is not None:
        # At one draw a round the budget is used up after (A / eta)^(2/3) rounds.
        longest = 0.9 * (strength / options.eta) ** (2 / 3)
        rounds = _clamped(min(strength / math.sqrt(draws) / options.eta, longest))
        return rounds, None, options.eta
    rounds = min(_clamped(strength / math.sqrt(draws) / step), most_rounds)
    return rounds, max(1, round(draws / rounds)), None


def _clamped(rounds: float) -> int:
    return round(min(max(rounds, FEWEST_ROUNDS), MOST_ROUNDS))


def _strength(n: int, budget: Budget) -> float:
    """Return ``A = eta T sqrt(s T)``, which the budget fixes; by a quick accountant, as a guide."""
    quick = budget.accountant
    if quick in (AUTO, "exact"):
        quick = "zcdp" if budget.delta > 0 else "advanced"
    rounds, samples = 100, 100
    found = _calibrated(n, replace(budget, accountant=quick), rounds, samples, None)
    return found.schedule.step * rounds * math.sqrt(samples * rounds)


def _calibrated(
    n: int, budget: Budget, rounds: int | None, samples: int | None, eta: float | None
) -> Calibration:
    """Find the one open parameter that spends the budget."""
    return calibrate_game(
        budget.epsilon, budget.delta, n, rounds=rounds, samples=samples, step=eta,
        accountant=budget.accountant, neighbours=budget.neighbours,
    )  # fmt: skip


def _accountant_for(schedule: GameSchedule, budget: Budget, who: str) -> str:
    """Return the accountant of a full set of parameters, which must keep to the budget."""
    accountant, epsilon = best(schedule, budget.delta, budget.accountant)
    if epsilon > budget.epsilon:
        raise BadInputError(
            f"rounds {schedule.rounds}, samples {schedule.samples} and eta "
            f"{schedule.step:g} (from {who}) cost epsilon {round_up(epsilon, 4)} at delta "
            f"{budget.delta:.3g}, above the budget's {budget.epsilon:g}; leave one of "
            "them out, or give a larger alpha or epsilon"
        )
    return accountant.name
