"""What error to expect of DualQuery, from its schedule and other public facts."""

from __future__ import annotations

import math

from dualquery.estimates.expected import Estimate, ExpectedError
from dualquery.mechanisms.dualquery.parameters import entropy
from dualquery.mechanisms.protocol import Task
from dualquery.privacy.events import Schedule, events_of, zcdp_rho

MAX_ERROR = (0.22, 0.34, 0.6)
MEAN_ERROR = (0.006, 0.02, 0.075)
"""Measured errors in units of the scale: least, middle and largest of six data sets (Adult, plants,
groceries, mushroom, msweb, KDD99), a run each, with 100,000 3-way conjunctions at epsilon 1,
widened a little. Other queries, tables and budgets may lie outside."""


def game_error(task: Task, schedule: Schedule) -> ExpectedError:
    """Return the estimate for a game with the policy's way of playing.

    The scale is that of the policy: with ``A = n sqrt(6 rho)``, regret and overfitting are least
    together at ``sqrt(ln(2m) sqrt(H) / A)`` (see `dualquery.mechanisms.dualquery.parameters`).
    """
    rho = math.fsum(zcdp_rho(event) for event in events_of(schedule))
    strength = task.n * math.sqrt(6.0 * rho)
    scale = math.sqrt(math.log(2 * len(task.queries)) * math.sqrt(entropy(task)) / strength)
    return ExpectedError(
        _estimate(MAX_ERROR, scale),
        _estimate(MEAN_ERROR, scale),
        "a scale from n, the budget, the schema and the number of queries, with the range seen on "
        "six data sets at epsilon 1",
    )


def _estimate(constants: tuple[float, float, float], scale: float) -> Estimate:
    low, about, high = (min(constant * scale, 1.0) for constant in constants)
    return Estimate(low, about, high)
