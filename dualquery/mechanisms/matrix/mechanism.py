"""`matrix`: noise on the features of a workload, and a mixture of products fitted to them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.expected import Estimate, ExpectedError, noise_error
from dualquery.estimates.intervals import Intervals, gaussian_half_width
from dualquery.mechanisms.matrix.labels import with_labels
from dualquery.mechanisms.matrix.measurement import Measurement, choose_measurement
from dualquery.mechanisms.matrix.mixture import MixtureFit
from dualquery.mechanisms.matrix.trials import Trials, choose_trial, with_larger
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
from dualquery.runtime.progress import part_of

_COMPONENTS, _PULL = 100.0, 0.03
"""Components and pull of `MixtureFit` where signal over noise is 1 (`_signal`)."""

_FEWEST, _MOST = 16, 256
"""Components, if the user does not say: a multiple of `_FEWEST`, which is one vector of numbers."""

_MOST_VALUES = 1 << 22
"""Bits times components, beyond which fits take minutes."""

_FURTHEST = 4.0
"""Standard deviations of its noise by which an answer may differ from the noisy one, at most, where
a model is at fault."""

_FALSE = 0.5
"""Share of moved answers (`reach`) that may be expected to owe their distance to noise alone."""

_MAX_ERROR = (0.3, 1.5, 5.0)
_MEAN_ERROR = (0.02, 0.1, 0.4)
"""Errors after the fit, in mean standard deviations of the answers' noise: least, middle and
largest of runs on Adult, plants, msweb, groceries and tic-tac-toe, widened a little. Other tables
and queries may lie outside."""


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
        Of `MixtureFit`; 0 components for no fit. Trials may choose a larger pull.
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
    """Correlated Gaussian noise on all queries at once, and the mixture that fits the result.

    The private part is one measurement, of the features (`scales`) or of the queries themselves
    (`measurement`). It gives every query an unbiased answer of known standard deviation. A mixture
    of product distributions, fitted to what was measured, has far smaller errors on most queries;
    where it is further from the unbiased answer than noise explains (`reach`), it is moved there.
    """

    name: ClassVar[str] = "matrix"
    pure: ClassVar[bool] = False

    components: int | None = None
    """Product distributions of the mixture; 0 for the unbiased answers alone, None for as many as
    the budget can tell apart."""

    pull: float | None = None
    """Part of a step by which components are drawn together, from 0 to 1: it keeps noise out. None
    for what suits the measurement best, in trials on it (`trials`); the plan's is the least of
    these then, and the trace says which was chosen."""

    steps: int = 1500
    """Gradient steps of the fit."""

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
        measured = choose_measurement(task.workload, budget.neighbours, self.components != 0)
        scale = calibrate_gaussian_scale(
            budget.epsilon, budget.delta, measured.sensitivity, budget.accountant
        )
        schedule = (GaussianNoise(measured.sensitivity, scale),)
        accountant, _ = best(schedule, budget.delta, budget.accountant)
        signal = _signal(task.n, measured.sensitivity / scale)
        return Plan(
            schedule=schedule,
            accountant=accountant.name,
            details=MeasureAndFit(
                measurement=measured,
                neighbours=budget.neighbours,
                sensitivity=measured.sensitivity,
                scale=scale,
                deviation=scale / task.n * measured.mean_deviation,
                components=self._components(signal, task.workload.domain.bits),
                steps=self.steps,
                pull=self.pull if self.pull is not None else min(_PULL / signal**2, 1.0),
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
            Estimate(*(min(factor * deviation, 1.0) for factor in _MAX_ERROR)),
            Estimate(*(min(factor * deviation, 1.0) for factor in _MEAN_ERROR)),
            "from the answers' noise and the share of it that fits left on five public tables",
        )

    def run(
        self, task: Task, plan: Plan[MeasureAndFit], curator: Curator, session: Session
    ) -> Outcome:
        """Measure, fit, and answer."""
        chosen = plan.details
        measured = chosen.measurement
        noisy = measured.draw(curator, chosen.scale) / task.n
        deviations = measured.scales * chosen.scale / task.n
        unbiased = measured.answers(noisy)
        spread = measured.deviations(deviations)
        intervals = Intervals.around(
            unbiased,
            gaussian_half_width(1.0) * spread,
            0.0,
            1.0,
            measured.basis,
            measured.absent_row_answer,
        )
        kept = measured.kept(noisy, deviations)
        if chosen.components == 0:
            return Outcome(
                answers=np.clip(unbiased, 0.0, 1.0), intervals=intervals, measurements=kept
            )
        generator = np.random.default_rng(session.public_seed)
        fit = MixtureFit(
            measured.products,
            noisy,
            deviations,
            chosen.components,
            chosen.steps,
            chosen.pull,
        )
        trials = Trials(fit, measured.answers, with_larger(fit.pull) if self.pull is None else ())
        before, steps = trials.steps, trials.steps + fit.steps
        # The fit draws the same numbers whether there were trials or not.
        (apart,) = generator.spawn(1)
        tried = trials.run(apart, session.threads, part_of(session.progress, 0, steps))
        if tried:
            fit = replace(fit, pull=choose_trial(tried).pull)
        mixture = fit.run(generator, session.threads, part_of(session.progress, before, steps))
        fitted = measured.answers(mixture.means(measured.products))
        model = with_labels(mixture.model(), task.workload, unbiased, spread, task.n, generator)
        return Outcome(
            answers=move_near(fitted, unbiased, spread),
            records=model.sample(chosen.records, generator),
            trace=tuple(
                {"pull": trial.pull, "error": trial.error, "chosen": trial.pull == fit.pull}
                for trial in tried
            ),
            intervals=intervals,
            measurements=kept,
            model=model,
        )

    def _components(self, signal: float, bits: int) -> int:
        """Return the number of components, if not set: few leave out structure, many fit noise."""
        if self.components is not None:
            return self.components
        most = min(_MOST, _MOST_VALUES // bits, _COMPONENTS * signal)
        return max(round(most / _FEWEST), 1) * _FEWEST


def _signal(n: int, precision: float) -> float:
    """Return the cube root of signal over noise: 1 for thirty thousand rows at epsilon 1, or so.

    ``precision`` is sensitivity over scale. Components grow with it and the pull falls with its
    square; trials on the measurement may choose a larger one. The powers, `_COMPONENTS` and `_PULL`
    were chosen by the errors of single runs on seven tables of 8,000 to 500,000 rows at epsilon 0.1
    to 5 (Adult, KDD99, plants, pumsb_star, mushroom, npm-deps, facebook-pages). Four times the pull
    costs up to a fifth of the mean error there.
    """
    return float((n * precision / 11_000.0) ** (1 / 3))


def move_near(
    model: NDArray[np.float64], unbiased: NDArray[np.float64], deviations: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a model's answers, moved to within `reach` of unbiased ones, and into [0, 1].

    Parameters
    ----------
    model, unbiased, deviations
        float64, shape ``(m,)``: the model's answers; noisy ones, and their standard deviations.
    """
    distances = np.divide(
        np.abs(model - unbiased), deviations, out=np.zeros_like(model), where=deviations > 0
    )
    furthest = reach(distances) * deviations
    near = np.clip(model, unbiased - furthest, unbiased + furthest)
    answers: NDArray[np.float64] = np.clip(near, 0.0, 1.0)
    return answers


def reach(distances: NDArray[np.float64]) -> float:
    """Return how far noisy answers may be from a model's before that is the model's fault.

    Moving an answer that is far away by chance only brings the noise back. So the reach is the
    smallest distance beyond which noise would leave at most `_FALSE` as many answers as there are
    (Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 57, 1995), and
    `_FURTHEST` if that is smaller. If there is none, noise explains all, and nothing is moved. Both
    constants were chosen by the errors of single runs on Adult, plants, mushroom and KDD99: a reach
    of 3 has larger maxima at small epsilon (Adult, mushroom), none at all has a larger one on
    KDD99.

    Parameters
    ----------
    distances
        float64, shape ``(m,)``, at least 0: in standard deviations of the noise.
    """
    from scipy.special import erfc

    falling = np.sort(distances)[::-1]
    by_chance = len(falling) * erfc(falling / math.sqrt(2.0))
    exceeded = np.flatnonzero(by_chance <= _FALSE * np.arange(1, len(falling) + 1))
    return min(float(falling[exceeded[-1]]), _FURTHEST) if len(exceeded) else float(falling[0])
