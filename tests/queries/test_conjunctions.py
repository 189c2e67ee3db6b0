"""The workload: its canonical form, its validation, its answers, its columns in a release."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.rows.packed import RecordsBuilder
from dualquery.runtime.errors import BadInputError
from tests.cases import random_literals, records_of, truth

DOMAIN = Domain(np.array([0, 1, 4, 6, 7]))


def test_rows_are_sorted_padding_last_and_empty_columns_dropped() -> None:
    workload = Workload(np.array([[9, -1, 4, -1], [-1, -1, 3, -1]]), DOMAIN)
    np.testing.assert_array_equal(workload.literals, [[4, 9], [3, -1]])
    assert workload.literals.dtype == np.int32
    assert (len(workload), workload.way) == (2, 2)


@pytest.mark.parametrize(
    ("literals", "message"),
    [
        ([[14]], r"query 0 has a literal outside -1\.\.13: \[14\]"),
        ([[2, 4], [-1, -1]], r"query 1 has no literal: \[-1 -1\]"),
        ([[2, 3]], r"query 0 uses one bit twice: \[2 3\]"),
        ([[2, 4], [4, -1], [4, 2]], "query 2 repeats query: 0"),
    ],
)
def test_wrong_queries_are_named(literals: list[list[int]], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        Workload(np.array(literals), DOMAIN)


@pytest.mark.parametrize(
    "literals",
    [np.zeros((0, 3), np.int32), np.zeros((3, 0), np.int32), np.zeros((2, 2)), np.zeros(3)],
)
def test_what_is_no_list_of_queries_is_refused(literals: np.ndarray) -> None:
    with pytest.raises(BadInputError, match="one or more queries"):
        Workload(literals, DOMAIN)


@settings(max_examples=60, deadline=None)
@given(st.integers(6, 60), st.integers(1, 6), st.booleans(), st.integers(0, 999))
def test_answers_are_those_of_the_definition(bits: int, way: int, ragged: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    literals = random_literals(40, bits, way, rng, ragged)
    workload = Workload(literals, Domain.binary(bits), repeats=True)
    rows = rng.integers(0, 2, (7, bits)).astype(np.uint8)
    held = truth(workload.literals, rows)
    for r, row in enumerate(rows):
        row.flags.writeable = False
        np.testing.assert_array_equal(workload.on_record(row), held[:, r])
    np.testing.assert_allclose(workload.answers_on(rows), held.mean(axis=1), rtol=1e-15)
    np.testing.assert_array_equal(workload.counts(records_of(rows), 2), held.sum(axis=1))


def test_records_of_another_width_are_refused() -> None:
    workload = Workload(np.array([[0]]), DOMAIN)
    with pytest.raises(ValueError, match="7 bits expected"):
        workload.on_record(np.zeros(6, np.uint8))
    with pytest.raises(ValueError, match="7 bits expected, not 3"):
        workload.counts(RecordsBuilder(3).build(), 1)
    with pytest.raises(ValueError, match="at least one record"):
        workload.answers_on(np.zeros((0, 7), np.uint8))


def test_columns_of_a_release_give_the_workload_back() -> None:
    workload = Workload(np.array([[0, 2, 9], [5, -1, -1], [4, 13, -1]]), DOMAIN, {"kind": "list"})
    columns = workload.to_columns()
    assert list(columns) == ["literal_1", "literal_2", "literal_3"]
    assert [str(column.dtype) for column in columns.values()] == ["Int32"] * 3
    assert columns["literal_2"].to_list() == [2, None, 13]
    again = Workload.from_columns(columns | {"answer": columns["literal_1"]}, DOMAIN, {})
    np.testing.assert_array_equal(again.literals, workload.literals)
