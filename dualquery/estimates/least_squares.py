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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from dualquery.estimates.evidence import Evidence

Float64: TypeAlias = NDArray[np.float64]

_RANK = 1e-11
"""Relative size of a block's weight that is taken for 0: variances differ by far less."""

_MISFIT = 1e-7
"""Relative distance from the span below which a function is in it."""

_STEPS, _SMALL = 3_000, 1e-11
"""Of the iterative solver, and the relative size of a residual at which it ends."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of ``q`` linear functions.

    Parameters
    ----------
    values
        float64, shape ``(q,)``.
    loadings
        float64, shape ``(m, q)``: combinations of the numbers, each times its deviation.
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
        parts = self.values[at], self.loadings[:, at], self.spanned[at], self.absent[at]
        return Estimates(*parts, self.kurtosis)

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

        For noise other than Gaussian it is corrected by the kurtosis (Cornish and Fisher 1938).
        ``combination`` is float64, shape ``(q,)``; None for the first estimate.
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
        self._total_known = total_known
        self._cells = math.prod(factors.shape[1] for factors in evidence.factors)
        # With a known total, a number less its mean over the cells says as much.
        products = [
            factors.mean(axis=1)[chosen]
            for factors, chosen in zip(evidence.factors, evidence.chosen, strict=True)
        ]
        self._levels: Float64 = math.prod(products) - evidence.less
        self._means = self._levels if total_known else np.zeros_like(self._levels)

    def estimate(self, functions: Float64) -> Estimates:
        """Estimate functions of the cells: float64, shape ``(q, cells)``."""
        evidence = self._evidence
        means = functions.mean(axis=1) if self._total_known else np.zeros(len(functions))
        centred = functions - means[:, None]
        loadings, misfit = self._solve(centred)
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
    def _bases(self) -> tuple[list[Float64], list[Float64], Float64]:
        """For each column an orthonormal basis, and factors in it; the scales of their products.

        The first of a basis is constant, so products fall into blocks, one a set of columns. Scales
        make the mean square of the numbers on a block 1: a whole marginal then needs one step.
        """
        evidence, count = self._evidence, len(self._evidence.factors)
        bases = [helmert(each.shape[1], full=True).T for each in evidence.factors]
        factors = [each @ basis for each, basis in zip(evidence.factors, bases, strict=True)]
        squares = evidence.deviations**-2.0
        parts = [
            np.stack((each[:, 0] ** 2, (each[:, 1:] ** 2).sum(axis=1)))[:, chosen]
            for each, chosen in zip(factors, evidence.chosen, strict=True)
        ]
        weights = np.zeros((2,) * count)
        for block in np.ndindex(*weights.shape):
            free = math.prod(
                each.shape[1] - 1 for each, in_it in zip(bases, block, strict=True) if in_it
            )
            product = math.prod(part[in_it] for part, in_it in zip(parts, block, strict=True))
            weights[block] = squares @ product / max(free, 1)
        constant = 0.0 if self._total_known else self._cells * squares @ self._levels**2
        weights[(0,) * count] = constant
        for axis, basis in enumerate(bases):
            weights = np.repeat(weights, (1, len(basis) - 1), axis=axis)
        weights[weights <= _RANK * weights.max(initial=0.0)] = np.inf
        return bases, factors, weights**-0.5

    def _solve(self, functions: Float64) -> tuple[Float64, Float64]:
        """Return the shortest loadings whose sums are the functions, and how far these are off.

        By conjugate gradients (Hestenes and Stiefel 1952), for all functions at once.
        """
        evidence, (bases, factors, scales) = self._evidence, self._bases
        shape = tuple(len(each) for each in factors)
        cells = tuple(range(1, 1 + len(shape)))
        constant: tuple[Any, ...] = (slice(None), *(0,) * len(shape))
        less = math.sqrt(self._cells) * evidence.less

        def to_cells(loadings: Float64) -> Float64:
            combinations = loadings / evidence.deviations
            found = np.zeros((len(loadings), math.prod(shape)))
            found[:, evidence.places] = combinations
            found = _along(found.reshape(-1, *shape), [each.T for each in factors])
            found[constant] -= combinations @ less
            return found * scales

        def to_numbers(some: Float64) -> Float64:
            scaled = some * scales
            found = _along(scaled, factors).reshape(len(some), -1)[:, evidence.places]
            numbers: Float64 = (found - scaled[constant][:, None] * less) / evidence.deviations
            return numbers

        wanted = _along(functions.reshape(-1, *scales.shape), [each.T for each in bases])
        rest = wanted * scales
        loadings = np.zeros((len(functions), len(evidence.places)))
        gradient = to_numbers(rest)
        direction, square = gradient, (gradient**2).sum(axis=1)
        enough = _SMALL**2 * square
        for _ in range(_STEPS):
            if (square <= enough).all():
                break
            change = to_cells(direction)
            step = _ratio(square, (change**2).sum(axis=cells))
            loadings = loadings + step[:, None] * direction
            rest = rest - step.reshape(-1, *(1 for _ in shape)) * change
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


def _ratio(above: Float64, below: Float64) -> Float64:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


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
