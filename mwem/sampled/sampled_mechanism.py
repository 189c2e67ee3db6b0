"""MWEM on a sampled distribution, as a mechanism: what it plans, and how its parts fit together.

MWEM's distribution is held as factors and a population of records, so columns may be many. It
starts from independent columns with noisy shares, measures a selected query with all sign patterns
of its literals, and fits to all measurements so far. The defaults were chosen on Adult, plants and
mushroom with an eye on the private error, which a release may not: expect a little less.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.mechanisms.options import check_number, check_whole
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import rho_for
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.queries.literals import different_bits
from dualquery.room.curator import Curator
from dualquery.room.sensitivity.moves import table_moves
from dualquery.room.statistics import AllQueries, SomeQueries
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import check_memory
from mwem.intervals import kept_tables, table_intervals
from mwem.layout import Layout, WithSingleBits
from mwem.sampled.family import SampledFamily
from mwem.sampled.measurements import Measurements
from mwem.sampled.rounds import play, refine
from mwem.spending import Shares, Spending, spend

FEWEST_ROUNDS, MOST_ROUNDS = 10, 140
_LARGE_RESIDUAL = 0.2  # a share of the rows: 20,000 records had .12 at most, but where noise ruled

MOST_LITERALS = 8
"""Literals of a query: its table has a cell for each of their sign patterns."""


@dataclass(frozen=True)
class SampledDetails(Details):
    """What was decided on public facts.

    Records that stand for the distribution, synthetic records, most counts of mentioned bits that
    move between neighbours, and the noise of every draw.
    """

    population: int
    records: int
    moving_bits: int
    spending: Spending


@dataclass(frozen=True, kw_only=True)
class MwemSampled(Mechanism[SampledDetails]):
    """Multiplicative weights over a population of records, for any number of columns."""

    name: ClassVar[str] = "mwem-sampled"
    pure: ClassVar[bool] = False

    rounds: int | None = None
    """T: tables that are selected and measured; None for a number that suits the budget."""

    start_budget: float = 0.07
    """Share of the budget for the noisy share of every bit that the queries mention."""

    select_budget: float = 0.5
    """Share of a round's budget that selects the query; the rest measures its table."""

    growth: float = 0.5
    """Power of a round's number to which its budget is proportional: late rounds look for smaller
    errors than early ones."""

    population: int = 20_000
    """Records that stand for the distribution between rounds; answers come from five times as
    many."""

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        check_whole(self, "rounds", "population", "records")
        shares = "start_budget", "select_budget"
        check_number(self, "a share above 0 and below 1", lambda x: 0 < x < 1, *shares)
        check_number(self, "a power from 0 to 4", lambda x: 0 <= x <= 4, "growth")

    def statistics(self, queries: Queries) -> Workload:
        """Hold the queries' own answers, and the count of every bit of the columns they mention."""
        return WithSingleBits.of(require_conjunctions(queries)).held

    def plan(self, task: Task, budget: Budget) -> Plan[SampledDetails]:
        """Fix the rounds and the noise of every draw from public facts."""
        workload = task.workload
        if budget.delta == 0:
            raise BadInputError("mwem-sampled needs --delta above 0; with delta 0 use mwem")
        if workload.way > MOST_LITERALS:
            raise BadInputError(
                f"a query has {workload.way} literals; mwem-sampled takes at most {MOST_LITERALS}"
            )
        layout = Layout.of(workload)
        rho = rho_for(budget.epsilon, budget.delta)
        columns = len(layout.columns)
        n = task.n // budget.neighbours.steps
        check_memory(20 * self.population * columns, "the population", "take a smaller one")
        most = different_bits(workload.literals)
        if self.rounds is not None and self.rounds > most:
            raise BadInputError(
                f"rounds is {self.rounds:,}, but the queries are about {most:,} different sets of "
                "values, and none is measured twice: take at most as many"
            )
        rounds = self.rounds or min(default_rounds(rho, n, columns), most)
        start = AllQueries().moves(WithSingleBits.of(workload).single, budget.neighbours)
        table = table_moves(budget.neighbours)
        shares = Shares(rounds, self.select_budget, self.start_budget, self.growth)
        spending = spend(shares, budget, table, start)
        schedule = spending.schedule()
        accountant, _ = best(schedule, budget.delta, budget.accountant)
        return Plan(
            schedule=schedule,
            accountant=accountant.name,
            details=SampledDetails(
                population=self.population,
                records=self.records or task.default_records,
                moving_bits=start.entries,
                spending=spending,
            ),
        )

    def run(
        self, task: Task, plan: Plan[SampledDetails], curator: Curator, session: Session
    ) -> Outcome:
        """Measure single bits; select, measure and fit; answer."""
        chosen, spending = plan.details, plan.details.spending
        workload, n = task.workload, task.n
        generator = np.random.default_rng(session.public_seed)
        layout = Layout.of(workload)
        counted = WithSingleBits.of(workload)
        assert spending.start_scale is not None
        counts = spending.measure_start(curator, SomeQueries(counted.places)).astype(np.float64)
        base = layout.base(counts / n, spending.start_scale / n)
        family = SampledFamily.independent(
            layout, base, workload.way, chosen.population, generator, session.threads
        )
        measurements = Measurements(n, workload.way)
        measurements.add_bits(layout.bits, counts, spending.start_scale)
        held = len(counted.held)
        trace = play(curator, workload, family, measurements, spending, held, session.progress)
        answers, residual = refine(workload, family)
        family.resample(family.rake(), chosen.records)
        missed = f"the population misses what was measured by up to {residual:.2f} of the rows"
        failed = residual > max(_LARGE_RESIDUAL, 3.0 * spending.measure_scale / n)
        return Outcome(
            answers=answers,
            records=layout.to_rows(family.population, generator),
            trace=tuple(trace),
            solver={"last_residual": residual},
            remarks=(f"{missed}: take a larger one",) if failed else (),
            intervals=table_intervals(trace, workload, n, spending),
            measurements=kept_tables(layout.bits, counts, trace, workload, n, spending),
        )


def default_rounds(rho: float, n: int, columns: int) -> int:
    """Return how many rounds to plan, from public facts.

    More rounds find more of what is wrong, each with more noise. The noise of a table is
    proportional to sqrt(rounds) / (n sqrt(rho)), and more columns have more to be found: the number
    grows as a power of each. Powers and factor were set by prototypes on five data sets. n is the
    number of rows, divided by how many of them neighbours differ in.
    """
    signal = n * math.sqrt(rho) / 6700.0
    rounds = 60.0 * math.pow(signal, 1 / 3) * math.pow(columns / 14.0, 0.4)
    return round(min(max(rounds, FEWEST_ROUNDS), MOST_ROUNDS))
