"""Lower bounds on epsilon from results that are seen: valid, and near the truth."""

import math

import numpy as np

from dualquery.audit import repeated
from dualquery.audit.findings import ERROR
from dualquery.audit.repeated import Setting, audit_fresh_draws, audit_releases
from dualquery.privacy.neighbours import Neighbours


def coins(generator: np.random.Generator, chance: float, runs: int) -> np.ndarray:
    """Return results of three numbers, the second of which tells a bit."""
    noise = generator.normal(size=(runs, 3))
    noise[:, 1] = generator.random(runs) < chance
    return noise


def test_the_bound_is_below_the_truth_and_near_it() -> None:
    """Randomized response at epsilon 2: all of 20 experiments hold, each fails once in 10^6."""
    truth, chance = 2.0, math.exp(2) / (1 + math.exp(2))
    rng = np.random.default_rng(1)
    found = [
        max(repeated.bounds(coins(rng, chance, 3000), coins(rng, 1 - chance, 3000), 0.0))
        for _ in range(20)
    ]
    assert max(found) <= truth
    assert np.mean(found) > 1.4


def test_equal_laws_give_no_bound() -> None:
    generator = np.random.default_rng(2)
    assert max(repeated.bounds(coins(generator, 0.5, 600), coins(generator, 0.5, 600), 0.0)) <= 0


def test_what_common_noise_hides_is_found() -> None:
    """Two numbers of the same noise differ by 1 on one table: no single number tells it."""
    generator = np.random.default_rng(3)

    def results(difference: float) -> np.ndarray:
        common = generator.normal(0.0, 50.0, 600)
        return common[:, None] + generator.normal(0.0, 0.3, (600, 2)) + np.array([difference, 0.0])

    assert max(repeated.bounds(results(1.0), results(0.0), 1e-3)) > 1


def test_delta_is_taken_off() -> None:
    with_delta = repeated._epsilon((500, 1000), (1, 1000), 0.1, ERROR)
    assert with_delta < repeated._epsilon((500, 1000), (1, 1000), 0.0, ERROR)
    assert repeated._epsilon((0, 1000), (0, 1000), 0.0, ERROR) == -math.inf


def test_releases_of_a_mechanism_that_looks_at_nothing() -> None:
    found = audit_releases(Setting("uniform", {"records": 2}, Neighbours.ADD_REMOVE), 0.0, 12)
    assert (found.violations, found.tried, found.pairs) == ([], 24, 1)


def test_a_mechanism_that_refuses_is_a_remark() -> None:
    found = audit_releases(Setting("randomized-response", {}, Neighbours.ADD_REMOVE), 0.0, 1)
    assert "gives away the number of reports" in found.remarks[0]
    assert found.violations == []


def test_draws_are_fresh() -> None:
    assert audit_fresh_draws().violations == []
