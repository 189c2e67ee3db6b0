"""The best unbiased estimates of linear functions of a table, from noisy numbers about its cells.

Generalised least squares: among all combinations v of the numbers y with ``A' v = f``, so that
``v y`` has the mean ``f p`` for all shares p of the cells, the one of least variance (Gauss and
Markov; Aitken 1936). If there is none, f is outside the span of what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.cell_evidence import CellEvidence

Float64: TypeAlias = NDArray[np.float64]

_RANK, _MISFIT = 1e-11, 1e-7
"""Relative weight of a product that is taken for 0; relative distance from the span likewise."""

_STEPS, _SMALL, _ROUNDING = 3_000, 1e-11, 1e-15
"""Of the iterative solver: steps, the relative gradient at which it ends, and what is rounding."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of ``q`` linear functions from ``m`` numbers."""

    values: Float64  # shape ``(q,)``
    loadings: Float64  # combinations of the numbers, each times its deviation: shape ``(m, q)``
    spanned: NDArray[np.bool_]  # in the span, ``(q,)``; the others' entries mean nothing
    absent: Float64  # what a row that is not there contributes, ``(q,)``; NaN where unknown
    kurtosis: Float64  # excess kurtosis of the numbers' noise, ``(m,)``

    def take(self, places: Sequence[int]) -> Estimates:
        """Return the estimates at some places, repeats allowed."""
        at = list(places)
        return Estimates(
            self.values[at], self.loadings[:, at], self.spanned[at], self.absent[at], self.kurtosis
        )

    def over(self, whole: int) -> Estimates:
        """Return the estimates as parts of one of them, to first order in its noise."""
        parts = self.values / self.values[whole]
        loadings = self.loadings - self.loadings[:, [whole]] * parts
        return replace(self, values=parts, loadings=loadings / self.values[whole])

    def times(self, factor: float) -> Estimates:
        """Return the estimates in another unit."""
        return replace(self, values=factor * self.values, loadings=factor * self.loadings)

    @cached_property
    def covariance(self) -> Float64:
        """Of the estimates: float64, shape ``(q, q)``."""
        return self.loadings.T @ self.loadings

    def critical(self, level: float, combination: Float64 | None = None) -> float:
        """Return the two-sided quantile of a combination's noise, in standard deviations.

        Corrected by the noise's kurtosis (Cornish and Fisher 1938). ``combination`` is float64,
        shape ``(q,)``; None for the first estimate.
        """
        z = NormalDist().inv_cdf((1.0 + level) / 2.0)
        mixed = self.loadings[:, 0] if combination is None else self.loadings @ combination
        mixed = mixed / (np.abs(mixed).max(initial=0.0) or 1.0)  # no power is out of range
        fourth, variance = float(self.kurtosis @ mixed**4), float(mixed @ mixed)
        excess = fourth / variance**2 if variance > 0 else 0.0
        return z + max(z**3 - 3.0 * z, 0.0) / 24.0 * excess


class LeastSquares:
    """Estimates from evidence; ``total_known``: the shares of the cells add up to 1."""

    def __init__(self, evidence: CellEvidence, total_known: bool) -> None:
        self._evidence, self._total_known = evidence, total_known
        pairs = [*zip(evidence.factors, evidence.chosen, strict=True)]
        means: Float64 = math.prod(factors.mean(axis=1)[chosen] for factors, chosen in pairs)
        self._levels = means - evidence.less
        # For each column an orthonormal basis, first the constant vector, and the factors in it.
        self._bases = [_contrasts(each.shape[1]).T for each in evidence.factors]
        self._factors = [each @ basis for (each, _), basis in zip(pairs, self._bases, strict=True)]
        squares = np.zeros(tuple(len(each) for each in self._factors))
        self._places = np.ravel_multi_index(tuple(evidence.chosen), squares.shape)
        squares.flat[self._places] = precisions = evidence.deviations**-2.0
        # Jacobi's preconditioner: with it a whole marginal needs one step.
        weights: Float64 = _along(squares[None], [(each**2).T for each in self._factors])[0]
        weights.flat[0] = 0.0 if total_known else weights.size * precisions @ self._levels**2
        weights[weights <= _RANK * weights.max(initial=0.0)] = np.inf
        self._scales = weights**-0.5

    def estimate(self, functions: Float64) -> Estimates:
        """Estimate functions of the cells: float64, shape ``(q, cells)``."""
        # With a known total, a function or a number less its mean over the cells says as much.
        evidence, known = self._evidence, float(self._total_known)
        means = known * functions.mean(axis=1)
        rest, whole = functions - means[:, None], np.linalg.norm(functions, axis=1)
        loadings, misfit = self._solve(rest)
        combinations = loadings / evidence.deviations[:, None]
        absent = np.where(combinations != 0, combinations * evidence.absent[:, None], 0.0)
        return Estimates(
            values=means + combinations.T @ (evidence.values - known * self._levels),
            loadings=loadings,
            spanned=misfit <= _MISFIT * np.linalg.norm(rest, axis=1) + _ROUNDING * whole,
            absent=absent.sum(axis=0),
            kurtosis=evidence.kurtosis,
        )

    def _solve(self, functions: Float64) -> tuple[Float64, Float64]:
        """Return the shortest loadings whose sums are the functions, and the lengths of misfits."""
        # By conjugate gradients (Hestenes and Stiefel 1952), for all functions at once.
        less, deviations = self._evidence.less, self._evidence.deviations
        factors, scales, places = self._factors, self._scales, self._places
        turned, shape = [each.T for each in factors], tuple(len(each) for each in factors)
        cells = tuple(range(1, 1 + len(factors)))

        def to_cells(loadings: Float64) -> Float64:
            combinations = loadings / deviations
            found = np.zeros((len(loadings), math.prod(shape)))
            found[:, places] = combinations
            found[:, 0] -= combinations @ less
            return _along(found.reshape(-1, *shape), turned) * scales

        def to_numbers(some: Float64) -> Float64:
            found = _along(some * scales, factors).reshape(len(some), -1)
            return np.asarray((found[:, places] - found[:, :1] * less) / deviations)

        wanted = _along(functions.reshape(-1, *scales.shape), [each.T for each in self._bases])
        rest = wanted * scales
        loadings, gradient = np.zeros((len(functions), len(places))), to_numbers(rest)
        direction, square = gradient, (gradient**2).sum(axis=1)
        rounding = _ROUNDING**2 * scales.size * (rest**2).sum(axis=cells)
        enough = np.maximum(_SMALL**2 * square, rounding)
        for _ in range(_STEPS):
            if (square <= enough).all():
                break
            change = to_cells(direction)
            step = _ratio(square, (change**2).sum(axis=cells))
            loadings = loadings + step[:, None] * direction
            rest = rest - step.reshape(-1, *(1 for _ in factors)) * change
            gradient = to_numbers(rest)
            before, square = square, (gradient**2).sum(axis=1)
            direction = gradient + _ratio(square, before)[:, None] * direction
        missing = np.divide(rest, scales, out=wanted, where=scales > 0)
        return loadings.T, np.sqrt((missing**2).sum(axis=cells))


def _along(table: Float64, matrices: Sequence[Float64]) -> Float64:
    """Return a list of tables with each of their axes multiplied by a matrix from the left."""
    for matrix in matrices:
        table = np.tensordot(table, matrix, axes=(1, 1))
    return table


def _contrasts(values: int) -> Float64:
    """Return Helmert's orthonormal basis as rows: a constant, then values against earlier ones."""
    rows = np.tri(values, k=-1) - np.diag(np.arange(values))
    rows[0] = 1.0
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _ratio(above: Float64, below: Float64) -> Float64:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def fieller(
    numerator: float, denominator: float, covariance: Float64, critical: float
) -> tuple[float, float] | None:
    """Return the interval of a ratio of two means, from estimates with normal noise.

    The ratios r for which ``numerator - r denominator`` is at most ``critical`` of its standard
    deviations from 0 (Fieller 1954). None where these are no interval: the denominator may be 0.
    ``covariance`` is float64 ``(2, 2)``, of the two estimates.
    """
    square = critical**2
    a = denominator**2 - square * covariance[1, 1]
    b = numerator * denominator - square * covariance[0, 1]
    c = numerator**2 - square * covariance[0, 0]
    if a <= 0.0 or denominator <= 0.0:
        return None
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a
