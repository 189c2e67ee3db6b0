"""The gradient of a mixture's fit against differences, and steps against their formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.adaptive import mixture_kernels as kernels
from dualquery.mechanisms.adaptive.expansion import Expansion, literals_of
from dualquery.mechanisms.adaptive.mixture import MixtureFit
from dualquery.mechanisms.adaptive.product_terms import ProductTerms
from dualquery.queries.generate.random import random_conjunctions

# Binary columns of one bit and of two, and wide ones.
MIXED = Domain(np.array([0, 1, 3, 6, 7, 11]))
WIDTH = 5


def loss(rows: np.ndarray, table: np.ndarray, targets: np.ndarray) -> float:
    """Return half the sum of squared errors of the products' sums, straight from the definition."""
    sums = [table[row[row >= 0]].prod(axis=0).sum() for row in rows]
    return 0.5 * float(((np.array(sums) - targets) ** 2).sum())


@pytest.mark.parametrize("way", [1, 2, 3, 5])
def test_slopes_are_those_of_the_squared_error(way: int) -> None:
    generator = np.random.default_rng(way)
    table = generator.uniform(-1, 1, (8, WIDTH)).astype(np.float32)
    rows = np.stack([generator.permutation(8)[:way] for _ in range(20)]).astype(np.int32)
    rows[:5, 1:] = -1
    targets = generator.uniform(-1, 1, 20)
    sums = np.empty(20, np.float32)
    kernels.sum_products(rows, table, sums)
    slopes = np.ones_like(table)  # they are added to
    kernels.add_slopes(rows, table, (sums - targets).astype(np.float32), slopes)
    exact, step = table.astype(np.float64), 1e-5
    for term in range(8):
        for k in range(WIDTH):
            moved = exact.copy()
            moved[term, k] += step
            above = loss(rows, moved, targets)
            moved[term, k] -= 2 * step
            found = (above - loss(rows, moved, targets)) / (2 * step)
            assert slopes[term, k] - 1.0 == pytest.approx(found, abs=1e-4)


def values_of(odds: np.ndarray) -> np.ndarray:
    """Return the values of parameters of MIXED: signs' means, and a column's shares."""
    values = -np.tanh(odds / 2)
    for first, last in ((3, 6), (7, 11)):
        chances = np.exp(odds[first:last])
        values[first:last] = chances / chances.sum(axis=0)
    return values


@pytest.mark.parametrize("literals", [False, True])
def test_a_step_is_adams_with_the_slope_by_the_parameters(literals: bool) -> None:
    """Of a linear function of the terms, by differences; columns that are not touched stay."""
    work = random_conjunctions(MIXED, 60, 3, seed=1)
    bits, negated, _ = literals_of(work)
    products = ProductTerms(MIXED, bits, negated, literals)
    fit = MixtureFit(products, np.zeros(60), np.ones(60), WIDTH, 1, 0.0)
    columns = fit._columns
    assert columns.binary.tolist() == [True, True, True, False, True, False]
    generator = np.random.default_rng(2)
    odds = generator.normal(size=(11, WIDTH)).astype(np.float32)
    start = odds.astype(np.float64)
    terms = len(columns.factors)
    weights = generator.normal(size=(terms, WIDTH)).astype(np.float32)

    def value(moved: np.ndarray) -> float:
        own = np.repeat(values_of(moved), terms // 11, axis=0)
        return float(
            (weights * (columns.intercepts[:, None] + columns.factors[:, None] * own)).sum()
        )

    slope = np.zeros_like(start)
    for place in np.ndindex(*start.shape):
        moved = start.copy()
        moved[place] += 1e-6
        above = value(moved)
        moved[place] -= 2e-6
        slope[place] = (above - value(moved)) / 2e-6

    values, table = np.zeros_like(odds), np.zeros((terms, WIDTH), np.float32)
    kernels.set_terms(columns, np.arange(6), odds, values, table)
    np.testing.assert_allclose(values, values_of(start), atol=1e-6)
    parameters = kernels.Parameters(odds, np.zeros_like(odds), np.zeros_like(odds), values)
    centres = generator.normal(size=11).astype(np.float32)
    rates = kernels.Rates(*map(np.float32, (0.3, 0.1, 0.9, 0.99)))
    touched, slopes = np.array([0, 3, 5]), weights.copy()
    kernels.update(columns, touched, parameters, slopes, centres, rates, table)

    changed = np.r_[0, 3:6, 7:11]
    stepped = start - 0.3 * (0.1 * slope) / np.sqrt(0.01 * slope**2)
    expected = start.copy()
    expected[changed] = (stepped - 0.1 * (stepped - centres[:, None]))[changed]
    np.testing.assert_allclose(odds, expected, atol=1e-4)
    assert (slopes.reshape(11, -1)[changed] == 0).all()
    np.testing.assert_allclose(values[changed], values_of(expected)[changed], atol=1e-4)
    own = np.repeat(values, terms // 11, axis=0)
    expected_terms = columns.intercepts[:, None] + columns.factors[:, None] * own
    np.testing.assert_allclose(table, expected_terms, atol=1e-6)


def test_threads_do_not_change_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several slabs of components, and several batches of products."""
    monkeypatch.setattr("dualquery.mechanisms.adaptive.mixture._SLAB", 3)
    monkeypatch.setattr("dualquery.mechanisms.adaptive.mixture._BATCH", 50)
    features = Expansion.of(random_conjunctions(MIXED, 100, 3, seed=3)).features
    targets = np.random.default_rng(1).uniform(-0.5, 0.5, len(features))
    products = ProductTerms.of_features(features)
    fit = MixtureFit(products, targets, np.full(len(targets), 0.01), 8, 40, 0.01)
    first, second = (fit.run(np.random.default_rng(2), threads) for threads in (1, 3))
    np.testing.assert_array_equal(first.values, second.values)
    assert first.values.shape == (11, 8)
    # Slabs are a matter of speed only: rounding apart, one makes the same steps.
    monkeypatch.setattr("dualquery.mechanisms.adaptive.mixture._SLAB", 8)
    whole = replace(fit, steps=5).run(np.random.default_rng(2), 1)
    monkeypatch.setattr("dualquery.mechanisms.adaptive.mixture._SLAB", 3)
    cut = replace(fit, steps=5).run(np.random.default_rng(2), 1)
    np.testing.assert_allclose(whole.values, cut.values, atol=1e-3)
