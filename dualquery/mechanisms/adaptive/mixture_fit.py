"""A mixture of product distributions, fitted to noisy means of features by gradient steps.

All components have the same weight (Aydore et al., ICML 2021; Liu, Vietri and Wu, NeurIPS 2021).
Adam's steps (Kingma and Ba 2015) fall to nothing in each leg (Loshchilov and Hutter, ICLR 2017). A
fit ends once noise explains each distance from a noisy mean (the discrepancy principle: Morozov
1966); a leg that brings it no nearer is the last, and is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.mechanisms.adaptive import mixture_kernels as kernels
from dualquery.mechanisms.adaptive.evidence import Shares
from dualquery.mechanisms.adaptive.expansion import ProductTerms, literals_of
from dualquery.mechanisms.baselines.independent import uniform_probabilities
from dualquery.mechanisms.protocol import Session, Task
from dualquery.models.mixture import ProductMixture
from dualquery.queries.literals import LiteralRows
from dualquery.rows.repeats import side_by_side
from dualquery.runtime.progress import part_of
from dualquery.runtime.resources import workers

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

_BATCH = 60_000
"""Features that a step visits at most: more of them take turns, in a random order."""

_SLAB = 128
"""Components that one thread steps at a time, at most. Half as many took a quarter longer."""

LEG = 300
"""Steps of a leg, about; a fit has three or more, where it may take as many steps."""

_STEP = 0.2
"""Largest change of a log-odds in a step, roughly."""

_LEAST = 1e-4
_BETA = (0.95, 0.99)
"""Adam's memory of slopes and of their squares."""

_COMPONENTS, _PULL = 4.5, 14.8
"""Components over the cube root of rows times a step's sensitivity over scale, and pull times its
square: by errors on seven tables of 8,000 to 500,000 rows at epsilon 0.1 to 5."""

_VECTOR = 16
"""Components come in multiples of this: one vector of numbers."""

_MOST, _MOST_VALUES = 256, 1 << 22
"""Components, and bits times components, beyond which fits take minutes."""

STEPS = 2100
"""Gradient steps of a fit to noisy means, at most."""


@dataclass(frozen=True)
class Fitting:
    """How a mixture is fitted, in at most ``steps`` steps.

    ``pull``, in [0, 1], is the part of a step's rate by which components are shrunk towards their
    mean. A fit is trusted as far as a trial on the evidence says; if it is not ``tried``, fully.
    """

    components: int
    steps: int
    pull: float
    tried: bool = True

    @staticmethod
    def suited(
        n: int, precision: float, bits: int, components: int | None, steps: int, pull: float | None
    ) -> Fitting:
        """Return what is given, or suits n rows, the bits, and a step's sensitivity over scale."""
        signal = float(np.cbrt(n * precision))
        if components is None:
            most = min(_MOST, _MOST_VALUES // bits, _COMPONENTS * signal)
            components = max(round(most / _VECTOR), 1) * _VECTOR
        suited = min(_PULL / signal**2, 1.0) if pull is None else pull
        return Fitting(components, steps, suited, pull is None)

    def brief(self, domain: Domain, trust: float = 1.0) -> Fitting:
        """The same for records: a component a value, as few of them tie columns' other values.

        The less a fit is trusted, the more it takes. Means that were shrunk need half of the pull.
        """
        values = int(np.count_nonzero(~domain.has_two_values[:-1]))
        most = min(max(values, self.components / (trust + 1e-9)), 2 * _MOST)
        components = round(min(most, _MOST_VALUES // domain.bits) / _VECTOR) * _VECTOR
        components, steps = max(self.components, components), max(self.steps, 2 * LEG)
        return replace(self, components=components, pull=self.pull / 2, steps=steps)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Equally weighted product distributions over the columns that features mention.

    ``values`` are the means of each bit's sign, if its column is binary, or indicator:
    ``(len(bits), components)``. ``bits`` are increasing.
    """

    domain: Domain
    bits: NDArray[np.int64]
    values: Float32

    def means(self, products: ProductTerms) -> Float64:
        """Return the means of products, all about columns held: float64, shape ``(f,)``."""
        intercepts, factors = products.terms(self.bits)
        table = intercepts[:, None] + factors[:, None] * np.repeat(self.values, 2, axis=0)
        order, runs = kernels.run_order(products.rows(self.bits))
        sums, means = np.empty(len(order), np.float32), np.empty(len(order))
        kernels.sum_products(runs, table, sums)
        means[order] = sums / table.shape[1]
        means[(products.bits < 0).all(axis=1)] = 1.0
        return means

    def model(self) -> ProductMixture:
        """Return the mixture over all columns: not mentioned ones are 0 if binary, or uniform."""
        domain, components = self.domain, self.values.shape[1]
        fallback = (domain.sizes != 1)[domain.column_of_bit] * uniform_probabilities(domain)
        chances = np.repeat(fallback[:, None].astype(np.float32), components, axis=1)
        binary = domain.has_two_values[self.bits]
        held = np.where(binary[:, None], (1.0 - self.values) / np.float32(2.0), self.values)
        # A one-hot column of two bits: the second is what the first is not.
        second = binary & (domain.offsets[domain.column_of_bit[self.bits]] < self.bits)
        held[second] = 1.0 - held[np.flatnonzero(second) - 1]
        chances[self.bits] = held
        return ProductMixture(domain, np.full(components, 1.0 / components), chances)


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A fit of a mixture to noisy means of products (``targets``)."""

    products: ProductTerms
    targets: Float64
    deviations: Float64
    how: Fitting

    @property
    def extreme(self) -> float:
        """Deviations of noise that any of f products exceeds with a chance below 1 / f."""
        return 2.0 * math.sqrt(math.log(len(self.targets) + 1.0))

    @cached_property
    def _bits(self) -> NDArray[np.int64]:
        domain, bits = self.products.domain, self.products.bits
        columns = np.unique(domain.column_of_bit[bits[bits >= 0]])
        return np.flatnonzero(np.isin(domain.column_of_bit, columns))

    @cached_property
    def _columns(self) -> kernels.Layout:
        domain = self.products.domain
        column = domain.column_of_bit[self._bits]
        binary = domain.has_two_values[self._bits]
        # Both bits of a binary column of two have a parameter; no product asks for the second.
        starts = np.flatnonzero(binary | (np.diff(column, prepend=-1) != 0))
        return kernels.Layout(
            np.append(starts, len(column)), binary[starts], *self.products.terms(self._bits)
        )

    def with_rules(self, task: Task, chances: Float64) -> MixtureFit:
        """Return the fit with values that rules forbid together, as sure as most products are."""
        if (rules := task.rules) is None or not rules.boxes:
            return self
        from dualquery.rules.constraints import penalties_of

        own, codes = self.products, task.once(penalties_of, lambda: penalties_of(rules, cells=True))
        held = np.isin(codes >> 1, np.append(self._bits, -1)).all(axis=1)
        held &= own.literals | (codes[:, 2:] < 0).all(axis=1)  # three features need pairs' means
        if not held.any():
            return self
        asked, negated, _ = literals_of(LiteralRows(codes[held], own.domain))
        bits, most = side_by_side(own.bits, asked), asked.shape[1]
        flags = np.pad(own.second, ((0, len(asked)), (0, bits.shape[1] - own.bits.shape[1])))
        flags[len(own.bits) :, :most] = own.literals & negated  # products of literals have mean 0
        every = replace(own, bits=bits, second=flags)
        means, slopes = (each[len(own.bits) :] for each in every.factors(chances))
        # Of one or two factors m + s (x - q), q the share, or any literals: never 1 together.
        apart = np.where(asked < 0, 1.0, slopes[:, :most] * (chances[asked] - negated)).prod(axis=1)
        targets = np.append(self.targets, means.prod(axis=1) - apart)
        deviations = np.append(self.deviations, np.full(len(asked), np.median(self.deviations)))
        return MixtureFit(every, targets, deviations, self.how)

    def run(
        self, generator: np.random.Generator, session: Session, start: Mixture | None = None
    ) -> Mixture:
        """Fit: from another fit or disturbed independent columns, by Adam, in legs."""
        batches = self._batches(generator)
        odds = self._start(generator) if start is None else self._odds(start.values)
        vectors = np.arange(0, self.how.components, _VECTOR)
        cuts = [part[0] for part in np.array_split(vectors, -(-self.how.components // _SLAB))]
        slabs = [_Slab.of(self._columns, part) for part in np.split(odds, cuts[1:], axis=1)]
        done, nearest, steps = 0, math.inf, self.how.steps
        with workers(session.threads, len(slabs)) as pool:
            course = _Course(batches, slabs, odds.mean(axis=1), pool.map)
            count = max(round(steps / LEG), 1)
            for number, leg in enumerate(np.array_split(np.arange(steps), count)):
                course.run(len(leg), self.how.pull, part_of(session.progress, done, steps))
                done += len(leg)
                distance, furthest = course.distances()
                if distance >= nearest:
                    break
                nearest, values = distance, course.values
                if number > 1 and furthest <= self.extreme:
                    break
        if done < steps:
            session.progress(steps, steps)
        return Mixture(self.products.domain, self._bits, values)

    def _batches(self, generator: np.random.Generator) -> list[_Batch]:
        """Return the products, in a random order if they take turns."""
        rows = self.products.rows(self._bits)
        # Columns' own means count as if they had half the noise: products that the pull keeps from
        # their means are many, and would move these.
        own = (self.products.bits >= 0).sum(axis=1) == 1
        weights = (np.where(own, 2.0, 1.0) / self.deviations) ** 2
        weights /= weights.sum()
        some = np.flatnonzero((self.products.bits >= 0).any(axis=1))
        count = -(-len(some) // _BATCH)
        order = generator.permutation(some) if count > 1 else some
        owners = np.repeat(np.arange(len(self._columns.binary)), np.diff(self._columns.starts))
        batches = []
        for part in np.array_split(order, count):
            along, runs = kernels.run_order(rows[part])
            chosen, terms = part[along], runs.rows
            touched = np.unique(owners[terms[terms >= 0] // 2])
            batches.append(_Batch(
                self._columns, runs, self.targets[chosen].astype(np.float32),
                self.deviations[chosen], weights[chosen].astype(np.float32), touched,
            ))  # fmt: skip
        return batches

    def _start(self, generator: np.random.Generator) -> Float32:
        shares = np.full(len(self._bits), 0.5)
        found = Shares.of(self.products, self.targets, self.deviations)
        shares[np.searchsorted(self._bits, found.bits)] = found.values
        binary = self.products.domain.has_two_values[self._bits]
        odds = self._odds(np.where(binary, 1.0 - 2.0 * shares, shares)[:, None])
        noise = generator.standard_normal((len(odds), self.how.components))
        return (odds + noise).astype(np.float32)

    def _odds(self, values: NDArray[Any]) -> Float32:
        """Return log-odds (binary columns) and logarithms of shares, of values as in `Mixture`."""
        binary = self.products.domain.has_two_values[self._bits][:, None]
        shares = np.clip(np.where(binary, (1.0 - values) / 2.0, values), _LEAST, 1.0 - _LEAST)
        return np.where(binary, np.log(shares / (1.0 - shares)), np.log(shares)).astype(np.float32)


@dataclass(eq=False)
class _Course:
    """A fit under way."""

    batches: Sequence[_Batch]
    slabs: Sequence[_Slab]
    centres: Float32
    each: Callable[[Callable[[_Slab], Float32], Sequence[_Slab]], Iterator[Float32]]

    def run(self, steps: int, pull: float, progress: Callable[[int, int], None]) -> None:
        """Make a leg's steps, which fall to nothing."""
        for slab in self.slabs:
            slab.parameters.momentum[:] = slab.parameters.power[:] = 0.0
        for step in range(1, steps + 1):
            batch = self.batches[step % len(self.batches)]
            rates = _rates(step, steps, pull)
            errors = batch.weights * self._errors(batch)
            self.centres = self._mean(partial(batch.step, errors, self.centres, rates))
            progress(step, steps)

    @property
    def values(self) -> Float32:
        """The parameters of all components, a copy."""
        return np.concatenate([slab.parameters.values for slab in self.slabs], axis=1)

    def distances(self) -> tuple[float, float]:
        """Return the mean square of products' errors, and the largest, in deviations of noise."""
        scaled = np.concatenate([self._errors(each) / each.deviations for each in self.batches])
        return float(np.mean(scaled**2)), float(np.abs(scaled).max(initial=0.0))

    def _errors(self, batch: _Batch) -> Float32:
        return self._mean(batch.sums) - batch.targets

    def _mean(self, sums: Callable[[_Slab], Float32]) -> Float32:
        components = sum(slab.slopes.shape[1] for slab in self.slabs)
        return reduce(np.add, self.each(sums, self.slabs)) / np.float32(components)


def _rates(step: int, steps: int, pull: float) -> kernels.Rates:
    """Return the rates of one of a leg's steps: as at first for half of them, then falling."""
    rate = _STEP * min(1.0, 2.0 * (1.0 - (step - 1) / steps))
    rate *= (1.0 - _BETA[1] ** step) ** 0.5 / (1.0 - _BETA[0] ** step)
    return kernels.Rates(*map(np.float32, (rate, pull * rate, *_BETA)))


@dataclass(frozen=True, eq=False)
class _Slab:
    """Some components in the course of a fit; its arrays change in place."""

    parameters: kernels.Parameters
    table: Float32
    slopes: Float32

    @staticmethod
    def of(columns: kernels.Layout, odds: Float32) -> _Slab:
        """Return a slab that starts with some log-odds and logarithms of shares."""
        odds = np.ascontiguousarray(odds)
        parameters = kernels.Parameters(odds, *np.zeros((3, *odds.shape), np.float32))
        slab = _Slab(parameters, *np.zeros((2, len(columns.factors), odds.shape[1]), np.float32))
        every = np.arange(len(columns.binary))
        kernels.set_terms(columns, every, odds, parameters.values, slab.table)
        return slab


@dataclass(frozen=True, eq=False)
class _Batch:
    """Products that one step visits, what they should be, and the columns they are about."""

    columns: kernels.Layout
    runs: kernels.Runs
    targets: Float32
    deviations: Float64
    weights: Float32
    touched: NDArray[np.int64]

    def sums(self, slab: _Slab) -> Float32:
        """Return the sums of the products over a slab."""
        sums = np.empty(len(self.targets), np.float32)
        kernels.sum_products(self.runs, slab.table, sums)
        return sums

    def step(self, errors: Float32, centres: Float32, rates: kernels.Rates, slab: _Slab) -> Float32:
        """Step a slab, and return the sums of its parameters; ``errors`` as in `add_slopes`."""
        kernels.add_slopes(self.runs, slab.table, errors, slab.slopes)
        told, slopes = slab.parameters, slab.slopes
        kernels.update(self.columns, self.touched, told, slopes, centres, rates, slab.table)
        return np.asarray(told.odds.sum(axis=1))


def mixture_of(
    shares: Shares,
    products: ProductTerms,
    means: Float64,
    deviations: Float64,
    task: Task,
    fitting: Fitting,
    generator: np.random.Generator,
    session: Session,
) -> ProductMixture:
    """Return a mixture fitted to longer products, and to shares, none surer; others independent."""
    domain = products.domain
    chances = shares.distributions(domain)
    columns = domain.column_of_bit[products.bits[products.bits >= 0]]
    tied = np.unique(shares.bits[np.isin(domain.column_of_bit[shares.bits], columns)])
    mixture = Mixture(domain, np.empty(0, np.int64), np.empty((0, 1), np.float32))
    if len(tied):
        second = np.pad(products.second, ((len(tied), 0), (0, 0)))
        both = replace(products, bits=side_by_side(tied[:, None], products.bits), second=second)
        own, slopes = (each[: len(tied), 0] for each in both.factors(chances))
        off = np.maximum(np.abs(slopes) * shares.uncertain(domain)[tied], deviations.min())
        targets, deviations = np.append(own, means), np.append(off, deviations)
        fit = MixtureFit(both, targets, deviations, fitting.brief(domain)).with_rules(task, chances)
        mixture = fit.run(generator, session)
    return with_columns(mixture.model(), domain.column_of_bit[mixture.bits], shares)


def with_columns(model: ProductMixture, held: NDArray[np.int32], shares: Shares) -> ProductMixture:
    """Return a model with the columns of shares, but for those that it ``held``, independent."""
    column = model.domain.column_of_bit
    bits = np.flatnonzero(np.isin(column, np.setdiff1d(column[shares.bits], held)))
    changed = model.chances.copy()
    changed[bits] = shares.distributions(model.domain)[bits, None]
    return replace(model, chances=changed)
