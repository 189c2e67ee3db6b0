"""What is known of a game before it is played: the error to expect, and the RAM that it takes."""

import math

from dualquery.estimates.expected import Estimate, ExpectedError
from dualquery.mechanisms.dualquery.parameters import entropy
from dualquery.mechanisms.protocol import Task
from dualquery.privacy.events import GameSchedule, events_of, zcdp_rho
from dualquery.queries.family import Queries

MAX_ERROR, MEAN_ERROR = (0.22, 0.34, 0.6), (0.006, 0.02, 0.075)
"""Measured errors in units of the scale: least, middle and largest of six data sets (Adult, plants,
groceries, mushroom, msweb, KDD99), a run each, with 100,000 3-way conjunctions at epsilon 1,
widened a little. Other queries, tables and budgets may lie outside."""

LESS_EFFORT = (-0.1, -0.2, -0.45)
"""Powers of an effort below 1 to which the least, middle and largest errors are proportional: of
runs on mushroom, groceries, Adult and KDD99 with efforts of 0.1 to 2. Above 1 they hardly fell."""

BYTES_A_QUERY = 100  # of the query player, the transcript, and five numbers of the fit
BYTES_A_DRAW = 9  # its query and its sign
BYTES_REMEMBERED = 100  # of a draw that a best response looks at: its literals, weight, and place
MATRICES = 3  # of rounds by rounds numbers, that the fit of the shares has at a time
BYTES_SKETCHED = 5_000  # of a record in the sketch of the fit's curvature


def game_error(task: Task, schedule: GameSchedule, effort: float) -> ExpectedError:
    """Return the error to expect of a game whose parameters are all the policy's, at an effort.

    The scale is that of the policy: with ``A = n sqrt(6 rho)``, regret and overfitting are least
    together at ``sqrt(ln(2m) sqrt(H) / A)`` (see `dualquery.mechanisms.dualquery.parameters`). The
    max error is no less than ``sqrt(ln(2m) / 2N)``, by which N draws are off (Hoeffding 1963).
    """
    rho = math.fsum(zcdp_rho(event) for event in events_of(schedule))
    strength = task.n / schedule.neighbours.steps * math.sqrt(6.0 * rho)
    log_queries = math.log(2 * len(task.queries))
    scale = math.sqrt(log_queries * math.sqrt(entropy(task)) / strength)
    draws = schedule.samples * max(schedule.rounds - 1, 1)
    scale = max(scale, math.sqrt(log_queries / (2.0 * draws)) / MAX_ERROR[1])
    scales = [scale * min(effort, 1.0) ** power for power in LESS_EFFORT]
    largest, mean = (
        Estimate(*(min(f * s, 1.0) for f, s in zip(factors, scales, strict=True)))
        for factors in (MAX_ERROR, MEAN_ERROR)
    )
    basis = (
        "from n, the budget, the schema and the number of queries, scaled by the errors of six "
        "data sets of many columns at epsilon 1; with few columns mean errors are larger"
    )
    return ExpectedError(largest, mean, basis)


def game_bytes(queries: Queries, game: GameSchedule, remembered: int, *, fitted: bool) -> int:
    """Return the bytes of RAM that a game takes besides the rows.

    A best response looks at the draws of ``remembered`` rounds; shares may be ``fitted``.
    """
    bits, rounds = queries.domain.bits, game.rounds
    records = rounds * (len(queries) // 8 + 3 * bits)
    a_draw = BYTES_A_DRAW * (rounds - 1) + BYTES_REMEMBERED * min(remembered, rounds)
    fit = rounds * (MATRICES * 8 * rounds + BYTES_SKETCHED) if fitted else 0
    return records + game.samples * a_draw + BYTES_A_QUERY * len(queries) + fit
