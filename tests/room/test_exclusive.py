"""The proof that a sum of conjunctions is 0 or 1 on every legal record, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import disjunctions_of
from dualquery.queries.parities import Parities
from dualquery.queries.ranges import RangeQueries
from dualquery.room.exclusive import require_exclusive
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records

DOMAIN = Domain(np.array([0, 1, 4, 6, 7], np.int64))
"""A binary column, one of three values, one of two one-hot bits, and a binary one."""


def largest_value(queries: Disjunctions) -> int:
    records = all_records(queries.domain)
    literals = queries.conjunctions.literals
    holds = np.ones((len(records), len(literals)), bool)
    for codes in literals.T:
        truth = records[:, codes >> 1] ^ (codes & 1)
        holds &= (codes < 0) | (truth == 1)
    return int(np.add.reduceat(holds, queries.indptr[:-1], axis=1, dtype=np.int64).max())


def proven(queries: Disjunctions) -> bool:
    try:
        require_exclusive(queries)
    except BadInputError:
        return False
    return True


@st.composite
def sums(draw: st.DrawFn) -> Disjunctions:
    """A few queries, each the sum of a few random conjunctions."""
    rows, owner = [], []
    for query in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(1, 4))):
            bits = draw(st.lists(st.integers(0, DOMAIN.bits - 1), min_size=1, max_size=3,
                                 unique=True))  # fmt: skip
            codes = sorted(2 * bit + draw(st.integers(0, 1)) for bit in bits)
            rows.append(codes + [-1] * (3 - len(codes)))
            owner.append(query)
    return Disjunctions.of_terms(np.array(rows, np.int32), np.array(owner, np.int64), DOMAIN)


@settings(max_examples=400, deadline=None)
@given(sums())
def test_what_is_proven_is_true(queries: Disjunctions) -> None:
    if proven(queries):
        assert largest_value(queries) <= 1


@pytest.mark.parametrize(
    "queries",
    [
        disjunctions_of(Parities(5, 3)),
        disjunctions_of(RangeQueries.all_products(DOMAIN, 2, "all")),
        disjunctions_of(Workload(np.array([[0, 3], [2, -1]], np.int32), Domain.binary(2))),
    ],
)
def test_built_in_families_are_proven(queries: Disjunctions) -> None:
    require_exclusive(queries)


def test_any_of_eight_flags_as_single_literals_is_refused() -> None:
    """Its value may be 8: the game would charge an eighth of the truth."""
    flags = np.arange(0, 16, 2, dtype=np.int32)[:, None]
    queries = Disjunctions.of_terms(flags, np.zeros(8, np.int64), Domain.binary(8))
    assert largest_value(queries) == 8
    with pytest.raises(BadInputError, match="query 0 is a sum of conjunctions of which two may"):
        require_exclusive(queries)


def test_a_conjunction_that_comes_twice_is_refused() -> None:
    terms = np.array([[0, 2], [0, 2]], np.int32)
    queries = Disjunctions.of_terms(terms, np.zeros(2, np.int64), Domain.binary(2))
    with pytest.raises(BadInputError, match="may hold on one record"):
        require_exclusive(queries)
