"""Whole releases of families other than conjunctions, by MWEM, DualQuery and noise."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data.domain import column_values
from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.queries.parities import Parities
from dualquery.queries.products import Products
from dualquery.queries.ranges import RangeQueries
from dualquery.queries.tabulated import HistogramQueries
from dualquery.runtime.errors import BadInputError
from tests.mwem.test_families import skewed_rows

SCHEMA = TableSchema(
    (Binary("a"), Binary("b"), Categorical("grade", tuple((x,) for x in "ABCD")), Binary("c")),
    name="school",
    declared=True,
)
DOMAIN = SCHEMA.domain
QUERIES = {
    "parities": Parities(DOMAIN, 2),
    "ranges": RangeQueries.all_products(DOMAIN, 2, "all"),
    "matrix": HistogramQueries(np.random.default_rng(0).uniform(-2, 3, (20, 32)), DOMAIN),
}
ROWS = skewed_rows(DOMAIN, 3000)
TABLE = SCHEMA.decode(ROWS)


def release(queries, mechanism: str, **more):
    return dualquery.release(
        TABLE, schema=SCHEMA, queries=queries, mechanism=mechanism, seed=1, threads=1, **more
    )


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("mechanism", ["mwem", "dualquery", "gaussian", "laplace"])
def test_a_release_answers_and_comes_back(tmp_path, name: str, mechanism: str) -> None:
    queries = QUERIES[name]
    if (name, mechanism) == ("matrix", "dualquery"):
        with pytest.raises(BadInputError, match="use the mechanism mwem"):
            release(queries, mechanism)
        return
    options = {"rounds": 80, "samples": 200} if mechanism == "dualquery" else {}
    made = release(queries, mechanism, epsilon=8.0, options=options)
    truth = queries.answers_on(ROWS)
    assert np.abs(made.answers - truth).max() < 0.2 * (queries.high - queries.low)
    loaded = dualquery.load_release(made.save(tmp_path / "made"))
    assert type(loaded.workload) is type(queries)
    assert np.array_equal(loaded.answers, made.answers)
    assert np.array_equal(loaded.workload.answers_on(ROWS), truth)
    report = dualquery.evaluate(loaded, TABLE, threads=1)
    assert report["max_error"] == pytest.approx(np.abs(made.answers - truth).max())
    assert list(report["baselines"]) == ["gaussian"]


@pytest.mark.parametrize("mechanism", ["independent", "uniform", "zero"])
def test_a_mechanism_of_conjunctions_says_so(mechanism: str) -> None:
    with pytest.raises(BadInputError, match="conjunctions, not Parities; use the mechanism mwem"):
        release(QUERIES["parities"], mechanism)


def test_queries_as_text() -> None:
    made = release(QUERIES["parities"], "mwem")
    assert "parity(a)" in made.answer_table["query"].to_list()
    assert "parity(b, grade=C)" in made.answer_table["query"].to_list()
    boxes = RangeQueries(DOMAIN, [{2: (1, 3), 0: (0, 0)}, {2: (0, 1)}])
    made = release(boxes, "mwem", options={"iterations": 1})
    assert made.answer_table["query"].to_list() == ["a in 0..0 & grade in 1..3", "grade in 0..1"]


def test_rules_force_ranges_and_columns_of_no_query_are_told() -> None:
    schema = replace(SCHEMA, rules=("a=1 => b=1",))
    boxes = RangeQueries(DOMAIN, [{0: (1, 1), 1: (0, 0)}, {0: (0, 1), 1: (0, 0)}])
    given = {"queries": boxes, "mechanism": "mwem", "options": {"iterations": 1}, "seed": 1}
    made = dualquery.release(TABLE.filter(pl.col("a") <= pl.col("b")), schema=schema, **given)
    assert made.answers[0] == 0 < made.answers[1]
    assert made.intervals.of(0) == (0, 0)
    assert any("No query asks" in note and "'c'" in note for note in made.notes)


def test_a_parity_and_its_value_on_columns() -> None:
    """The three ways to read a record agree: bits, columns' values, and cells."""
    values, graded = column_values(ROWS, DOMAIN), QUERIES["parities"].answers_on(ROWS)
    names = QUERIES["parities"].text(SCHEMA).to_list()
    expected = np.mean((-1.0) ** (values[:, 1] + (values[:, 2] == 2)))
    assert graded[names.index("parity(b, grade=C)")] == pytest.approx(expected)


class GradePoints:
    """A user's own family: the mean of 0 .. 3 points for the grade, and of twice a minus one."""

    domain = DOMAIN
    low, high, step, spread, way = -1.0, 3.0, 1.0, 3, 1
    description: ClassVar = {"kind": "grade points"}

    def __len__(self) -> int:
        return 2

    def counts(self, records, threads):
        a, *grades = records.total(Bits(), threads)[[0, 2, 3, 4, 5]]
        return np.array([np.dot(grades, [0, 1, 2, 3]), 2 * a - records.n])

    def answers_on(self, records, threads=1):
        return np.stack((records[:, 2:6] @ [0, 1, 2, 3], 2.0 * records[:, 0] - 1)).mean(axis=1)

    def text(self, schema):
        return pl.Series("query", ["points", "twice a minus one"])

    def to_columns(self):
        return {}

    def products(self):
        return Products(
            sizes=np.array([2, 2, 4, 2]),
            columns=np.array([[2], [0]], np.int32),
            factors=np.array([[0], [1]], np.int32),
            factor_column=np.array([2, 0], np.int32),
            indptr=np.array([0, 3, 5]),
            index=np.array([1, 2, 3, 0, 1], np.int32),
            coefficient=np.array([1 / 3, 2 / 3, 1, -1, 2]),
            cumulative=np.zeros(4, bool),
            scale=np.array([3.0, 1.0]),
        )


class Bits:
    """How many rows have each bit."""

    def __call__(self, rows, _threads=1):
        return rows.dense_rows(0, rows.n).sum(axis=0, dtype=np.int64)


def test_a_family_of_the_users_own(tmp_path) -> None:
    queries = GradePoints()
    made = release(queries, "mwem", options={"iterations": 2, "repetitions": 50}, epsilon=8.0)
    assert np.abs(made.answers - queries.answers_on(ROWS)).max() < 0.1
    assert any("GradePoints are declared by their author" in note for note in made.notes)
    with pytest.raises(BadInputError, match="use the mechanism mwem"):
        release(queries, "dualquery")
    with pytest.raises(BadInputError, match="'grade points' are not built in"):
        dualquery.load_release(made.save(tmp_path / "made"))


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"high": 2.0}, "query 0 is 3.0 on the record .*, outside its declared range -1 to 2"),
        ({"spread": 2}, "more than its declared spread of 2 steps"),
        ({"step": 2.0}, "not a multiple of its declared step 2"),
        ({"spread": 0}, "the spread is 0; a whole number from 1 on"),
    ],
)
def test_a_wrong_declaration_is_found_on_public_records(declared, message: str) -> None:
    queries = type("Wrong", (GradePoints,), declared)()
    with pytest.raises(BadInputError, match=message):
        release(queries, "mwem", options={"iterations": 2})
