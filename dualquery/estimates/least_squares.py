"""The best unbiased estimates of linear functions of a table, from noisy numbers about its cells.

Generalised least squares: among all combinations v of the numbers y with ``A' v = f``, so that
``v y`` has the mean ``f p`` whatever the shares p of the cells, the one of least variance
(Gauss and Markov; Aitken 1936). If no v has that property, f is outside the span of what was
measured, and there is no unbiased estimate. No p is assumed, only that its sum is known to be 1
where the number of rows is public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.evidence import Evidence

Float64: TypeAlias = NDArray[np.float64]

_FEW, _MANY = 256, 1_024
"""Cells up to which one factorisation serves all functions: at once, and once it pays."""

_PAYS = 24
"""Functions whose iterations cost as much as a factorisation of `_MANY` cells."""

_RANK = 1e-11
"""Relative size of an eigenvalue that is taken for 0: numbers' variances differ by far less."""

_MISFIT = 1e-7
"""Relative distance from the span below which a function is in it."""

_STEPS = 3_000
"""Of the iterative solver."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of ``q`` linear functions.

    Parameters
    ----------
    values
        float64, shape ``(q,)``.
    loadings
        float64, shape ``(m, q)``: combinations of the numbers, each times its deviation; so the
        covariance of two estimates is the product of their columns.
    spanned
        bool, shape ``(q,)``: whether the function is in the span. The others' entries mean nothing.
    absent
        float64, shape ``(q,)``: what a row that is not there contributes; NaN where unknown.
    kurtosis
        float64, shape ``(m,)``: excess kurtosis of the numbers' noise.
    """

    values: Float64
    loadings: Float64
    spanned: NDArray[np.bool_]
    absent: Float64
    kurtosis: Float64

    def take(self, places: Sequence[int]) -> Estimates:
        """Return the estimates at some places, repeats allowed."""
        at = list(places)
        return Estimates(
            self.values[at],
            self.loadings[:, at],
            self.spanned[at],
            self.absent[at],
            self.kurtosis,
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

    @property
    def gaussian(self) -> bool:
        """Whether all of the numbers' noise is."""
        return not self.kurtosis.any()

    def critical(self, level: float, combination: Float64 | None = None) -> float:
        """Return how many standard deviations a combination of estimates may be off.

        For noise other than Gaussian the quantile is corrected by the kurtosis of the combination
        (Cornish and Fisher 1938), which for Laplace noise is a little more than enough.

        Parameters
        ----------
        level
            Chance that it is off by less.
        combination
            float64, shape ``(q,)``; None for the first estimate.
        """
        z = NormalDist().inv_cdf((1.0 + level) / 2.0)
        mixed = self.loadings[:, 0] if combination is None else self.loadings @ combination
        fourth, variance = float(self.kurtosis @ mixed**4), float(mixed @ mixed)
        excess = fourth / variance**2 if variance > 0 else 0.0
        return z + max(z**3 - 3.0 * z, 0.0) / 24.0 * excess


class LeastSquares:
    """Estimates from the evidence about the cells of some columns.

    Parameters
    ----------
    evidence
        The numbers.
    total_known
        Whether the shares of the cells are known to add up to 1.
    """

    def __init__(self, evidence: Evidence, total_known: bool) -> None:
        self._evidence = evidence
        self._cells = evidence.functionals.shape[1]
        lines = evidence.functionals
        # With a known total, a number less its mean over the cells says as much.
        self._means = (
            lines.sum(axis=1) / self._cells if total_known else np.zeros(len(lines.indptr) - 1)
        )
        self._total_known = total_known
        self._asked = 0

    def estimate(self, functions: Float64) -> Estimates:
        """Estimate functions of the cells: float64, shape ``(q, cells)``."""
        evidence = self._evidence
        means = functions.mean(axis=1) if self._total_known else np.zeros(len(functions))
        centred = functions - means[:, None]
        self._asked += len(functions)
        dense = self._cells <= _FEW or (self._cells <= _MANY and self._asked > _PAYS)
        loadings, misfit = self._dense(centred) if dense else self._sparse(centred)
        length = np.linalg.norm(functions, axis=1)
        combinations = loadings / evidence.deviations[:, None]
        absent = np.where(combinations != 0, combinations * evidence.absent[:, None], 0.0)
        return Estimates(
            values=means + combinations.T @ (evidence.values - self._means),
            loadings=loadings,
            spanned=misfit <= _MISFIT * np.maximum(length, 1e-300),
            absent=absent.sum(axis=0),
            kurtosis=evidence.kurtosis,
        )

    @cached_property
    def _factors(self) -> tuple[Float64, Float64, Float64]:
        """The centred numbers over their deviations; eigenvectors and values of their square."""
        lines = (self._evidence.functionals.toarray() - self._means[:, None]) / (
            self._evidence.deviations[:, None]
        )
        values, vectors = np.linalg.eigh(lines.T @ lines)
        kept = values > _RANK * max(float(values[-1]), 0.0)
        return lines, vectors[:, kept], values[kept]

    def _dense(self, functions: Float64) -> tuple[Float64, Float64]:
        lines, vectors, values = self._factors
        inside = vectors.T @ functions.T
        loadings = lines @ (vectors @ (inside / values[:, None]))
        misfit: Float64 = np.linalg.norm(functions.T - vectors @ inside, axis=0)
        return loadings, misfit

    def _sparse(self, functions: Float64) -> tuple[Float64, Float64]:
        from scipy.sparse.linalg import LinearOperator, lsmr

        lines, deviations = self._evidence.functionals, self._evidence.deviations

        def to_cells(loading: Float64) -> Any:
            combination = loading.ravel() / deviations
            return lines.T @ combination - self._means @ combination

        def to_numbers(cells: Float64) -> Any:
            flat = cells.ravel()
            return (lines @ flat - self._means * flat.sum()) / deviations

        operator = LinearOperator(lines.T.shape, matvec=to_cells, rmatvec=to_numbers)
        found = [
            lsmr(operator, each, atol=1e-12, btol=1e-10, conlim=0, maxiter=_STEPS)[0]
            for each in functions
        ]
        misfit = [
            np.linalg.norm(to_cells(u) - each) for u, each in zip(found, functions, strict=True)
        ]
        return np.stack(found, axis=1), np.array(misfit)


def fieller(
    numerator: float, denominator: float, covariance: Float64, critical: float
) -> tuple[float, float] | None:
    """Return the interval of a ratio of two means, from estimates with normal noise.

    The ratios r for which ``numerator - r denominator`` is at most ``critical`` of its standard
    deviations from 0 (Fieller 1954). None where these are no interval: the denominator may be 0.

    Parameters
    ----------
    numerator, denominator
        The estimates.
    covariance
        float64, shape ``(2, 2)``, of the two.
    critical
        In standard deviations.
    """
    square = critical**2
    a = denominator**2 - square * covariance[1, 1]
    b = numerator * denominator - square * covariance[0, 1]
    c = numerator**2 - square * covariance[0, 0]
    if a <= 0.0 or denominator <= 0.0:
        return None
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a
