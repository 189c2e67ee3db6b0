"""One record with every bit 0: what sparse data look like from afar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.mechanisms.protocol import Budget, Outcome, Plan, Session, Task
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator


@dataclass(frozen=True, kw_only=True)
class Zero:
    """Answers every query on the all-zero record. Looks at no data.

    The record breaks every one-hot group, so it is not released as a synthetic record.
    """

    name: ClassVar[str] = "zero"
    pure: ClassVar[bool] = True

    def statistics(self, queries: Queries) -> None:  # noqa: ARG002
        """No data are needed."""
        return

    def plan(self, task: Task, budget: Budget) -> Plan:  # noqa: ARG002
        """Nothing is spent."""
        return Plan(schedule=(), accountant="advanced")

    def run(self, task: Task, plan: Plan, curator: Curator | None, session: Session) -> Outcome:  # noqa: ARG002
        """Evaluate the workload on the zero record."""
        zero = np.zeros(task.workload.domain.bits, dtype=np.uint8)
        return Outcome(answers=task.workload.on_record(zero).astype(np.float64))
