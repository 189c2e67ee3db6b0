"""What a user's own family declares is tried on public records, and the release says so."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualquery
from dualquery.data.domain import Domain
from dualquery.data.schema.columns import Binary
from dualquery.data.schema.table import TableSchema
from dualquery.queries.conjunctions import Workload
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import as_records, disjunctions_of
from dualquery.queries.literals import LiteralRows
from dualquery.queries.parities import Parities
from dualquery.queries.ranges import RangeQueries
from dualquery.room.curator import Curator
from dualquery.room.declared import check_declared
from dualquery.room.exclusive import require_exclusive
from dualquery.room.randomness import randomness
from dualquery.room.sensitivity.moves import differing_queries
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records

DOMAIN = Domain.binary(4)


class AnyOf:
    """Whether any of the first flags is 1, posed as the first flag that is 1."""

    low, high, step, spread, way = 0.0, 1.0, 1.0, 1, 3
    description: ClassVar = {"kind": "any of"}

    def __init__(self, bits: int) -> None:
        self.domain = Domain.binary(bits)

    def __len__(self) -> int:
        return 1

    def counts(self, records, threads):
        return AnyOf.disjunctions(self).counts(records, threads)

    def answers_on(self, records, threads=1):
        return np.array([records[:, :3].any(axis=1).mean()])

    def text(self, schema):
        return pl.Series("query", ["any of the first three"])

    def to_columns(self):
        return {}

    def disjunctions(self):
        terms = np.array([[0, -1, -1], [1, 2, -1], [1, 3, 4]], np.int32)
        return Disjunctions.of_terms(terms, np.zeros(3, np.int64), self.domain)


class SumOf(AnyOf):
    """The same with conjunctions that overlap: the sum of the flags, up to 3."""

    def disjunctions(self):
        terms = np.array([[0], [2], [4]], np.int32)
        return Disjunctions.of_terms(terms, np.zeros(3, np.int64), self.domain)


class FirstOnly(AnyOf):
    """Posed as something else than it answers."""

    def disjunctions(self):
        return Disjunctions.of_terms(np.array([[0]], np.int32), np.zeros(1, np.int64), self.domain)


def release(queries, mechanism="dualquery", **more):
    bits = queries.domain.bits
    rows = np.random.default_rng(0).integers(0, 2, (500, bits)).astype(np.uint8)
    schema = TableSchema(tuple(Binary(f"b{i}") for i in range(bits)), "flags", declared=True)
    return dualquery.release(
        schema.decode(rows), schema=schema, queries=queries, mechanism=mechanism, threads=1,
        delta=1e-6, **more,
    )  # fmt: skip


def test_a_small_domain_is_tried_in_full() -> None:
    found = check_declared(AnyOf(4))
    assert (found.tried, found.complete) == (16, True)
    assert found.condition == "the counts of AnyOf adding up over rows"
    assert "all 16 legal records" in found.remark


def test_a_release_says_what_it_is_conditional_on(tmp_path) -> None:
    made = release(AnyOf(12), options={"rounds": 3})
    opening = "Conditional on the declared sensitivity of AnyOf, this release is ("
    assert made.privacy.guarantee().startswith(opening)
    stored = dualquery.releases.keep.folder.PrivacyStatement.from_dict(made.privacy.to_dict())
    assert stored == made.privacy
    small = release(AnyOf(4), options={"rounds": 3}).privacy.guarantee()
    assert small.startswith("Conditional on the counts of AnyOf adding up over rows, this release")


@pytest.mark.parametrize("mechanism", ["dualquery", "gaussian"])
def test_overlapping_conjunctions_are_refused(mechanism: str) -> None:
    """They would be charged as a query of values 0 and 1, and move by up to 3."""
    with pytest.raises(BadInputError, match="two may hold on one record"):
        release(SumOf(12), mechanism)


def test_disjunctions_are_compared_with_the_answers() -> None:
    with pytest.raises(BadInputError, match=r"disjunctions\(\) gives 0 for query 0"):
        check_declared(FirstOnly(4))


class Fractions(AnyOf):
    """Counts in a type that the room does not take."""

    def counts(self, records, threads):
        return super().counts(records, threads).astype(np.float64)


def test_counts_of_another_type_are_refused_before_anything_is_paid() -> None:
    with pytest.raises(BadInputError, match=r"Fractions: counts.* must return int64"):
        check_declared(Fractions(4))


class Weighted(Workload):
    """Counts five times what its literals say."""

    def counts(self, records, threads):
        return 5 * super().counts(records, threads)


def test_a_subclass_of_conjunctions_is_refused() -> None:
    """Its sensitivity would be proven from literals that it does not count by."""
    queries = Weighted(np.array([[0], [2]], np.int32), Domain.binary(4))
    with pytest.raises(BadInputError, match="Weighted derives from conjunctions"):
        release(queries, "laplace")
    rows = as_records(np.ones((8, 4), np.uint8), queries.domain)
    with pytest.raises(TypeError, match="Weighted may not derive from conjunctions"):
        Curator(rows, queries, (), randomness(1))


@dataclass(frozen=True)
class Lookalike(AnyOf):
    """Equal to every other of its kind, whatever its queries are."""

    domain: Domain = field(default=DOMAIN, compare=False)
    size: int = field(default=1, compare=False)

    def __len__(self) -> int:
        return self.size


def test_equal_families_do_not_share_a_bound() -> None:
    """The room keeps bounds from one run to the next, but not by what a user calls equal."""
    assert Lookalike(size=1) == Lookalike(size=8)
    assert differing_queries(Lookalike(size=1)).count == 1
    assert differing_queries(Lookalike(size=8)).count == 8


class Backwards(AnyOf):
    """Counts in steps below 0: its largest value over its step would seem to be small."""

    low, high, step, spread = 0.0, 5.0, -1.0, 5

    def counts(self, records, threads):
        return -5 * LiteralRows(np.array([[0]], np.int32), self.domain).counts(records, threads)

    def answers_on(self, records, threads=1):
        return 5.0 * records[:, :1].mean(axis=0)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({}, "the step is -1.0; a power of two"),
        ({"step": 0.1}, "the step is 0.1; a power of two"),
        ({"step": float("nan")}, "the step is nan"),
        ({"step": 1.0, "low": float("-inf")}, "the range is -inf to 5.0"),
        ({"step": 1.0, "high": -1.0}, "the range is 0.0 to -1.0"),
        ({"step": 1.0, "spread": 0}, "the spread is 0"),
        ({"step": 1.0, "spread": 1.5}, "the spread is 1.5"),
    ],
)
def test_a_grid_that_no_sensitivity_follows_from_is_refused(changed, complaint: str) -> None:
    """Added records were once charged by the range over the step, whatever its sign."""
    queries = Backwards(3)
    for name, value in changed.items():
        setattr(queries, name, value)
    with pytest.raises(BadInputError, match=complaint):
        check_declared(queries)
    with pytest.raises(BadInputError, match=complaint):
        Curator(as_records(np.ones((8, 3), np.uint8), queries.domain), queries, (), randomness(1))


def test_the_room_itself_proves_that_sums_of_conjunctions_are_0_or_1() -> None:
    queries = SumOf(4).disjunctions()
    rows = as_records(np.ones((8, 4), np.uint8), queries.domain)
    with pytest.raises(BadInputError, match="two may hold on one record"):
        Curator(rows, queries, (), randomness(1))


def test_every_conjunction_belongs_to_a_query() -> None:
    """A last query that ends before the last conjunction would count all that follow."""
    flags = LiteralRows(np.arange(0, 16, 2, dtype=np.int32)[:, None], Domain.binary(8))
    with pytest.raises(ValueError, match="every conjunction is part of one query"):
        Disjunctions(flags, np.array([0, 1]))


class TwiceAsMany(AnyOf):
    """Counts more numbers than there are queries."""

    def counts(self, records, threads):
        return np.repeat(super().counts(records, threads), 2)


def test_the_room_takes_one_whole_number_for_each_query() -> None:
    queries = TwiceAsMany(3)
    rows = as_records(np.ones((8, 3), np.uint8), queries.domain)
    room = Curator(rows, queries, (), randomness(1))
    with pytest.raises(TypeError, match=r"counts\(\) must return one int64 for each query"):
        room.evaluate()


def test_queries_stay_what_was_proven() -> None:
    """Bounds are kept for a list of conjunctions: changed in place, it would keep its bound."""
    queries = Workload(np.array([[0], [2]], np.int32), Domain.binary(4))
    with pytest.raises(ValueError, match="read-only"):
        queries.literals[0] = 4
    ends = np.array([0, 1, 2])
    sums = Disjunctions(queries, ends)
    ends[1] = 2
    assert sums.indptr.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        sums.indptr[1] = 2


MIXED = Domain(np.array([0, 1, 4, 6, 7], np.int64))
"""A binary column, one of three values, one of two one-hot bits, and a binary one."""


def largest_value(queries: Disjunctions) -> int:
    records, literals = all_records(queries.domain), queries.conjunctions.literals
    holds = np.ones((len(records), len(literals)), bool)
    for codes in literals.T:
        holds &= (codes < 0) | ((records[:, codes >> 1] ^ (codes & 1)) == 1)
    return int(np.add.reduceat(holds, queries.indptr[:-1], axis=1, dtype=np.int64).max())


@st.composite
def sums(draw: st.DrawFn) -> Disjunctions:
    """A few queries, each the sum of a few random conjunctions."""
    rows, owner = [], []
    for query in range(draw(st.integers(1, 3))):
        for _ in range(draw(st.integers(1, 4))):
            bits = draw(st.lists(st.integers(0, MIXED.bits - 1), min_size=1, max_size=3,
                                 unique=True))  # fmt: skip
            codes = sorted(2 * bit + draw(st.integers(0, 1)) for bit in bits)
            rows.append(codes + [-1] * (3 - len(codes)))
            owner.append(query)
    return Disjunctions.of_terms(np.array(rows, np.int32), np.array(owner, np.int64), MIXED)


@settings(max_examples=400, deadline=None)
@given(sums())
def test_what_is_proven_is_true(queries: Disjunctions) -> None:
    try:
        require_exclusive(queries)
    except BadInputError:
        return
    assert largest_value(queries) <= 1


@pytest.mark.parametrize(
    "queries",
    [
        disjunctions_of(Parities(5, 3)),
        disjunctions_of(RangeQueries.all_products(MIXED, 2, "all")),
        disjunctions_of(Workload(np.array([[0, 3], [2, -1]], np.int32), Domain.binary(2))),
    ],
)
def test_built_in_families_are_proven(queries: Disjunctions) -> None:
    require_exclusive(queries)
