"""How many rounds, and what each may cost: from public facts to noise scales and a schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualquery.privacy.events import (
    RANGE_SLACK,
    Event,
    GaussianNoise,
    SampledQueries,
)
from dualquery.room.sensitivity.moves import Moves
from dualquery.runtime.errors import BadInputError

_MARGIN = 1e-9
"""Relative part of the budget left for the rounding of sums and conversions."""

FEWEST_ROUNDS, MOST_ROUNDS = 10, 140


@dataclass(frozen=True)
class Spending:
    """Noise of every private draw of a run.

    Parameters
    ----------
    start_sensitivity
        L2 sensitivity of the counts of all mentioned bits.
    start_scale
        Standard deviation of their noise, in rows.
    rounds
        T: tables that are selected and measured.
    growth
        Power of a round's number to which its cost is proportional.
    select
        Range of the first selection: log-weights are half of it a row of error.
    table_scale
        Standard deviation of the noise on each cell of the first table, in rows.
    table_sensitivity
        L2 sensitivity of a table.
    """

    start_sensitivity: float
    start_scale: float
    rounds: int
    growth: float
    select: float
    table_scale: float
    table_sensitivity: float

    def of_round(self, number: int) -> tuple[float, float]:
        """Return the range of a selection and the scale of a table's noise, from round 1 on."""
        ratio = number ** (0.5 * self.growth)
        return self.select * ratio, self.table_scale / ratio

    def schedule(self) -> tuple[Event, ...]:
        """Return the events of the run in their order."""
        events: list[Event] = [GaussianNoise(self.start_sensitivity, self.start_scale)]
        for number in range(1, self.rounds + 1):
            select, scale = self.of_round(number)
            events.append(SampledQueries(select + RANGE_SLACK, 1))
            events.append(GaussianNoise(self.table_sensitivity, scale))
        return tuple(events)


def spend(
    rho: float,
    start_budget: float,
    select_budget: float,
    start: Moves,
    table: Moves,
    rounds: int,
    growth: float,
) -> Spending:
    """Split a budget of zero-concentrated differential privacy.

    A selection of range r costs r^2 / 8; Gaussian noise costs the square of sensitivity over scale,
    halved.

    Parameters
    ----------
    rho
        The budget.
    start_budget
        Share of it for the counts of single bits.
    select_budget
        Share of a round's part that selects the query; the rest measures its table.
    start, table
        How the counts of single bits, and the cells of a table, move between neighbours.
    rounds
        T: tables that are selected and measured.
    growth
        Power of a round's number to which its part of the budget is proportional.

    Raises
    ------
    BadInputError
        If so many rounds leave nothing for one of them.
    """
    whole = rho * (1.0 - _MARGIN)
    sizes = math.fsum(number**growth for number in range(1, rounds + 1))
    first = whole * (1.0 - start_budget) / sizes
    select = math.sqrt(8.0 * select_budget * first) - RANGE_SLACK
    if select <= 0:
        raise BadInputError(
            f"{rounds} rounds leave rho {first:.3g} for the first, too little to select a query; "
            "use fewer rounds or a larger epsilon"
        )
    sensitivity = start.l2
    return Spending(
        start_sensitivity=sensitivity,
        start_scale=sensitivity / math.sqrt(2.0 * whole * start_budget),
        rounds=rounds,
        growth=growth,
        select=select,
        table_scale=table.l2 / math.sqrt(2.0 * (1.0 - select_budget) * first),
        table_sensitivity=table.l2,
    )


def default_rounds(rho: float, n: int, columns: int) -> int:
    """Return how many rounds to plan, from public facts.

    More rounds find more of what is wrong, each with more noise. The noise of a table is
    proportional to sqrt(rounds) / (n sqrt(rho)), and more columns have more to be found: the
    number grows as a power of each. Powers and factor were set by prototypes on five data sets.

    Parameters
    ----------
    rho
        The budget.
    n
        Number of rows, divided by how many of them neighbours differ in.
    columns
        Columns that the workload mentions.
    """
    signal = n * math.sqrt(rho) / 6700.0
    rounds = 60.0 * math.pow(signal, 1 / 3) * math.pow(columns / 14.0, 0.4)
    return round(min(max(rounds, FEWEST_ROUNDS), MOST_ROUNDS))
