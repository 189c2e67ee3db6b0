"""Weights: what they are rounded to, what is refused, and that every engine counts the same."""

import numpy as np
import polars as pl
import pytest

from dualquery.data.given_table import MOST_COPIES, Unit, Weight
from dualquery.data.readers.formats import source_of
from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.queries.conjunctions import Workload
from dualquery.queries.counting import ConjunctionCounts
from dualquery.rows.engines import Engine
from dualquery.rows.histogram import Histogram
from dualquery.rows.units import weigh
from dualquery.runtime.errors import BadInputError

SCHEMA = TableSchema(
    (Binary("x"), Categorical("y", (("u",), ("v",), ("z",)))), name="survey", declared=True
)


def survey(rows: int = 9000) -> pl.DataFrame:
    generator = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "w": generator.choice([0.0, 0.5, 1.0, 2.25, 7.0, 12.0], rows),
            "home": generator.integers(0, 2000, rows),
            "x": generator.integers(0, 2, rows),
            "y": generator.choice(["u", "v", "z"], rows),
        }
    )


def copies_of(weight: Weight, values: list[float]) -> list[int]:
    """Return how often rows of these weights count."""
    _, digits = weigh(source_of(pl.DataFrame({"w": values, "x": [0] * len(values)})), weight)
    total = sum(part.kept.astype(int) << b for b, part in enumerate(digits))
    return [int(each) for each in total]


@pytest.mark.parametrize("largest", [1.0, 3.0, 100.0, 1023.0])
def test_whole_weights_are_exact(largest) -> None:
    weight, values = Weight("w", largest), [0.0, 1.0, largest, largest + 5]
    assert weight.copies <= MOST_COPIES
    assert weight.copies > MOST_COPIES // 2
    found = np.array(copies_of(weight, values)) * weight.of_copy
    np.testing.assert_allclose(found, [0, 1, largest, largest], rtol=1e-12)


@pytest.mark.parametrize("largest", [0.3, 2.5, 1e6])
def test_weights_are_rounded_and_cut(largest) -> None:
    weight = Weight("w", largest)
    values = np.random.default_rng(1).uniform(0, 1.2 * largest, 200)
    found = np.array(copies_of(weight, values.tolist())) * weight.of_copy
    assert np.abs(found - np.minimum(values, largest)).max() <= weight.of_copy * (0.5 + 1e-9)
    assert found.max() <= largest * (1 + 1e-12)


@pytest.mark.parametrize("unit", [None, Unit("home", 2)])
def test_every_engine_counts_each_row_as_often_as_its_weight_says(unit, tmp_path) -> None:
    table, weight = survey(), Weight("w", 10)
    table.write_csv(tmp_path / "t.csv")
    kept = table if unit is None else table.filter(pl.int_range(pl.len()).over("home") < 2)
    copies = np.rint(np.minimum(kept["w"].to_numpy(), 10) / weight.of_copy).astype(int)
    for source in (table, tmp_path / "t.csv"):
        for name in ("memory", "stream"):
            with Engine(name=name).open(source, SCHEMA, unit=unit, weight=weight) as data:
                assert data.n == data.records.n == copies.sum()
                assert data.units == (9000 if unit is None else table["home"].n_unique())
                assert data.schema.column_names == ("x", "y")
                queries = Workload(np.array([[0, -1], [1, 2], [3, 5]], np.int32), SCHEMA.domain)
                counts = queries.counts(data.records, threads=1)
                x, y = kept["x"].to_numpy() == 1, kept["y"].to_numpy()
                expected = [x, ~x & (y == "u"), (y != "u") & (y != "v")]
                assert counts.tolist() == [int(copies[each].sum()) for each in expected]
                assert data.records.total(Histogram(SCHEMA.domain), 1).sum() == copies.sum()
                assert (data.records.total(ConjunctionCounts(queries.literals), 1) == counts).all()


@pytest.mark.parametrize(
    ("column", "largest", "message"),
    [
        ("", 1.0, "--weight is ''"),
        ("w", 0.0, "--max-weight is 0.0; it is a number from 1e-12"),
        *[("w", largest, f"--max-weight is {largest}") for largest in (float("nan"), 1e-300)],
        ("w", "3", "--max-weight is '3'"),
    ],
)
def test_weights_that_cannot_be(column, largest, message) -> None:
    with pytest.raises(BadInputError, match=message):
        Weight(column, largest)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, -0.5], "row 2, column 'w': -0.5 is no weight; a number from 0 on"),
        ([float("nan"), 1.0], "row 1, column 'w': nan is no weight"),
        (["1", "many"], "row 2, column 'w': 'many' is no weight"),
        ([[1], [2]], "has type List"),
    ],
)
def test_tables_without_proper_weights_are_refused(values, message) -> None:
    with pytest.raises(BadInputError, match=message):
        weigh(source_of(pl.DataFrame({"w": values, "x": [0, 1]})), Weight("w", 2.0))


def test_a_draft_leaves_out_the_columns_of_units_and_weights() -> None:
    with Engine().open(survey(5), unit=Unit("home", 2), weight=Weight("w", 2.0)) as data:
        assert not {"home", "w"} & {*data.schema.column_names}


def test_other_refusals() -> None:
    with pytest.raises(BadInputError, match="there is no column 'v', which --weight names"):
        weigh(source_of(survey(5)), Weight("v", 2.0))
    with (
        pytest.raises(BadInputError, match="there is no column 'home', which --weight names"),
        Engine().open(survey(5), SCHEMA, unit=Unit("home", 2), weight=Weight("home", 2.0)),
    ):
        pass
