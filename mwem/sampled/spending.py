"""How many rounds, and what each may cost: from public facts to noise scales and a schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualquery.errors import BadInputError
from dualquery.privacy.events import (
    RANGE_SLACK,
    Event,
    GaussianNoise,
    SampledQueries,
)

_MARGIN = 1e-9
"""Relative part of the budget left for the rounding of sums and conversions."""

_TABLE = math.sqrt(2.0)
"""Replacing a record moves one row from a cell of a table to another: sqrt(2) in L2."""

FEWEST_ROUNDS, MOST_ROUNDS = 10, 140


@dataclass(frozen=True)
class Spending:
    """Noise of every private draw of a run. All rounds are alike.

    Parameters
    ----------
    rounds
        T: tables that are selected and measured.
    start_sensitivity
        L2 sensitivity of the counts of all mentioned bits.
    start_scale
        Standard deviation of their noise, in rows.
    select
        Range of a selection: log-weights are ``select / 2`` a row of error.
    table_scale
        Standard deviation of the noise on each cell of a table, in rows.
    """

    rounds: int
    start_sensitivity: float
    start_scale: float
    select: float
    table_scale: float

    def schedule(self) -> tuple[Event, ...]:
        """Return the events of the run in their order."""
        one_round = (
            SampledQueries(self.select + RANGE_SLACK, 1),
            GaussianNoise(_TABLE, self.table_scale),
        )
        start = GaussianNoise(self.start_sensitivity, self.start_scale)
        return (start, *one_round * self.rounds)


def spend(
    rho: float, start_budget: float, select_budget: float, differing: int, rounds: int
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
    differing
        Bits, among those measured, in which two records can differ.
    rounds
        T.

    Raises
    ------
    BadInputError
        If so many rounds leave nothing for one of them.
    """
    whole = rho * (1.0 - _MARGIN)
    each = whole * (1.0 - start_budget) / rounds
    select = math.sqrt(8.0 * select_budget * each) - RANGE_SLACK
    if select <= 0:
        raise BadInputError(
            f"{rounds} rounds leave rho {each:.3g} for each, too little to select a query; use "
            "fewer rounds or a larger epsilon"
        )
    sensitivity = math.sqrt(max(differing, 1))
    return Spending(
        rounds=rounds,
        start_sensitivity=sensitivity,
        start_scale=sensitivity / math.sqrt(2.0 * whole * start_budget),
        select=select,
        table_scale=_TABLE / math.sqrt(2.0 * (1.0 - select_budget) * each),
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
        Number of rows.
    columns
        Columns that the workload mentions.
    """
    signal = n * math.sqrt(rho) / 6700.0
    rounds = 60.0 * math.pow(signal, 1 / 3) * math.pow(columns / 14.0, 0.4)
    return round(min(max(rounds, FEWEST_ROUNDS), MOST_ROUNDS))
