"""Random conjunctions: sensible, distinct, reproducible, and drawn from the stated distribution."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dualquery.data.domain import Domain
from dualquery.queries.generate.workloads import count_distinct, random_conjunctions
from dualquery.runtime.errors import BadInputError

MIXED = Domain(np.array([0, 1, 4, 6, 7, 12]))

# Statistical tests have fixed seeds; each would fail for one in 10,000 seeds if all is well.
ERROR_RATE = 1e-4


@settings(max_examples=80, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    signed=st.booleans(),
    seed=st.integers(0, 10**6),
    data=st.data(),
)
def test_queries_are_distinct_and_use_different_columns(sizes, signed, seed, data) -> None:
    domain = Domain(np.concatenate(([0], np.cumsum(sizes))))
    some = st.lists(st.integers(0, len(sizes) - 1), min_size=1, unique=True)
    columns = data.draw(st.none() | some)
    way = data.draw(st.integers(1, len(sizes if columns is None else columns)))
    m = data.draw(st.integers(1, min(count_distinct(domain, way, signed, columns), 300)))
    literals = random_conjunctions(domain, m, way, signed, seed, columns).literals
    assert literals.shape == (m, way)
    used = domain.column_of_bit[literals >> 1]
    assert (np.diff(used, axis=1) > 0).all()
    assert np.isin(used, np.arange(len(sizes)) if columns is None else columns).all()
    assert len({tuple(row) for row in literals.tolist()}) == m
    assert signed or not (literals & 1).any()
    again = random_conjunctions(domain, m, way, signed, seed, columns)
    np.testing.assert_array_equal(again.literals, literals)


def legal_bit_sets(domain: Domain, way: int) -> list[tuple[int, ...]]:
    return [
        bits
        for bits in itertools.combinations(range(domain.bits), way)
        if len({int(domain.column_of_bit[bit]) for bit in bits}) == way
    ]


@pytest.mark.parametrize("way", [1, 2, 3, 5])
def test_every_query_can_be_drawn_and_no_more(way: int) -> None:
    bit_sets = legal_bit_sets(MIXED, way)
    assert count_distinct(MIXED, way, signed=False) == len(bit_sets)
    exist = count_distinct(MIXED, way)
    assert exist == len(bit_sets) * 2**way
    everything = random_conjunctions(MIXED, exist, way)
    assert {tuple(sorted(set((row >> 1).tolist()))) for row in everything.literals} == set(bit_sets)
    with pytest.raises(BadInputError, match=f"{exist + 1} queries asked.*signed.* is {exist}"):
        random_conjunctions(MIXED, exist + 1, way)


def test_bits_are_uniform_over_sets_of_bits_on_different_columns() -> None:
    # Each legal set is equally likely, whatever the sizes of the columns. Few queries a seed, so
    # that distinctness hardly matters; positive ones, so that a query is a set.
    sets = legal_bit_sets(MIXED, 2)
    number = {bits: i for i, bits in enumerate(sets)}
    counts = np.zeros(len(sets))
    for seed in range(4000):
        for row in random_conjunctions(MIXED, 1, 2, signed=False, seed=seed).literals >> 1:
            counts[number[tuple(row.tolist())]] += 1
    assert stats.chisquare(counts).pvalue > ERROR_RATE


def test_signs_are_fair_and_independent() -> None:
    literals = random_conjunctions(Domain.binary(500), 40_000, 3, seed=2).literals
    assert stats.chisquare(np.bincount((literals & 1) @ [1, 2, 4], minlength=8)).pvalue > ERROR_RATE


def test_columns_that_hardly_ever_differ_are_no_obstacle() -> None:
    # Bits drawn blindly would lie on 20 different columns once in 4e7 draws.
    domain = Domain(np.arange(0, 201, 10))
    literals = random_conjunctions(domain, 1000, 20).literals
    assert (domain.column_of_bit[literals >> 1] == np.arange(20)).all()
    assert len(random_conjunctions(Domain(np.array([0, 1, 100_000])), 1000, 2)) == 1000
