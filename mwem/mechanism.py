"""MWEM as a mechanism: its plan from public facts, and how its parts fit together.

DualQuery keeps weights on queries and answers with records; MWEM keeps weights on records and
answers with queries. The game itself is in `mwem.algorithm`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, rows_of_values
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.accountants.choice import best
from dualquery.queries.family import Queries, products_of
from dualquery.queries.products import Products
from dualquery.room.curator import Curator
from dualquery.runtime.errors import BadInputError
from mwem.algorithm import DRAWS, multiply_weights, require_candidates
from mwem.cell_records import rows_of_cells
from mwem.intervals import measured
from mwem.options import MwemOptions
from mwem.output import Output
from mwem.questions import Questions
from mwem.representations import Name, Representation, choose, dense_bytes, make
from mwem.spending import Spending, spend
from mwem.start import Start

_STOPPED = "{} of {} iterations were made: no other query fitted memory_gib."


@dataclass(frozen=True, kw_only=True)
class MwemDetails(Details):
    """The user's options, and what was decided on public facts."""

    options: MwemOptions
    start: Start = field(compare=False)
    queries: Products = field(compare=False)
    questions: Questions = field(compare=False)
    representation: Name
    records: int
    spending: Spending

    def parameters(self) -> Mapping[str, Any]:
        """Return the options that matter, and the decisions."""
        said = "repetitions", "cuboids", "average", "start", "noisy_init", "select", "memory_gib"
        return {
            "iterations": self.spending.iterations,
            **{name: getattr(self.options, name) for name in said},
            "representation": self.representation,
            "records": self.records,
            "spending": asdict(self.spending),
        }


@dataclass(frozen=True, kw_only=True)
class Mwem(MwemOptions, Mechanism[MwemDetails]):
    """Multiplicative weights over records; queries are best responses."""

    name: ClassVar[str] = "mwem"
    pure: ClassVar[bool] = True

    def statistics(self, queries: Queries) -> Queries:
        """Hold the queries' own answers, and what the start counts."""
        return Start(queries, self).held

    def plan(self, task: Task, budget: Budget) -> Plan[MwemDetails]:
        """Fix the representation and the noise of every draw from public facts."""
        start = Start(task.queries, self)
        questions = Questions(start.held, len(task.queries), self, budget.neighbours)
        queries = products_of(start.held)
        shares = self.shares(questions.iterations)
        spending = spend(shares, budget, questions.moves, start.moves(budget.neighbours))
        representation = choose(
            self.representation, queries, shares.iterations, self.memory, self.noisy_init
        )
        self._require_possible(representation, queries, questions)
        accountant, cost = best(spending.schedule(), budget.delta, budget.accountant)
        if cost > budget.epsilon:
            raise BadInputError(
                f"MWEM with this accountant ({accountant.name}) costs epsilon {cost:.4g}, above "
                f"{budget.epsilon:g}; use --accountant auto"
            )
        return Plan(
            schedule=spending.schedule(),
            accountant=accountant.name,
            details=MwemDetails(
                options=self,
                start=start,
                queries=queries,
                questions=questions,
                representation=representation,
                records=self.records or task.default_records,
                spending=spending,
            ),
        )

    def _require_possible(self, name: Name, queries: Products, questions: Questions) -> None:
        """Refuse before anything is paid what no iteration could answer, or even measure."""
        if name == "histogram":
            return
        # A table of a query's columns has two values each at least, and the places of its cells.
        if 8 * (most := queries.columns.shape[1]) << most > self.memory:
            raise BadInputError(
                f"a query is about {most} columns, and 2^{most} cells at least exceed memory_gib = "
                f"{self.memory_gib:g}: ask shorter queries, or take another mechanism"
            )
        empty = make(name, queries, self.memory, 1)
        require_candidates(questions.admitted(empty), 1, self)

    def bytes_needed(self, task: Task, plan: Plan[MwemDetails]) -> int:
        """Return the bytes of the answers, and of the vector of all cells if there is one.

        How large the parts of another representation get depends on what is measured.
        """
        needed = super().bytes_needed(task, plan)
        if plan.details.representation == "histogram":
            needed += dense_bytes(plan.details.queries, plan.details.spending.iterations)
        return needed

    def run(
        self, task: Task, plan: Plan[MwemDetails], curator: Curator, session: Session
    ) -> Outcome:
        """Select, measure, multiply."""
        return self.fit(task, plan, curator, session)[0]

    def fit(
        self, task: Task, plan: Plan[MwemDetails], curator: Curator, session: Session
    ) -> tuple[Outcome, Representation]:
        """Do as `run`, and return the last distribution too, which is as public as its answers."""
        chosen, spending = plan.details, plan.details.spending
        first, kept = chosen.start.measure(curator, spending, task.n)
        distribution = make(
            chosen.representation, chosen.queries, self.memory, session.threads, first
        )
        output = Output(
            n=task.n,
            iterations=spending.iterations,
            average=self.average,
            records=chosen.records,
            seed=session.public_seed,
            low=task.queries.low,
            high=task.queries.high,
        )
        trace = multiply_weights(
            curator,
            chosen.questions,
            chosen.queries,
            distribution,
            self,
            spending,
            output,
            session.progress,
        )
        held, asked = chosen.start.held, len(task.queries)
        also_kept, intervals = measured(trace, held, asked, task.n, spending)
        stopped = len(trace) < spending.iterations and not curator.cut_short(DRAWS)
        outcome = Outcome(
            # A few passes of updates do not reach what is measured well.
            answers=intervals.nearest(output.answers[:asked]),
            records=records_of_values(output.values, held.domain),
            trace=tuple(trace),
            intervals=intervals,
            measurements=Measurements.joined([*kept, also_kept]),
            remarks=(_STOPPED.format(len(trace), spending.iterations),) if stopped else (),
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
        return rows_of_cells(values[:, 0], domain)
    return rows_of_values(values, domain)
