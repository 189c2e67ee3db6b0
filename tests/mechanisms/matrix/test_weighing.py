"""Products of several columns that are measured for what they tell of these."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.matrix.departures import Departures
from dualquery.mechanisms.matrix.looks import Shares, alike
from dualquery.mechanisms.matrix.weighing import weighed_together
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.random import random_conjunctions
from dualquery.room.features import Features
from dualquery.rows.repeats import side_by_side
from tests.mechanisms.matrix.test_staged import legal_records, values_on
from tests.neighbouring import RELATIONS

NONE = np.empty((0, 2), np.int32)


def chosen(columns: int, others: np.ndarray, *, signed: bool = True) -> np.ndarray:
    """Return products of columns of which all are empty and uncertain."""
    domain = Domain.binary(columns)
    work = random_conjunctions(domain, 50, 3, signed)
    first = Shares(np.arange(columns, dtype=np.int32), np.zeros(columns), np.full(columns, 0.1))
    generator = np.random.default_rng(1)
    shares, uncertain = np.zeros(columns), np.full(columns, 0.1)
    return weighed_together(work, first, shares, uncertain, others, generator)


def pairs(columns: int, count: int) -> np.ndarray:
    every = [(a, b) for a in range(columns) for b in range(a + 1, columns)]
    return np.array(every[:count], np.int32)


def test_each_column_is_in_as_many_products_as_others() -> None:
    found = chosen(23, pairs(23, 120))
    assert 115 <= len(found) <= 120
    assert (np.diff(found, axis=1) > 0).all()
    times = np.bincount(found.ravel(), minlength=23)
    assert times.min() >= 20
    assert times.max() <= 30


def test_there_are_none_where_they_would_tell_nothing() -> None:
    assert not len(chosen(9, pairs(9, 20)))  # too few columns
    assert not len(chosen(23, NONE))  # nothing else is measured
    assert not len(chosen(23, pairs(23, 120), signed=False))  # positive queries
    alone = np.append(pairs(23, 120), [[7, -1]], axis=0).astype(np.int32)
    assert not len(chosen(23, alone))
    work = random_conjunctions(Domain.binary(20), 50, 3)
    first = Shares(np.arange(20, dtype=np.int32), np.zeros(20), np.full(20, 0.1))
    half, known = np.full(20, 0.5), np.full(20, 0.001)
    for shares, uncertain in ((half, first.deviations), (np.zeros(20), known)):
        generator = np.random.default_rng(1)
        found = weighed_together(work, first, shares, uncertain, pairs(20, 50), generator)
        assert not len(found)


def test_none_stands_there_twice() -> None:
    """Neither among themselves nor as a query's own product."""
    others = np.array([[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], np.int32)
    every = side_by_side(others, chosen(10, np.repeat(others, 150, axis=0)[:300]))
    Features(np.unique(every, axis=0), Domain.binary(10))
    found = every[2:]
    assert 100 < len(found) <= 252 - 2
    assert len(np.unique(every, axis=0)) == len(every)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_room_proves_what_they_cost(relation: Neighbours) -> None:
    """By enumeration: every pair of records of ten columns."""
    domain = Domain.binary(10)
    others = np.array([[0, 1, 2], [3, 5, 6], [0, 1, -1], [2, 9, -1]], np.int32)
    features = Features(side_by_side(others, chosen(10, others)), domain)
    assert len(features) == 8
    own = np.unique(values_on(features, legal_records(domain)).astype(float), axis=0)
    moves = own if relation is Neighbours.ADD_REMOVE else own[:, None] - own[None]
    furthest = np.sqrt((moves**2).sum(axis=-1).max())
    assert furthest <= alike(features, relation).sensitivity * (1.0 + 1e-12)


def test_they_tell_more_than_the_columns_one_by_one() -> None:
    """Thrice as many products, of thrice the noise's variance, leave less than two thirds.

    Of the errors' squares; the columns' shares were known up to the same noise before.
    """
    generator = np.random.default_rng(5)
    columns, noise, more = 400, 0.01, 3
    shares = generator.exponential(0.01, columns)
    exact = 1.0 - 2.0 * shares
    before = exact + noise * generator.standard_normal(columns)
    alone = exact + noise * generator.standard_normal(columns)
    one_by_one = np.mean(((before + alone) / 2.0 - exact) ** 2)
    domain = Domain.binary(columns)
    singles = np.arange(columns, dtype=np.int32)[:, None]
    first = Shares(singles[:, 0], (1.0 - before) / 2.0, np.full(columns, noise / 2.0))
    work = Workload(np.array([[1, 3, 5]], np.int32), domain)
    others = pairs(columns, more * columns)
    weighed = weighed_together(
        work, first, shares, first.deviations, others, np.random.default_rng(6)
    )
    assert len(weighed) == more * columns
    larger = noise * more**0.5
    noisy = exact[weighed].prod(axis=1) + larger * generator.standard_normal(len(weighed))
    model = Departures(
        Features(singles, domain), before, np.full(columns, noise), np.zeros(columns)
    ).with_columns(np.arange(0), weighed, noisy, larger)
    assert np.mean((model.means - exact) ** 2) < 2.0 / 3.0 * one_by_one
