"""The gradient of a mixture's fit against differences, and steps against their formulas."""

from dataclasses import replace

import numpy as np
import pytest

from dualquery.mechanisms.adaptive import mixture_kernels as kernels
from dualquery.mechanisms.adaptive.expansion import Expansion, ProductTerms
from dualquery.mechanisms.adaptive.mixture_fit import Fitting, MixtureFit
from dualquery.mechanisms.protocol import Session
from dualquery.queries.generate.workloads import random_conjunctions
from tests.cases import MIXED

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
    rows[5:15, :-1] = rows[5, :-1]  # runs that are long, and of one product
    _, runs = kernels.run_order(rows)
    rows, targets, sums = runs.rows, generator.uniform(-1, 1, 20), np.empty(20, np.float32)
    kernels.sum_products(runs, table, sums)
    slopes = np.ones_like(table)  # they are added to
    kernels.add_slopes(runs, table, (sums - targets).astype(np.float32), slopes)
    exact, step = table.astype(np.float64), 1e-5
    for place in np.ndindex(exact.shape):
        moved = exact.copy()
        moved[place] += step
        above = loss(rows, moved, targets)
        moved[place] -= 2 * step
        found = (above - loss(rows, moved, targets)) / (2 * step)
        assert slopes[place] - 1.0 == pytest.approx(found, abs=1e-4)


def test_threads_do_not_change_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several slabs of components, and several batches of products."""
    for name, number in (("_SLAB", 3), ("_BATCH", 50), ("_VECTOR", 1)):
        monkeypatch.setattr(f"dualquery.mechanisms.adaptive.mixture_fit.{name}", number)
    features = Expansion.of(random_conjunctions(MIXED, 100, 3, seed=3)).features
    targets = np.random.default_rng(1).uniform(-0.5, 0.5, len(features))
    products = ProductTerms.of_features(features)
    fit = MixtureFit(products, targets, np.full(len(targets), 0.01), Fitting(8, 40, 0.01))
    first, second = (fit.run(np.random.default_rng(2), Session(threads)) for threads in (1, 3))
    np.testing.assert_array_equal(first.values, second.values)
    assert first.values.shape == (11, 8)
    # Slabs are a matter of speed only: rounding apart, one makes the same steps.
    monkeypatch.setattr("dualquery.mechanisms.adaptive.mixture_fit._SLAB", 8)
    whole = replace(fit, how=replace(fit.how, steps=5)).run(np.random.default_rng(2), Session())
    monkeypatch.setattr("dualquery.mechanisms.adaptive.mixture_fit._SLAB", 3)
    cut = replace(fit, how=replace(fit.how, steps=5)).run(np.random.default_rng(2), Session())
    np.testing.assert_allclose(whole.values, cut.values, atol=1e-3)
