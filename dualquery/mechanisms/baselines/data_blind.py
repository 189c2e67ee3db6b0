"""Answers that look at no data: of uniform columns, and of the record with every bit 0."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.mechanisms.baselines.independent import uniform_probabilities
from dualquery.mechanisms.options import check_whole
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator


@dataclass(frozen=True)
class Size(Details):
    """How many records to draw."""

    records: int


@dataclass(frozen=True, kw_only=True)
class Uniform(Mechanism[Size]):
    """Answers as if all values of a column were equally frequent, whatever the rules."""

    name: ClassVar[str] = "uniform"
    pure: ClassVar[bool] = True

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        check_whole(self, "records")

    def statistics(self, queries: Queries) -> Workload:
        """Name the workload; its answers are never counted."""
        return require_conjunctions(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[Size]:  # noqa: ARG002
        """Spend nothing."""
        records = self.records or task.default_records
        return Plan((), "advanced", Size(records), needs_answers=False)

    def run(self, task: Task, plan: Plan[Size], curator: Curator, session: Session) -> Outcome:  # noqa: ARG002
        """Evaluate the workload on the uniform distribution and draw records from it."""
        domain = task.workload.domain
        model = ProductMixture.single(domain, uniform_probabilities(domain))
        records = model.sample(plan.details.records, np.random.default_rng(session.public_seed))
        return Outcome(model.answers(task.workload), records, model=model)


@dataclass(frozen=True, kw_only=True)
class Zero(Mechanism[Details]):
    """Answers every query on the all-zero record: what sparse data look like from afar.

    The record breaks every one-hot group, so it is not released as a synthetic record.
    """

    name: ClassVar[str] = "zero"
    pure: ClassVar[bool] = True
    makes_records = False

    def statistics(self, queries: Queries) -> Workload:
        """Name the workload; its answers are never counted."""
        return require_conjunctions(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[Details]:  # noqa: ARG002
        """Spend nothing."""
        return Plan((), "advanced", Details(), needs_answers=False)

    def run(self, task: Task, plan: Plan[Details], curator: Curator, session: Session) -> Outcome:  # noqa: ARG002
        """Evaluate the workload on the zero record."""
        zero = np.zeros(task.workload.domain.bits, dtype=np.uint8)
        return Outcome(answers=task.workload.on_record(zero).astype(np.float64))
