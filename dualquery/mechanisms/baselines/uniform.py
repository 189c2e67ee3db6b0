"""The uniform distribution over the records that the schema allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.mechanisms.baselines.product import (
    product_answers,
    sample_records,
    uniform_probabilities,
)
from dualquery.mechanisms.protocol import Budget, Outcome, Plan, Session, Task
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.runtime.errors import BadInputError


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Answers every query by its share of the legal records. Looks at no data."""

    name: ClassVar[str] = "uniform"
    pure: ClassVar[bool] = True

    records: int = 1000
    """Number of synthetic records to draw."""

    def __post_init__(self) -> None:
        if not isinstance(self.records, int) or self.records < 1:
            raise BadInputError(f"records is {self.records}; a whole number from 1 on is needed")

    def statistics(self, queries: Queries) -> None:  # noqa: ARG002
        """No data are needed."""
        return

    def plan(self, task: Task, budget: Budget) -> Plan:  # noqa: ARG002
        """Nothing is spent."""
        return Plan(schedule=(), accountant="advanced", parameters={"records": self.records})

    def run(self, task: Task, plan: Plan, curator: Curator | None, session: Session) -> Outcome:  # noqa: ARG002
        """Evaluate the workload on the uniform distribution and draw records from it."""
        domain = task.workload.domain
        probabilities = uniform_probabilities(domain)
        generator = np.random.default_rng(session.public_seed)
        return Outcome(
            answers=product_answers(task.workload, probabilities),
            records=sample_records(domain, probabilities, self.records, generator),
        )
