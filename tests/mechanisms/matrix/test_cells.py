"""The features that cells of whole marginals tell of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.mechanisms.matrix.cells import CellFeatures
from dualquery.mechanisms.matrix.drawn import Drawn
from dualquery.mechanisms.matrix.expansion import Expansion
from dualquery.mechanisms.matrix.measurement import QueryMeasurement, choose_measurement
from dualquery.mechanisms.matrix.mechanism import Matrix
from dualquery.mechanisms.protocol import Budget, Session, Task
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.marginals import all_marginals, random_marginals
from dualquery.room.curator import Curator
from dualquery.room.randomness import SeededRandomness
from tests.mechanisms.matrix.test_factorization import packed, values_on

REPLACED = Neighbours.REPLACE_ONE
MIXED = Domain(np.array([0, 1, 3, 6, 7, 12]))
"""A bit, a one-hot column of two bits, three values, a bit, five values."""


def told_of(work: Workload) -> CellFeatures:
    return CellFeatures(work, Expansion.of(work).in_blocks())


def records_of(domain: Domain, n: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    records = np.zeros((n, domain.bits), np.uint8)
    for start, size in zip(domain.offsets[:-1], domain.sizes, strict=True):
        if size == 1:
            records[:, start] = generator.random(n) < 0.3
        else:
            records[np.arange(n), start + generator.integers(size, size=n)] = 1
    return records


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=3, max_size=5),
    way=st.integers(1, 3),
    marginals=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_exact_cells_tell_the_features(
    sizes: list[int], way: int, marginals: int, seed: int
) -> None:
    domain = Domain(np.concatenate(([0], np.cumsum(sizes))))
    records = records_of(domain, 50, seed)
    work = random_marginals(
        domain, min(marginals, math.comb(len(sizes), way)), way, 10_000, seed=seed
    )
    told = told_of(work)
    truth = work.counts(packed(records), threads=1) / 50
    means, deviations = told.told_by(truth, 0.1)
    np.testing.assert_allclose(
        means, values_on(told.expansion.features, records).mean(axis=0), atol=1e-9
    )
    np.testing.assert_allclose(told.answers(means), truth, atol=1e-9)
    assert (deviations > 0).all()


@pytest.mark.parametrize("way", [2, 3])
def test_the_deviations_are_those_of_the_answers(way: int) -> None:
    """2,000 draws: a standard error of 1.6% each; less noise than the cells', by what is shared."""
    work = all_marginals(MIXED, way)
    told = told_of(work)
    generator = np.random.default_rng(1)
    answers = [
        told.answers(told.told_by(0.1 * generator.standard_normal(len(work)), 0.1)[0])
        for _ in range(2_000)
    ]
    _, deviations = told.told_by(np.zeros(len(work)), 0.1)
    found, said = np.std(answers, axis=0), told.deviations(deviations)
    np.testing.assert_allclose(found, said, rtol=0.08)
    assert said.max() <= 0.1 + 1e-12
    assert said.mean() < 0.085


def test_cells_of_one_marginal_are_only_brought_to_their_sum() -> None:
    work = random_marginals(MIXED, 1, 3, 10_000, seed=4)
    told, count = told_of(work), len(work)
    noisy = np.random.default_rng(2).standard_normal(count)
    means, deviations = told.told_by(noisy, 1.0)
    np.testing.assert_allclose(told.answers(means), noisy - noisy.mean() + 1 / count, atol=1e-9)
    np.testing.assert_allclose(told.deviations(deviations), (1.0 - 1.0 / count) ** 0.5)


def test_a_fit_to_measured_cells_goes_by_their_features() -> None:
    """Thirty marginals of forty bits share few columns: cells have less noise than features."""
    domain = Domain.binary(40)
    work = random_marginals(domain, 30, 3, 10_000, seed=1)
    measured = choose_measurement(work, REPLACED, fitted=True)
    assert isinstance(measured, QueryMeasurement)
    assert measured.cells is not None
    assert choose_measurement(work, REPLACED, fitted=False).cells is None
    drawn = Drawn(measured, np.full(len(work), 0.125), np.full(len(work), 0.01))
    np.testing.assert_allclose(drawn.known.unbiased, 0.125)

    records = (np.random.default_rng(3).random((4_000, 40)) < 0.3).astype(np.uint8)
    plan = Matrix().plan(Task(work, 4_000), Budget(1.0, 1e-6))
    curator = Curator(packed(records), work, plan.schedule, SeededRandomness(4))
    outcome = Matrix().run(Task(work, 4_000), plan, curator, Session(public_seed=5))
    truth = work.counts(packed(records), threads=1) / 4_000
    noise = plan.parameters["scale"] / 4_000
    assert np.sqrt(np.mean((outcome.answers - truth) ** 2)) < 0.55 * noise
