"""What is made of a noisy measurement: answers and a mixture to draw records from.

Two estimates of the answers are made: those of a mixture fitted to the noisy means, and those of
independent columns with as much of every departure as stands out (`shrinkage`). Noise that is held
back from a trial of both says where between the two the answers are (`trials`): at the mixture's
where something hidden ties many columns, at the others' where few pairs are tied, or none.
Post-processing, all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.drawn import Known
from dualquery.mechanisms.matrix.labels import with_labels
from dualquery.mechanisms.matrix.mixture import Mixture, MixtureFit
from dualquery.mechanisms.matrix.reach import move_near
from dualquery.mechanisms.matrix.shrinkage import drawn_to_independence
from dualquery.mechanisms.matrix.trials import Halves, Trial, trust_in
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

_PARTS = 3
"""Fits at most: of what was measured, of a part of it that is shown to a trial, and for records."""

_TRUSTED = 0.5
"""Records are drawn from the mixture that is fitted to the noisy means if it is trusted by this
much or more; else from one that is fitted to means drawn to independent columns."""

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


@dataclass(frozen=True)
class Fitting:
    """How a mixture is fitted.

    Parameters
    ----------
    components, steps, pull
        Of `MixtureFit`.
    tried
        Whether a trial on the measurement says how far to trust the fit; else all of it is.
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
        How far the mixture was trusted, if a trial said so.
    """

    answers: Float64
    model: ProductMixture | LabelledMixture
    trace: tuple[Mapping[str, Any], ...]


def fit_mixture(
    known: Known,
    fitting: Fitting,
    workload: Workload,
    n: int,
    generator: np.random.Generator,
    session: Session,
) -> Fitted:
    """Fit a mixture to noisy means, and answer.

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
    products, parts = known.source.products, _PARTS if fitting.tried else 1

    def fitted_to(means: Float64, source: np.random.Generator, part: int) -> Mixture:
        fit = MixtureFit(
            products, means, known.deviations, fitting.components, fitting.steps, fitting.pull
        )
        told = part_of(session.progress, part * fit.steps, parts * fit.steps)
        return fit.run(source, session.threads, told)

    # The fit draws the same numbers whether there is a trial or not.
    (apart,) = generator.spawn(1)
    mixture = fitted_to(known.means, generator, 0)
    fitted = mixture.means(products)
    if fitting.tried:
        halves = Halves.of(known.means, known.deviations, apart)
        shown, held_back = map(known.source.answers, (halves.shown, halves.held_back))

        def estimate(of_shown: Float64, of_all: Float64) -> _Estimate:
            trial = Trial(known.source.answers(of_shown), shown, held_back)
            return _Estimate(
                move_near(trial.answers, shown, halves.noise * known.spread),
                move_near(known.source.answers(of_all), known.unbiased, known.spread, trial),
            )

        by_mixture = estimate(fitted_to(halves.shown, apart, 1).means(products), fitted)
        noise = halves.noise * known.deviations
        drawn = drawn_to_independence(products, known.means, known.deviations)
        by_departures = estimate(drawn_to_independence(products, halves.shown, noise), drawn)
        trust = trust_in(by_mixture.tried, by_departures.tried, held_back)
        answers = by_departures.answers + trust * (by_mixture.answers - by_departures.answers)
        if trust < _TRUSTED:
            mixture = fitted_to(drawn, generator, 2)
        session.progress(parts * fitting.steps, parts * fitting.steps)
    else:
        unbiased, spread = known.unbiased, known.spread
        answers, trust = move_near(known.source.answers(fitted), unbiased, spread), 1.0
    return Fitted(
        answers=answers,
        model=with_labels(mixture.model(), workload, known.unbiased, known.spread, n, generator),
        trace=({"trust": trust},) if fitting.tried else (),
    )


@dataclass(frozen=True, eq=False)
class _Estimate:
    """What one way to estimate the answers tells.

    Parameters
    ----------
    tried, answers
        float64, shape ``(m,)``: from the half that is shown, and from all that was measured; both
        within reach of the noisy answers.
    """

    tried: Float64
    answers: Float64


def signal_of(n: int, precision: float) -> float:
    """Return the cube root of signal over noise: 1 for thirty thousand rows at epsilon 1, or so.

    ``precision`` is sensitivity over scale. Components grow with it and the pull falls with its
    square. The powers, `_COMPONENTS` and `_PULL`
    were chosen by the errors of single runs on seven tables of 8,000 to 500,000 rows at epsilon 0.1
    to 5 (Adult, KDD99, plants, pumsb_star, mushroom, npm-deps, facebook-pages). Four times the pull
    costs up to a fifth of the mean error there.
    """
    return float((n * precision / 11_000.0) ** (1 / 3))
