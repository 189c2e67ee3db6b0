"""The logistic model of a target column, fitted to noisy marginals of it and two others.

Of all models of the target given the other columns, it is the one of largest entropy whose
marginals are near the noisy ones (Berger, Della Pietra and Della Pietra, "A maximum entropy
approach to natural language processing", Computational Linguistics 22, 1996): with records x of the
mixture it minimises the mean of ``log sum_v exp(z_v(x))`` less the noisy shares times their
coefficients, and ``r n s^2 / 2`` times the squares of these. The last term allows shares to miss
noisy ones, whose deviation is s: with r = 1 as n records from equally likely targets would miss
them. That trusts entropy too much; how much of it holds is asked of the measurement itself, by
splitting its noise (`trials`). All of it is post-processing of noisy numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes, column_values
from dualquery.mechanisms.matrix.trials import Trial, choose_trial, split
from dualquery.models.labelled import LabelledMixture, cells_of_pairs
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

_TRUST = (0.3, 0.1, 0.03, 0.01)
"""Values of r that are tried, the most entropy first."""

_MOST_RECORDS, _MOST_ENTRIES = 50_000, 1 << 24
"""Records of the mixture that the model is fitted on, and these times pairs times values."""

_FEWEST_RECORDS = 1000

_STEPS = 150
"""Of the quasi-Newton search (L-BFGS), at most."""


def with_labels(
    mixture: ProductMixture,
    workload: Workload,
    noisy: Float64,
    deviations: Float64,
    n: int,
    generator: np.random.Generator,
) -> ProductMixture | LabelledMixture:
    """Return the mixture with a logistic model of the workload's target, if it has one.

    Not from fewer than `_FEWEST_RECORDS` records, nor where the target has one other column only.

    Parameters
    ----------
    mixture
        Fitted to the same numbers.
    workload
        The queries; a target is what `target_marginals` says of itself.
    noisy, deviations
        float64, shape ``(m,)``: their unbiased noisy answers, and the deviations of the noise.
    n
        Public number of rows.
    generator
        Public randomness.
    """
    if workload.description.get("kind") != "target marginals":
        return mixture
    fit = _Fit.of(mixture, workload, n, generator)
    if fit is None:
        return mixture
    shown, held_back = split(noisy, deviations, generator)
    compared, trials = fit.shares(held_back), []
    for trust in _TRUST:
        found = fit.means(fit.run(fit.shares(shown), fit.variances(deviations) * trust))
        trials.append(Trial(trust, found, float(np.mean((found - compared) ** 2))))
    trust = choose_trial(trials).pull
    found = fit.run(fit.shares(noisy), fit.variances(deviations) * trust)
    return LabelledMixture(
        mixture.domain,
        mixture.weights,
        mixture.chances,
        np.array(fit.target, np.int64),
        fit.pairs,
        found.astype(np.float32),
    )


class _Fit:
    """Records of the mixture, and where each query's share belongs."""

    def __init__(
        self, values: Int64, target: int, pairs: Int64, places: tuple[Int64, Int64],
        sizes: Int64, n: int, cells: Int64,
    ) -> None:  # fmt: skip
        from scipy.sparse import csr_array

        self.target, self.pairs, self.places, self.n = target, pairs, places, n
        self.shape = (int(sizes[pairs].prod(axis=1).sum()), int(sizes[target]))
        starts = np.arange(0, cells.size + 1, cells.shape[1])
        ones = np.full(cells.size, 1.0 / len(values))
        self.records = csr_array((ones, cells.ravel(), starts), shape=(len(values), self.shape[0]))
        self.transposed = self.records.T.tocsr()
        self.present = self.transposed @ np.ones(len(values))

    @staticmethod
    def of(
        mixture: ProductMixture, workload: Workload, n: int, generator: np.random.Generator
    ) -> _Fit | None:
        """Return the fit of a workload; None if it is too large."""
        domain = mixture.domain
        sizes, target = axis_sizes(domain), int(workload.description["target"])
        columns, values = _cells(workload)
        own = columns == target
        others = columns[~own].reshape(len(workload), -1)
        worth = values[~own].reshape(len(workload), -1)
        pairs, which = np.unique(others[:, [0, -1]], axis=0, return_inverse=True)
        records = min(_MOST_RECORDS, n, _MOST_ENTRIES // (len(pairs) * int(sizes[target])))
        if records < _FEWEST_RECORDS or workload.way == 2:
            return None
        drawn = column_values(mixture.sample(records, generator), domain)
        starts = np.concatenate(([0], np.cumsum(sizes[pairs].prod(axis=1))))
        cell = starts[which.ravel()] + worth[:, 0] * sizes[others[:, 1]] + worth[:, 1]
        places = cell.astype(np.int64), values[own]
        cells = cells_of_pairs(drawn, pairs, domain)
        return _Fit(drawn, target, pairs, places, sizes, n, cells)

    def shares(self, answers: Float64) -> Float64:
        """Return answers by cell and value, each cell moved to how often the records have it."""
        found = np.zeros(self.shape)
        found[self.places] = answers
        found += ((self.present - found.sum(axis=1)) / self.shape[1])[:, None]
        return found

    def variances(self, deviations: Float64) -> Float64:
        """Return n times the variances, by cell and value."""
        found = np.zeros(self.shape)
        found[self.places] = self.n * deviations**2
        return found

    def chances(self, coefficients: Float64) -> tuple[Float64, Float64]:
        """Return each record's chances of the values, and the logarithms of their sums."""
        logits = (self.records @ coefficients) * self.records.shape[0]
        top = logits.max(axis=1, keepdims=True)
        parts = np.exp(logits - top)
        sums = parts.sum(axis=1, keepdims=True)
        return parts / sums, (top + np.log(sums)).ravel()

    def means(self, coefficients: Float64) -> Float64:
        """Return the shares of the model's marginals, by cell and value."""
        found: Float64 = self.transposed @ self.chances(coefficients)[0]
        return found

    def run(self, shares: Float64, penalty: Float64) -> Float64:
        """Minimise, from coefficients 0: float64, shape ``(cells, values)``."""
        from scipy.optimize import minimize

        def objective(flat: Float64) -> tuple[float, Float64]:
            coefficients = flat.reshape(self.shape)
            chances, logs = self.chances(coefficients)
            slopes = self.transposed @ chances - shares + penalty * coefficients
            value = logs.mean() - (shares * coefficients).sum()
            return value + 0.5 * (penalty * coefficients**2).sum(), slopes.ravel()

        found = minimize(
            objective, np.zeros(self.shape).ravel(), jac=True, method="L-BFGS-B",
            options={"maxiter": _STEPS},
        )  # fmt: skip
        solution: Float64 = found.x.reshape(self.shape)
        return solution


def _cells(workload: Workload) -> tuple[Int64, Int64]:
    """Return the columns of each cell, increasing, and their values: int64, shape ``(m, way)``."""
    domain, literals = workload.domain, workload.literals.astype(np.int64)
    columns = domain.column_of_bit[literals >> 1].astype(np.int64)
    binary = domain.sizes[columns] == 1
    values = np.where(binary, 1 - (literals & 1), (literals >> 1) - domain.offsets[columns])
    order = np.argsort(columns, axis=1, kind="stable")
    return np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)
