"""`matrix`: noise on the features of a workload, and a mixture of products fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dualquery.estimates.expected import Estimate, ExpectedError, noise_error
from dualquery.mechanisms.matrix.drawn import Drawn
from dualquery.mechanisms.matrix.expansion import bytes_on_features
from dualquery.mechanisms.matrix.fitting import (
    MAX_ERROR,
    MEAN_ERROR,
    STEPS,
    Fitting,
    fit_mixture,
)
from dualquery.mechanisms.matrix.measurement import Measurement, measurement_for
from dualquery.mechanisms.options import check_number, check_whole
from dualquery.mechanisms.protocol import (
    Budget,
    Details,
    Mechanism,
    Outcome,
    Plan,
    Session,
    Task,
)
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate_noise import calibrate_gaussian_scale
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.runtime.errors import BadInputError


@dataclass(frozen=True, kw_only=True)
class MeasureAndFit(Details):
    """What is measured with how much noise, and how a mixture is fitted to it.

    Parameters
    ----------
    measurement
        What is measured.
    neighbours, sensitivity
        What neighbouring tables differ in, and the L2 distance between the measured numbers of
        two of them, over their scales.
    scale
        Factor on the measurement's scales, in rows.
    deviation
        Root of the answers' mean variance, as a share of the rows.
    components, steps, pull
        Of `MixtureFit`; 0 components for no fit.
    records
        Number of synthetic records.
    """

    measurement: Measurement = field(compare=False)
    neighbours: Neighbours
    sensitivity: float
    scale: float
    deviation: float
    components: int
    steps: int
    pull: float
    records: int

    def parameters(self) -> Mapping[str, Any]:
        """Return the noise of what is measured, and the fit."""
        return {
            **self.measurement.describe(self.scale),
            "neighbours": self.neighbours.value,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "deviation": self.deviation,
            "components": self.components,
            "steps": self.steps,
            "pull": self.pull,
            "records": self.records,
        }


@dataclass(frozen=True, kw_only=True)
class Matrix(Mechanism[MeasureAndFit]):
    """Correlated Gaussian noise on all queries at once, and what is learned from the result.

    The private part is one measurement, of the features (`scales`) or of the queries themselves
    (`measurement`). It gives every query an unbiased answer of known standard deviation. A mixture
    of product distributions, fitted to what was measured, has far smaller errors on most queries,
    and so have independent columns, moved by what stands out (`shrinkage`): the answers lie between
    these two (`fitting`). Where an estimate is further from the unbiased answer than noise explains
    (`reach`), it is moved there.
    """

    name: ClassVar[str] = "matrix"
    pure: ClassVar[bool] = False

    components: int | None = None
    """Product distributions of the mixture; 0 for the unbiased answers alone, None for as many as
    the budget can tell apart."""

    pull: float | None = None
    """Part of a step by which components are drawn together, from 0 to 1: it keeps noise out. None
    for what usually suits so many rows and so much noise; then a trial on the measurement says too
    how far to trust the fit (`fitting`), and the trace has it."""

    steps: int = STEPS
    """Gradient steps of the fit, at most: it ends where noise explains what is left."""

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        check_whole(self, "components", least=0)
        check_whole(self, "steps", "records")
        check_number(self, "a number from 0 to 1", lambda x: 0 <= x <= 1, "pull")

    @property
    def makes_records(self) -> bool:
        """Only a fit gives records."""
        return self.components != 0

    def statistics(self, queries: Queries) -> Workload:
        """Hold the queries' own answers; features are counted in a pass of their own."""
        return require_conjunctions(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[MeasureAndFit]:
        """Choose what is measured, the scales of the noise, and the smallest noise that fits."""
        if budget.delta == 0:
            raise BadInputError("matrix needs --delta above 0; with delta 0 use laplace or mwem")
        measured = measurement_for(task, budget.neighbours, fitted=self.components != 0)
        scale = calibrate_gaussian_scale(
            budget.epsilon, budget.delta, measured.sensitivity, budget.accountant
        )
        schedule = (GaussianNoise(measured.sensitivity, scale),)
        accountant, _ = best(schedule, budget.delta, budget.accountant)
        usual = Fitting.suited(
            task.n, measured.sensitivity / scale, task.workload.domain.bits, self.steps
        )
        return Plan(
            schedule=schedule,
            accountant=accountant.name,
            details=MeasureAndFit(
                measurement=measured,
                neighbours=budget.neighbours,
                sensitivity=measured.sensitivity,
                scale=scale,
                deviation=scale / task.n * measured.mean_deviation,
                components=usual.components if self.components is None else self.components,
                steps=self.steps,
                pull=usual.pull if self.pull is None else self.pull,
                records=self.records or task.default_records,
            ),
            needs_answers=measured.of_queries,
        )

    def expected_error(self, task: Task, plan: Plan[MeasureAndFit]) -> ExpectedError:
        """Estimate the error from the noise of the answers; without a fit it is all of it."""
        deviation = plan.details.deviation
        if plan.details.components == 0:
            return noise_error("gaussian", deviation, len(task.queries), 1.0)
        return ExpectedError(
            Estimate(*(min(factor * deviation, 1.0) for factor in MAX_ERROR)),
            Estimate(*(min(factor * deviation, 1.0) for factor in MEAN_ERROR)),
            "from the answers' noise and the share of it that fits leave; the range is that of "
            "runs on public and generated tables",
        )

    def bytes_needed(self, task: Task, plan: Plan[MeasureAndFit]) -> int:  # noqa: ARG002
        """Return the bytes of the features and the answers."""
        return bytes_on_features(task)

    def run(
        self, task: Task, plan: Plan[MeasureAndFit], curator: Curator, session: Session
    ) -> Outcome:
        """Measure, fit, and answer."""
        chosen = plan.details
        measured = chosen.measurement
        noisy = measured.draw(curator, chosen.scale) / task.n
        drawn = Drawn(measured, noisy, measured.scales * chosen.scale / task.n)
        outcome = Outcome(
            answers=np.clip(drawn.unbiased, 0.0, 1.0),
            intervals=drawn.intervals(task.workload),
            measurements=drawn.kept(),
        )
        if chosen.components == 0:
            return outcome
        fitting = Fitting(chosen.components, chosen.steps, chosen.pull, self.pull is None)
        generator = np.random.default_rng(session.public_seed)
        fitted = fit_mixture(drawn.known, fitting, task.workload, task.n, generator, session)
        return replace(
            outcome,
            answers=fitted.answers,
            records=fitted.model.sample(chosen.records, generator),
            trace=fitted.trace,
            model=fitted.model,
        )
