"""The SVD lower bound: attained where it must be, and below mechanisms that are simulated."""

import math

import numpy as np
import pytest

from dualquery import Unit
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from mwem import svd_bound

PAPER = Neighbours.ADD_REMOVE
EPSILON, DELTA = 0.5, 1e-3
UNIT = 2 * math.log(2 / DELTA) / EPSILON**2


def bound(matrix: np.ndarray, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> float:
    return svd_bound(matrix, epsilon=EPSILON, delta=DELTA, neighbours=neighbours)


def strategy_error(workload: np.ndarray, strategy: np.ndarray, neighbours: Neighbours) -> float:
    """Return the total squared error of a strategy at its own sensitivity."""
    if neighbours is PAPER:
        sensitivity = np.linalg.norm(strategy, axis=0).max()
    else:
        sensitivity = np.linalg.norm(strategy[:, :, None] - strategy[:, None, :], axis=0).max()
        centre = np.eye(workload.shape[1]) - 1 / workload.shape[1]
        workload, strategy = workload @ centre, strategy @ centre
    return UNIT * sensitivity**2 * np.linalg.norm(workload @ np.linalg.pinv(strategy)) ** 2


def test_the_identity_attains_it() -> None:
    assert bound(np.eye(7), PAPER) == pytest.approx(7 * UNIT)
    assert bound(np.eye(7), Neighbours.parse("add-remove", Unit("h", 1))) == bound(np.eye(7), PAPER)
    # Noise of variance 2 a cell; the projection to the public total takes one cell's worth away.
    assert bound(np.eye(7)) == pytest.approx(2 * UNIT * 6)
    assert strategy_error(np.eye(7), np.eye(7), Neighbours.REPLACE_ONE) == pytest.approx(12 * UNIT)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("seed", range(5))
def test_no_strategy_is_below_it(neighbours, seed) -> None:
    spans = np.array([[a <= x <= b for x in range(9)] for a in range(9) for b in range(a, 9)]) * 1.0
    low = bound(spans, neighbours)
    tree = np.vstack((np.eye(9), np.kron(np.eye(3), np.ones(3)), np.ones(9)))
    for strategy in (np.eye(9), spans, tree, np.random.default_rng(seed).normal(size=(12, 9))):
        assert strategy_error(spans, strategy, neighbours) >= low * (1 - 1e-9)
    assert strategy_error(spans, tree, neighbours) < 20 * low


def test_constant_queries_cost_nothing_when_n_is_public() -> None:
    assert bound(np.ones((3, 5))) == pytest.approx(0, abs=1e-20)
    assert bound(np.ones((3, 1))) == 0
    assert bound(np.ones((3, 5)), PAPER) > 0
