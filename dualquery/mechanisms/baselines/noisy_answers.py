"""Noise on every answer: hard to beat when queries are few or rows are many."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dualquery.estimates.expected import ExpectedError, noise_error
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.baselines.noise import NoisyCounts, plan_noisy_counts
from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.room.curator import Curator
from dualquery.room.sensitivity.moves import complemented
from dualquery.runtime.errors import BadInputError


class _NoisyAnswers(Mechanism[NoisyCounts]):
    """What Gaussian and Laplace noise share: all but the plan."""

    makes_records = False  # answers are all there is

    def expected_error(self, task: Task, plan: Plan[NoisyCounts]) -> ExpectedError:
        """Return the error of the noise, by formula."""
        queries, noise = task.queries, plan.details.noise
        scale = noise.scale * queries.step / task.n
        return noise_error(noise.kind, scale, len(queries), queries.high - queries.low)

    def run(
        self,
        task: Task,
        plan: Plan[NoisyCounts],
        curator: Curator,
        session: Session,  # noqa: ARG002
    ) -> Outcome:
        """Measure and clip."""
        queries, noise = task.queries, plan.details.noise
        unit = queries.step / task.n
        ends = (queries.low, queries.high)
        answers = np.asarray(noise.measure(curator) * unit, np.float64)
        # Where a complement was counted, rows that are not there hold.
        absent = complemented(queries).astype(float)
        basis = "from the noise of each answer, each on its own"
        places = np.arange(len(queries))
        deviation = noise.deviation * unit
        return Outcome(
            np.clip(answers, *ends),
            intervals=noise.intervals(answers, unit, *ends, basis, absent),
            measurements=Measurements.of_queries(
                queries, places, answers, deviation, noise.kind, absent=absent
            ),
        )


@dataclass(frozen=True, kw_only=True)
class GaussianAnswers(_NoisyAnswers):
    """Gaussian noise on every answer, clipped to their range (Balle and Wang 2018)."""

    name: ClassVar[str] = "gaussian"
    pure: ClassVar[bool] = False

    def plan(self, task: Task, budget: Budget) -> Plan[NoisyCounts]:
        """Find the smallest noise at a proven sensitivity."""
        if budget.delta == 0:
            raise BadInputError("gaussian needs --delta above 0; with delta 0 use laplace")
        return plan_noisy_counts(task.queries, budget)


@dataclass(frozen=True, kw_only=True)
class LaplaceAnswers(_NoisyAnswers):
    """Discrete Laplace noise on every answer, clipped to their range (Dwork et al. 2006)."""

    name: ClassVar[str] = "laplace"
    pure: ClassVar[bool] = True

    def plan(self, task: Task, budget: Budget) -> Plan[NoisyCounts]:
        """Find the smallest noise at a proven sensitivity; delta is not needed."""
        return plan_noisy_counts(task.queries, replace(budget, delta=0.0))
