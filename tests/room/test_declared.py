"""What a user's own family declares is tried on public records, and the release says so."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data.domain import Domain
from dualquery.data.schema.columns import Binary
from dualquery.data.schema.table import TableSchema
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import disjunctions_of
from dualquery.room.declared import EVERY_RECORD, RECORDS, check_declared
from dualquery.runtime.errors import BadInputError


class AnyOf:
    """Whether any of the first flags is 1, posed as the first flag that is 1."""

    low, high, step, spread, way = 0.0, 1.0, 1.0, 1, 3
    description: ClassVar = {"kind": "any of"}

    def __init__(self, bits: int) -> None:
        self.domain = Domain.binary(bits)

    def __len__(self) -> int:
        return 1

    def counts(self, records, threads):
        return disjunctions_of(self).counts(records, threads)

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

    def counts(self, records, threads):
        return AnyOf(self.domain.bits).counts(records, threads)

    def disjunctions(self):
        terms = np.array([[0], [2], [4]], np.int32)
        return Disjunctions.of_terms(terms, np.zeros(3, np.int64), self.domain)


class FirstOnly(AnyOf):
    """Posed as something else than it answers."""

    def counts(self, records, threads):
        return AnyOf(self.domain.bits).counts(records, threads)

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
    assert (found.tried, found.complete, found.condition) == (16, True, None)
    assert "all 16 legal records" in found.remark


def test_a_large_domain_is_tried_in_part() -> None:
    bits = EVERY_RECORD.bit_length()
    found = check_declared(AnyOf(bits))
    assert (found.tried, found.complete) == (RECORDS, False)
    assert found.condition == "the declared sensitivity of AnyOf"


def test_a_release_says_what_it_is_conditional_on(tmp_path) -> None:
    made = release(AnyOf(12), options={"rounds": 3})
    opening = "Conditional on the declared sensitivity of AnyOf, this release is ("
    assert made.privacy.guarantee().startswith(opening)
    stored = dualquery.releases.folder.PrivacyStatement.from_dict(made.privacy.to_dict())
    assert stored == made.privacy
    assert release(AnyOf(4), options={"rounds": 3}).privacy.guarantee().startswith("This release")


@pytest.mark.parametrize("mechanism", ["dualquery", "gaussian"])
def test_overlapping_conjunctions_are_refused(mechanism: str) -> None:
    """They would be charged as a query of values 0 and 1, and move by up to 3."""
    with pytest.raises(BadInputError, match="two may hold on one record"):
        release(SumOf(12), mechanism)


def test_disjunctions_are_compared_with_the_answers() -> None:
    with pytest.raises(BadInputError, match=r"disjunctions\(\) gives 0 for query 0"):
        check_declared(FirstOnly(4))
