"""The logistic model of a target column, fitted to noisy marginals of it and two others.

Of all models of the target given the other columns it has the largest entropy with marginals near
the noisy ones (Berger, Della Pietra and Della Pietra, Computational Linguistics 22, 1996). Where a
cell has the share p of the records and a value of the target the chance q, a coefficient changes
its share by ``w = p q (1 - q)`` times as much. With noise of deviation s and a prior variance
``t^2 = c / sqrt(w)`` of coefficients the penalty is ``s^2 / (t^2 w)``; c is chosen by splitting the
noise. Post-processing of noisy numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes, column_values
from dualquery.mechanisms.adaptive.evidence import split
from dualquery.models.labelled import LabelledMixture, cells_of_pairs
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload
from dualquery.runtime.progress import NO_PROGRESS, part_of

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

_SIZES = (0.002, 0.005, 0.0125, 0.03)
"""Values of c that are tried, the most entropy first."""

_NEARER = 0.7
"""A value is taken if its model is nearer to what was held back than the last one taken, by more
than this part of the mean square between the two."""

_LEAST = 1e-9
"""Least w of a cell, which no record may have."""

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
    progress: Callable[[int, int], None] = NO_PROGRESS.step,
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
    progress
        Called with the steps that are done, and their most.
    """
    if workload.description.get("kind") != "target marginals":
        return mixture
    fit = _Fit.of(mixture, workload, n, generator)
    if fit is None:
        return mixture
    shown, held_back = (fit.shares(half) for half in split(noisy, deviations, generator))
    changes = fit.changes(noisy)
    penalty = fit.variances(deviations) / np.sqrt(changes)
    found, size, best = np.zeros(fit.shape), _SIZES[0], np.full(fit.shape, np.nan)
    steps = (len(_SIZES) + 1) * _STEPS
    for part, tried in enumerate(_SIZES):
        told = part_of(progress, part * _STEPS, steps)
        found = fit.run(shown, penalty / tried, changes, found, told)
        means = fit.means(found)
        # Differences of errors are free of the noise that they have in common. Were one of the two
        # the truth, they would differ by the whole mean square between them.
        nearer = ((best - held_back) ** 2 - (means - held_back) ** 2).mean()
        if not nearer <= _NEARER * ((best - means) ** 2).mean():
            size, best = tried, means
    told = part_of(progress, len(_SIZES) * _STEPS, steps)
    found = fit.run(fit.shares(noisy), penalty / size, changes, found, told)
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
        sizes: Int64, cells: Int64,
    ) -> None:  # fmt: skip
        from scipy.sparse import csr_array

        self.target, self.pairs, self.places = target, pairs, places
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
        return _Fit(drawn, target, pairs, places, sizes, cells)

    def shares(self, answers: Float64) -> Float64:
        """Return answers by cell and value, each cell moved to how often the records have it."""
        found = np.zeros(self.shape)
        found[self.places] = answers
        found += ((self.present - found.sum(axis=1)) / self.shape[1])[:, None]
        return found

    def changes(self, answers: Float64) -> Float64:
        """Return by cell and value how much its share changes with its coefficient."""
        of_value = np.clip(self.shares(answers).mean(axis=0), _LEAST, None)
        of_value /= of_value.sum()
        found: Float64 = np.outer(self.present, of_value * (1.0 - of_value))
        return np.maximum(found, _LEAST)

    def variances(self, deviations: Float64) -> Float64:
        """Return the variances of the shares, by cell and value."""
        found = np.zeros(self.shape)
        found[self.places] = deviations**2
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

    def run(
        self,
        shares: Float64,
        penalty: Float64,
        changes: Float64,
        start: Float64,
        progress: Callable[[int, int], None],
    ) -> Float64:
        """Minimise, from some coefficients: float64, shape ``(cells, values)``."""
        from scipy.optimize import minimize

        units = 1.0 / np.sqrt(changes + penalty)
        done = itertools.count()
        progress(next(done), _STEPS)

        def objective(flat: Float64) -> tuple[float, Float64]:
            coefficients = flat.reshape(self.shape) * units
            chances, logs = self.chances(coefficients)
            slopes = self.transposed @ chances - shares + penalty * coefficients
            value = logs.mean() - (shares * coefficients).sum()
            value += 0.5 * (penalty * coefficients**2).sum()
            return value, (slopes * units).ravel()

        found = minimize(
            objective, (start / units).ravel(), jac=True, method="L-BFGS-B",
            callback=lambda _: progress(next(done), _STEPS), options={"maxiter": _STEPS},
        )  # fmt: skip
        solution: Float64 = found.x.reshape(self.shape) * units
        return solution


def _cells(workload: Workload) -> tuple[Int64, Int64]:
    """Return the columns of each cell, increasing, and their values: int64, shape ``(m, way)``."""
    domain, literals = workload.domain, workload.literals.astype(np.int64)
    columns = domain.column_of_bit[literals >> 1].astype(np.int64)
    binary = domain.sizes[columns] == 1
    values = np.where(binary, 1 - (literals & 1), (literals >> 1) - domain.offsets[columns])
    order = np.argsort(columns, axis=1, kind="stable")
    return np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)
