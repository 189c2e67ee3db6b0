"""MWEM's Figures 3 and 4: relative entropy of released contingency tables against epsilon.

Hardt, Ligett and McSherry (NIPS 2012), section 3.2: MWEM, with and without a noisy start, against
the Fourier mechanism of Barak et al. whose observations are combined by multiplicative weights.
Figure 3: mildew, rochdale and czech, all marginals of three attributes, means of 100 runs.
Figure 4: the National Long Term Care Survey with 20, 30 and 40 measured queries, marginals of two
and of three attributes, means of 10 runs.

Epsilon is for one record replaced, where the paper adds or removes one: a parity moves by 2 here
and by 1 there, so epsilon here buys what half of it does there, for all methods alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.histogram import Histogram
from dualquery.mechanism import Budget, Session, Task
from dualquery.privacy.curator import Curator
from dualquery.privacy.randomness import randomness
from dualquery.queries.fourier import asked_sets
from dualquery.queries.marginals import all_marginals
from dualquery.queries.parities import Parities
from experiments.mwem_tables import Study
from mwem import Barak, Mwem, relative_entropy
from mwem.barak import Cells, measured_coefficients
from mwem.representations import Histogram as FittedHistogram

BARAK = "Barak et al., multiplicative weights"
REPETITIONS = 10


@dataclass(frozen=True)
class Method:
    """A curve of the figures.

    Parameters
    ----------
    iterations
        T of MWEM; None for the mechanism of Barak et al.
    repetitions
        Passes over the measurements.
    noisy_start
        Whether MWEM starts from a noisy count of every cell.
    average
        Whether MWEM's average distribution is meant; only Figure 1 as printed.
    """

    iterations: int | None
    repetitions: int = REPETITIONS
    noisy_start: bool = False


def relative_entropy_of(
    study: Study, way: int, method: Method, epsilon: float, seed: int
) -> dict[str, Any]:
    """Run a method once; return the relative entropy of its table, in nats."""
    table = fourier_table if method.iterations is None else mwem_table
    fitted = table(study, way, method, epsilon, seed)
    return {
        "table": study.title,
        "way": way,
        "epsilon": epsilon,
        "seed": seed,
        "relative_entropy": relative_entropy(exact_table(study), fitted),
    }


def exact_table(study: Study) -> NDArray[np.float64]:
    """Return the number of rows in every cell: an axis an attribute. Not private."""
    return study.data.records.total(Histogram(study.data.schema.domain), 1).astype(np.float64)


def mwem_table(
    study: Study, way: int, method: Method, epsilon: float, seed: int
) -> NDArray[np.float64]:
    """Return the share of every cell after MWEM on all parities of up to ``way`` attributes."""
    assert method.iterations is not None
    mechanism = Mwem(
        iterations=method.iterations,
        repetitions=method.repetitions,
        noisy_init=method.noisy_start,
        representation="histogram",
    )
    task = Task(Parities(study.data.schema.domain, way), study.data.n)
    plan = mechanism.plan(task, Budget(epsilon, 0.0))
    curator = Curator(study.data.records, task.queries, plan.schedule, randomness(seed))
    _, distribution = mechanism.fit(task, plan, curator, Session(public_seed=seed))
    assert isinstance(distribution, FittedHistogram)
    return distribution.shares()


def fourier_table(
    study: Study, way: int, method: Method, epsilon: float, seed: int
) -> NDArray[np.float64]:
    """Return the share of every cell, fitted to noisy counts of all parities at once."""
    workload = all_marginals(study.data.schema.domain, way)
    mechanism = Barak(fit="weights", repetitions=method.repetitions)
    task = Task(workload, study.data.n)
    plan = mechanism.plan(task, Budget(epsilon, 0.0))
    statistics = mechanism.statistics(workload)
    curator = Curator(study.data.records, statistics, plan.schedule, randomness(seed))
    coefficients = measured_coefficients(task.n, plan, curator)
    shares = Cells(asked_sets(workload).workload).multiply_weights(coefficients, method.repetitions)
    return shares.reshape(exact_table(study).shape)
