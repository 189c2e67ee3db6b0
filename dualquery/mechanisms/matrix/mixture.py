"""A mixture of product distributions, fitted to noisy means of features.

Each of K components has independent columns, and all have the same weight. The mean of a feature
under it is the mean over the components of a product, so a fit to a hundred thousand noisy means
is a smooth problem, solved by gradient steps (Adam: Kingma and Ba 2015). Releasing such fits goes
back to Aydore et al. ("Differentially private query release through adaptive projection", ICML
2021) and Liu, Vietri and Wu ("Iterative methods for private synthetic data", NeurIPS 2021); here
all features are measured at once, and the mixture's few parameters take most of the noise away.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.mechanisms.baselines.product import sample_records, uniform_probabilities
from dualquery.mechanisms.matrix import mixture_kernels as kernels
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.runtime.progress import NO_PROGRESS

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

_BATCH = 60_000
"""Features that a step visits at most: more of them take turns, in a random order."""

_PARTS = 8
"""Runs of features whose slopes are added up apart, so that results do not depend on threads."""

_STEP = 0.2
"""Largest change of a log-odds in a step, roughly."""

_DISTURBANCE = 1.0
"""Standard deviation of the components' log-odds around the 1-way means at the start."""

_LEAST = 1e-4
_BETA = (0.9, 0.99)
"""Adam's memory of slopes and of their squares."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Equally weighted product distributions over the columns that features mention.

    Parameters
    ----------
    domain
        All columns.
    bits
        int64, increasing: the bits of the columns held.
    values
        float32, shape ``(len(bits), components)``: mean of each bit's factor, its sign if it is of
        a binary column, else its indicator, under each component.
    """

    domain: Domain
    bits: NDArray[np.int64]
    values: Float32

    def means(self, products: ProductTerms) -> Float64:
        """Return the means of products, all about columns held: float64, shape ``(f,)``."""
        table = products.table(self.values, self.domain.has_two_values[self.bits])
        rows = products.rows(self.bits)
        zeros, means = np.zeros((2, len(rows)), np.float32)
        kernels.add_slopes(rows, 0, len(rows), table, zeros, zeros, np.zeros_like(table), means)
        return means.astype(np.float64)

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
        """Return legal records, uint8 of shape ``(count, bits)``, as many of each component.

        Columns that no feature mentions are 0 if binary, and uniform if one-hot.
        """
        domain, components = self.domain, self.values.shape[1]
        fallback = np.where(domain.sizes == 1, 0.0, 1.0)[domain.column_of_bit]
        fallback *= uniform_probabilities(domain)
        sizes = np.full(components, count // components)
        sizes[generator.permutation(components)[: count % components]] += 1
        binary = domain.has_two_values[self.bits]
        # A one-hot column of two bits: the second is what the first is not.
        second = binary & (domain.offsets[domain.column_of_bit[self.bits]] < self.bits)
        parts = []
        for component in np.flatnonzero(sizes):
            values = self.values[:, component].astype(np.float64)
            chances = np.where(binary, (1.0 - values) / 2.0, values)
            chances[second] = 1.0 - chances[np.flatnonzero(second) - 1]
            probabilities = fallback.copy()
            probabilities[self.bits] = chances
            _normalise(domain, probabilities)
            parts.append(sample_records(domain, probabilities, int(sizes[component]), generator))
        return generator.permutation(np.concatenate(parts))


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A fit of a mixture to noisy means.

    Parameters
    ----------
    products
        What was measured.
    targets, deviations
        float64, shape ``(f,)``: their noisy means, and the standard deviations of the noise.
    components, steps
        Size of the mixture, and gradient steps.
    pull
        Part of a step's rate by which components are drawn to their mean, in [0, 1]: it keeps
        noise out.
    """

    products: ProductTerms
    targets: Float64
    deviations: Float64
    components: int
    steps: int
    pull: float

    @cached_property
    def _bits(self) -> NDArray[np.int64]:
        domain, bits = self.products.domain, self.products.bits
        columns = np.unique(domain.column_of_bit[bits[bits >= 0]])
        return np.flatnonzero(np.isin(domain.column_of_bit, columns))

    @cached_property
    def _binary(self) -> NDArray[np.bool_]:
        return self.products.domain.has_two_values[self._bits]

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """First of the bits held, of the columns of three or more values; and one more."""
        columns = self.products.domain.column_of_bit[self._bits[~self._binary]]
        return np.flatnonzero(np.diff(columns, prepend=-1)).astype(np.int64)

    def run(
        self,
        generator: np.random.Generator,
        threads: int,
        progress: Callable[[int, int], None] = NO_PROGRESS.step,
    ) -> Mixture:
        """Fit: from disturbed independent columns, by Adam with steps that fall to nothing."""
        rows = self.products.rows(self._bits)
        batches = -(-len(rows) // _BATCH)
        order = generator.permutation(len(rows)) if batches > 1 else np.arange(len(rows))
        rows = rows[order]
        targets = self.targets[order].astype(np.float32)
        weights = 1.0 / self.deviations[order] ** 2
        weights = (weights / weights.sum()).astype(np.float32)
        means = np.empty_like(targets)
        cuts = np.linspace(0, len(rows), batches * _PARTS + 1).astype(np.int64)
        odds = self._start(generator)
        momentum, power = np.zeros_like(odds), np.zeros_like(odds)
        values = self._values(odds)
        table = self.products.table(values, self._binary)
        parts = np.empty((_PARTS, *table.shape), np.float32)
        with ThreadPoolExecutor(threads) as pool:
            for step in range(1, self.steps + 1):
                parts[:] = 0.0
                batch = cuts[(step - 1) % batches * _PARTS :]

                def visit(
                    part: int, table: Float32 = table, cuts: NDArray[np.int64] = batch
                ) -> None:
                    kernels.add_slopes(
                        rows, cuts[part], cuts[part + 1], table, targets, weights,
                        parts[part], means,
                    )  # fmt: skip

                for done in [pool.submit(visit, part) for part in range(_PARTS)]:
                    done.result()
                by_value = self.products.slopes(parts.sum(axis=0), self._binary)
                slope = self._slope(values, by_value)
                momentum += (1.0 - _BETA[0]) * (slope - momentum)
                power += (1.0 - _BETA[1]) * (slope**2 - power)
                rate = _STEP * min(1.0, 2.0 * (1.0 - (step - 1) / self.steps))
                rate *= (1.0 - _BETA[1] ** step) ** 0.5 / (1.0 - _BETA[0] ** step)
                odds -= np.float32(rate) * momentum / (np.sqrt(power) + np.float32(1e-12))
                odds -= np.float32(self.pull * rate) * (odds - odds.mean(axis=1, keepdims=True))
                values = self._values(odds)
                table = self.products.table(values, self._binary)
                progress(step, self.steps)
        return Mixture(self.products.domain, self._bits, values)

    def _start(self, generator: np.random.Generator) -> Float32:
        """Return log-odds (binary columns) and logarithms of shares, with a disturbance each."""
        shares = np.full(len(self._bits), 0.5)
        bits, chances = self.products.single_chances(self.targets)
        shares[np.searchsorted(self._bits, bits)] = chances
        shares = np.clip(shares, _LEAST, 1.0 - _LEAST)
        odds = np.where(self._binary, np.log(shares / (1.0 - shares)), np.log(shares))
        noise = generator.standard_normal((len(odds), self.components))
        start: Float32 = (odds[:, None] + _DISTURBANCE * noise).astype(np.float32)
        return start

    def _values(self, odds: Float32) -> Float32:
        """Return the means of the factors: a sign's from log-odds, a column's by softmax."""
        values = np.empty_like(odds)
        values[self._binary] = -np.tanh(odds[self._binary] / 2)
        wide = odds[~self._binary]
        if len(wide):
            lengths = np.diff(np.append(self._starts, len(wide)))
            wide = np.exp(
                wide - np.repeat(np.maximum.reduceat(wide, self._starts), lengths, axis=0)
            )
            wide /= np.repeat(np.add.reduceat(wide, self._starts), lengths, axis=0)
            values[~self._binary] = wide
        return values

    def _slope(self, values: Float32, slopes: Float32) -> Float32:
        """Return the derivatives by the log-odds from those by the means of the factors."""
        result = np.empty_like(slopes)
        result[self._binary] = slopes[self._binary] * (values[self._binary] ** 2 - 1) / 2
        wide = values[~self._binary]
        if len(wide):
            lengths = np.diff(np.append(self._starts, len(wide)))
            raw = slopes[~self._binary]
            mean = np.add.reduceat(wide * raw, self._starts)
            result[~self._binary] = wide * (raw - np.repeat(mean, lengths, axis=0))
        return result


def _normalise(domain: Domain, probabilities: Float64) -> None:
    """Make the chances of every one-hot column add up to 1 in double precision."""
    for column in np.flatnonzero(domain.sizes > 1):
        group = slice(int(domain.offsets[column]), int(domain.offsets[column + 1]))
        probabilities[group] /= probabilities[group].sum()
