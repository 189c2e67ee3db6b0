"""What is made of a noisy measurement: a mixture fitted to it, its answers and intervals.

Post-processing, all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import Intervals
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.matrix.labels import with_labels
from dualquery.mechanisms.matrix.measurement import Measurement
from dualquery.mechanisms.matrix.mixture import MixtureFit
from dualquery.mechanisms.matrix.reach import move_near
from dualquery.mechanisms.matrix.trials import Trials, choose_trial, with_larger
from dualquery.mechanisms.protocol import Session
from dualquery.models.labelled import LabelledMixture
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload
from dualquery.runtime.progress import part_of

Float64 = NDArray[np.float64]

_COMPONENTS, _PULL = 100.0, 0.03
"""Components and pull of `MixtureFit` where signal over noise is 1 (`signal_of`)."""

_FEWEST, _MOST = 16, 256
"""Components, if the user does not say: a multiple of `_FEWEST`, which is one vector of numbers."""

_MOST_VALUES = 1 << 22
"""Bits times components, beyond which fits take minutes."""

MAX_ERROR = (0.3, 2.0, 5.0)
MEAN_ERROR = (0.02, 0.2, 0.8)
"""Errors after the fit, in mean standard deviations of the answers' noise: least, middle and
largest of runs on Adult, plants, msweb, groceries, tic-tac-toe and generated tables, widened a
little. The mean error is 0.02 to 0.2 for conjunctions about skewed columns, 0.25 to 0.8 for whole
marginals, where 0.8 is the noise itself. Other tables and queries may lie outside."""

STEPS = 2100
"""Gradient steps of a fit, at most."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A measurement and what came of it.

    Parameters
    ----------
    measurement
        What was measured.
    means, deviations
        float64, shape ``(f,)``: its noisy means, and the standard deviations of their noise.
    """

    measurement: Measurement
    means: Float64
    deviations: Float64

    @cached_property
    def unbiased(self) -> Float64:
        """The answers that the means determine."""
        return self.measurement.answers(self.means)

    @cached_property
    def spread(self) -> Float64:
        """Their standard deviations."""
        return self.measurement.deviations(self.deviations)

    def intervals(self, workload: Workload) -> Intervals:
        """Return intervals of the true answers of the queries that were measured."""
        measured = self.measurement
        return Intervals.of_gaussian(
            self.unbiased,
            self.spread,
            0.0,
            1.0,
            measured.basis,
            measured.absent_row_answer,
            measured.guesses(workload, self.means, self.deviations),
        )

    def kept(self) -> Measurements:
        """Return what a release keeps of it."""
        return self.measurement.kept(self.means, self.deviations)


@dataclass(frozen=True)
class Fitting:
    """How a mixture is fitted.

    Parameters
    ----------
    components, steps, pull
        Of `MixtureFit`.
    tried
        Whether trials on the measurement may choose a larger pull.
    """

    components: int
    steps: int
    pull: float
    tried: bool = True

    @staticmethod
    def suited(n: int, precision: float, bits: int, steps: int = STEPS) -> Fitting:
        """Return what suits a number of rows, a sensitivity over scale, and a number of bits.

        Few components leave out structure, many fit noise.
        """
        signal = signal_of(n, precision)
        most = min(_MOST, _MOST_VALUES // bits, _COMPONENTS * signal)
        components = max(round(most / _FEWEST), 1) * _FEWEST
        return Fitting(components, steps, min(_PULL / signal**2, 1.0))


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit tells.

    Parameters
    ----------
    answers
        float64, shape ``(m,)``, in [0, 1]: to the queries.
    model
        The mixture.
    trace
        The trials, one entry each.
    """

    answers: Float64
    model: ProductMixture | LabelledMixture
    trace: tuple[Mapping[str, Any], ...]


def fit_mixture(
    known: Drawn,
    fitting: Fitting,
    workload: Workload,
    n: int,
    generator: np.random.Generator,
    session: Session,
) -> Fitted:
    """Fit a mixture to noisy means and answer.

    Parameters
    ----------
    known
        A measurement, with all else that is known of its means.
    fitting
        How.
    workload, n
        The queries, and the number of rows.
    generator
        Source of the fit's random choices.
    session
        Threads and progress.
    """
    measured, products = known.measurement, known.measurement.products
    fit = MixtureFit(
        products,
        known.means,
        known.deviations,
        fitting.components,
        fitting.steps,
        fitting.pull,
    )
    trials = Trials(fit, measured.answers, with_larger(fit.pull) if fitting.tried else ())
    before, steps = trials.steps, trials.steps + fit.steps
    # The fit draws the same numbers whether there were trials or not.
    (apart,) = generator.spawn(1)
    tried = trials.run(apart, session.threads, part_of(session.progress, 0, steps))
    chosen = choose_trial(tried) if tried else None
    if chosen is not None:
        fit = replace(fit, pull=chosen.pull)
    mixture = fit.run(generator, session.threads, part_of(session.progress, before, steps))
    fitted = measured.answers(mixture.means(products))
    return Fitted(
        answers=move_near(fitted, known.unbiased, known.spread, chosen),
        model=with_labels(mixture.model(), workload, known.unbiased, known.spread, n, generator),
        trace=tuple(
            {"pull": trial.pull, "error": trial.error, "chosen": trial is chosen} for trial in tried
        ),
    )


def signal_of(n: int, precision: float) -> float:
    """Return the cube root of signal over noise: 1 for thirty thousand rows at epsilon 1, or so.

    ``precision`` is sensitivity over scale. Components grow with it and the pull falls with its
    square; trials on the measurement may choose a larger one. The powers, `_COMPONENTS` and `_PULL`
    were chosen by the errors of single runs on seven tables of 8,000 to 500,000 rows at epsilon 0.1
    to 5 (Adult, KDD99, plants, pumsb_star, mushroom, npm-deps, facebook-pages). Four times the pull
    costs up to a fifth of the mean error there.
    """
    return float((n * precision / 11_000.0) ** (1 / 3))
