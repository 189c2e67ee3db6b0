"""The logistic model of a target column, fitted to noisy marginals of it and two others.

It has the largest entropy with marginals near the noisy ones (Berger, Della Pietra and Della
Pietra, Computational Linguistics 22, 1996). Where a cell has the share p of the records and a value
of the target the chance q, a coefficient changes its share by ``w = p q (1 - q)``. With noise of
deviation s and a prior variance ``c / sqrt(w)`` the penalty is ``s^2 / (c sqrt(w))``. With
coefficients 0 the target has the mixture's shares.
"""

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes, column_values
from dualquery.models.labelled import LabelledMixture, cells_of_pairs
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

_SIZE = 0.01
"""c: ``python -m experiments learning`` has areas within .021 of those of a search of four."""

_LEAST = 1e-9
"""Least w of a cell, which no record may have; least share of a value."""

_MOST_RECORDS, _MOST_ENTRIES = 50_000, 1 << 24
"""Records of the mixture that the model is fitted on, and these times pairs times values."""

_STEPS = 150
"""Of the quasi-Newton search (L-BFGS), at most."""


def with_labels(
    mixture: ProductMixture,
    workload: Workload,
    noisy: Float64,
    deviations: Float64,
    n: int,
    generator: np.random.Generator,
    progress: Callable[[int, int], None],
) -> ProductMixture | LabelledMixture:
    """Return a mixture with a logistic model of the workload's target, if it has one.

    ``noisy`` are unbiased answers, ``deviations`` their noise: float64, ``(m,)``.
    """
    if workload.description.get("kind") != "target marginals" or workload.way == 2:
        return mixture
    fit = _Fit(mixture, workload, n, generator)
    if not fit.records.shape[0]:
        return mixture
    penalty = fit.placed(deviations**2) / np.sqrt(fit.changes) / _SIZE
    found = fit.run(fit.shares(noisy), penalty, progress)
    logistic = np.array(fit.target, np.int64), fit.pairs, found.astype(np.float32)
    return LabelledMixture(mixture.domain, mixture.weights, mixture.chances, *logistic)


class _Fit:
    """Records of the mixture, and where each query's share belongs."""

    def __init__(
        self, mixture: ProductMixture, workload: Workload, n: int, generator: np.random.Generator
    ) -> None:
        from scipy.sparse import csr_array

        domain = mixture.domain
        sizes, self.target = axis_sizes(domain), int(workload.description["target"])
        columns, values = _cells(workload)
        own = columns == self.target
        others = columns[~own].reshape(len(workload), -1)
        worth = values[~own].reshape(len(workload), -1)
        self.pairs, which = np.unique(others[:, [0, -1]], axis=0, return_inverse=True)
        starts = np.concatenate(([0], np.cumsum(sizes[self.pairs].prod(axis=1))))
        self.first, self.shape = int(starts[1]), (int(starts[-1]), int(sizes[self.target]))
        cell = starts[which.ravel()] + worth[:, 0] * sizes[others[:, 1]] + worth[:, 1]
        self.places = cell.astype(np.int64), values[own]
        records = min(_MOST_RECORDS, n, _MOST_ENTRIES // (len(self.pairs) * self.shape[1]))
        drawn = column_values(mixture.sample(records, generator), domain)
        cells = cells_of_pairs(drawn, self.pairs, domain)
        rows = np.arange(0, cells.size + 1, cells.shape[1])
        ones = np.full(cells.size, 1.0 / max(records, 1))
        self.records = csr_array((ones, cells.ravel(), rows), shape=(records, self.shape[0]))
        self.transposed = self.records.T.tocsr()
        self.present = self.transposed @ np.ones(records)
        bits = slice(*domain.offsets[[self.target, self.target + 1]])
        of_value = np.clip(mixture.weights @ mixture.chances[bits].T / mixture.weights.sum(), 0, 1)
        if len(of_value) == 1:
            of_value = np.array([1.0 - of_value[0], of_value[0]])
        self.constant = np.log(np.maximum(of_value, _LEAST))
        self.changes = np.maximum(np.outer(self.present, of_value * (1.0 - of_value)), _LEAST)

    def shares(self, answers: Float64) -> Float64:
        """Return answers by cell and value, each cell moved to how often the records have it."""
        found = self.placed(answers)
        found += ((self.present - found.sum(axis=1)) / self.shape[1])[:, None]
        return found

    def placed(self, numbers: Float64) -> Float64:
        found = np.zeros(self.shape)
        found[self.places] = numbers
        return found

    def run(self, shares: Float64, penalty: Float64, step: Callable[[int, int], None]) -> Float64:
        """Return the coefficients: float64, shape ``(cells, values)``."""
        from scipy.optimize import minimize
        from scipy.special import logsumexp

        units = 1.0 / np.sqrt(self.changes + penalty)
        done = itertools.count()
        step(next(done), _STEPS)

        def objective(flat: Float64) -> tuple[float, Float64]:
            coefficients = flat.reshape(self.shape) * units
            logits = self.constant + (self.records @ coefficients) * self.records.shape[0]
            logs = logsumexp(logits, axis=1, keepdims=True)
            slopes = self.transposed @ np.exp(logits - logs) - shares + penalty * coefficients
            value = logs.mean() - (shares * coefficients).sum()
            value += 0.5 * (penalty * coefficients**2).sum()
            return value, (slopes * units).ravel()

        found = minimize(
            objective, np.zeros(units.size), jac=True, method="L-BFGS-B",
            callback=lambda _: step(next(done), _STEPS), options={"maxiter": _STEPS},
        )  # fmt: skip
        coefficients = np.asarray(found.x.reshape(self.shape) * units)
        coefficients[: self.first] += self.constant  # every record is in one cell of a pair
        return coefficients


def _cells(workload: Workload) -> tuple[Int64, Int64]:
    """Return the columns of each cell, increasing, and their values: int64, shape ``(m, way)``."""
    domain, literals = workload.domain, workload.literals.astype(np.int64)
    columns = domain.column_of_bit[literals >> 1].astype(np.int64)
    binary = domain.sizes[columns] == 1
    values = np.where(binary, 1 - (literals & 1), (literals >> 1) - domain.offsets[columns])
    order = np.argsort(columns, axis=1, kind="stable")
    return np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)
