"""One record with every bit 0: what sparse data look like from afar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dualquery.mechanisms.protocol import (
    Budget,
    Details,
    Mechanism,
    Outcome,
    Plan,
    Session,
    Task,
    require_conjunctions,
)
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator


@dataclass(frozen=True, kw_only=True)
class Zero(Mechanism[Details]):
    """Answers every query on the all-zero record. Looks at no data.

    The record breaks every one-hot group, so it is not released as a synthetic record.
    """

    name: ClassVar[str] = "zero"
    pure: ClassVar[bool] = True

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
