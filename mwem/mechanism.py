"""MWEM as a mechanism: what it plans from public facts, and how its parts are put together.

DualQuery keeps weights on queries and answers with records; MWEM keeps weights on records and
answers with queries. The game itself is in `mwem.algorithm`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes, rows_of_values
from dualquery.data.domain import Domain
from dualquery.mechanisms.protocol import Budget, Outcome, Plan, Session, Task, default_records
from dualquery.privacy.accountants.choice import best
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.runtime.errors import BadInputError
from mwem.algorithm import multiply_weights, noisy_start
from mwem.intervals import measured_intervals
from mwem.options import MwemOptions
from mwem.output import Output
from mwem.queries import ProductQueries
from mwem.questions import questions_of
from mwem.representations import Representation, choose, make
from mwem.spending import Spending, spend


@dataclass(frozen=True, kw_only=True)
class Mwem(MwemOptions):
    """Multiplicative weights over records; queries are best responses."""

    name: ClassVar[str] = "mwem"
    pure: ClassVar[bool] = True

    def statistics(self, queries: Queries) -> Queries:
        """Hold the queries' own answers."""
        return queries

    def plan(self, task: Task, budget: Budget) -> Plan:
        """Fix the representation and the noise of every draw from public facts."""
        asked = questions_of(task.queries, self, budget.neighbours)
        queries = ProductQueries.of(task.queries)
        spending = spend(self, budget, asked.moves)
        accountant, cost = best(spending.schedule(), budget.delta, budget.accountant)
        if cost > budget.epsilon:
            raise BadInputError(
                f"MWEM with this accountant ({accountant.name}) costs epsilon {cost:.4g}, above "
                f"{budget.epsilon:g}; use --accountant auto"
            )
        return Plan(
            schedule=spending.schedule(),
            accountant=accountant.name,
            parameters={
                "iterations": self.iterations,
                "repetitions": self.repetitions,
                "cuboids": self.cuboids,
                "average": self.average,
                "noisy_init": self.noisy_init,
                "representation": choose(
                    self.representation,
                    queries,
                    self.iterations,
                    self.memory,
                    self.noisy_init,
                ),
                "too_large": self.too_large,
                "memory_gib": self.memory_gib,
                "records": self.records or default_records(task.n),
                "spending": asdict(spending),
            },
        )

    def run(self, task: Task, plan: Plan, curator: Curator | None, session: Session) -> Outcome:
        """Select, measure, multiply."""
        return self.fit(task, plan, curator, session)[0]

    def fit(
        self, task: Task, plan: Plan, curator: Curator | None, session: Session
    ) -> tuple[Outcome, Representation]:
        """Do as `run`, and return the last distribution too, which is as public as its answers."""
        if curator is None:
            raise TypeError("MWEM runs on a curator")
        public = plan.parameters
        spending = Spending(**public["spending"])
        queries = ProductQueries.of(task.queries)
        prior = noisy_start(curator, spending)
        distribution = make(public["representation"], queries, self.memory, session.threads, prior)
        output = Output(
            n=task.n,
            iterations=self.iterations,
            average=self.average,
            records=public["records"],
            seed=session.public_seed,
            low=task.queries.low,
            high=task.queries.high,
        )
        trace = multiply_weights(
            curator,
            questions_of(task.queries, self),
            queries,
            distribution,
            self,
            spending,
            output,
            session.progress,
        )
        outcome = Outcome(
            answers=output.answers,
            records=records_of_values(output.values, task.queries.domain),
            trace=tuple(trace),
            intervals=measured_intervals(trace, task.queries, task.n, spending),
        )
        return outcome, distribution


def records_of_values(values: NDArray[Any], domain: Domain) -> NDArray[np.uint8]:
    """Return records from a distribution's values: of the columns, or of one column of all cells.

    Parameters
    ----------
    values
        Integers, shape ``(records, columns)``, or ``(records, 1)`` with cells in C order.
    domain
        The columns.
    """
    if values.shape[1] != domain.columns:
        values = np.stack(np.unravel_index(values[:, 0], axis_sizes(domain)), axis=1)
    return rows_of_values(values, domain)
