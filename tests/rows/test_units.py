"""Units: which rows stay, what is refused, and that every engine sees the same rows."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dualquery.data.given_table import Unit, Weight
from dualquery.data.readers.arrow import ArrowTable, Batches
from dualquery.data.readers.formats import source_of
from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.queries.generate.workloads import all_marginals
from dualquery.rows.engines import Engine, load
from dualquery.rows.units import cut_to_units
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import together

SCHEMA = TableSchema(
    (Categorical("home", (("a",), ("b",))), Binary("x"), Categorical("y", (("u",), ("v",)))),
    name="visits",
    declared=True,
)
FRAME = pl.DataFrame(
    {
        "home": ["a", "b", "a", "c", "a", "b", "a"],
        "x": [1, 0, 0, 1, 1, 1, 0],
        "y": ["u", "v", "u", "u", "v", "v", "v"],
    }
)
ONE, TWO = Unit("home", 1), Unit("home", 2)


def test_the_first_rows_of_a_unit_stay_wherever_they_are() -> None:
    found = cut_to_units(source_of(FRAME), TWO)
    assert found.kept.tolist() == [True, True, True, True, False, True, False]
    assert found.units == 3
    assert found.columns() == ["x", "y"]


def test_other_units_keep_their_rows_when_one_goes() -> None:
    rows = FRAME.with_row_index("row")
    kept = rows.filter(pl.Series(cut_to_units(source_of(FRAME), TWO).kept))
    for home in "abc":
        less = rows.filter(pl.col("home") != home)
        stay = less.filter(pl.Series(cut_to_units(source_of(less), TWO).kept))
        assert stay.equals(kept.filter(pl.col("home") != home))


def shuffled_each_time() -> ArrowTable:
    """Return a table of 60 homes of five rows each that is in another order in every pass."""
    orders = iter(range(100))
    rows = pl.DataFrame({"home": np.repeat(np.arange(60), 5), "x": np.tile(range(5), 60)})
    rows = rows.with_columns(w=pl.Series(np.tile([0, 2], 150)))

    @contextmanager
    def opened(*_: object):
        order = np.random.default_rng(next(orders)).permutation(len(rows))
        reader = rows[order].to_arrow().to_reader()
        yield Batches(reader.schema, iter(reader))

    return ArrowTable(opened, ("home", "x", "w"), "a query", steady=False)


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_rows_of_a_query_stay_by_their_own_unit_and_weight(engine) -> None:
    """A database may give its rows in another order each time, and places tell which stay."""
    homes = Categorical("home", tuple((str(home),) for home in range(60)))
    schema, weight = TableSchema((homes,), declared=True), Weight("w", 2.0)
    with Engine(name=engine).open(shuffled_each_time(), schema, weight=weight) as data:
        counts = all_marginals(schema.domain, 1, signed=True).counts(data.records, threads=1)
        assert set(counts.tolist()) == {2 * weight.copies, 3 * weight.copies}
    table = source_of(shuffled_each_time())
    with Engine(name=engine).open(table, unit=TWO) as data:
        assert (data.n, data.units) == (120, 60)
    cut = cut_to_units(table, TWO)
    (frame,) = cut.frames(["home", "x"])
    kept = frame.filter(pl.Series(cut.kept))
    assert set(np.bincount(kept["home"])) == {2}
    assert set(kept["x"]) == {0, 1}  # in whatever order the query gave them


@pytest.mark.parametrize(
    "values",
    [[3, 3, 1, 3], [3.0, 3.0, 1.5, 3.0], ["x", "x", "y", "x"], [True, True, False, True]],
    ids=["int", "float", "text", "bool"],
)
def test_units_are_told_by_values_of_any_kind(values) -> None:
    frame = pl.DataFrame({"home": values, "x": [0, 1, 0, 1]})
    assert cut_to_units(source_of(frame), TWO).kept.tolist() == [True, True, True, False]
    named = frame.with_columns(pl.col("home").cast(pl.String).cast(pl.Categorical))
    assert cut_to_units(source_of(named), TWO).units == 2


def test_the_unit_column_is_never_among_the_records(tmp_path) -> None:
    data = load(FRAME, SCHEMA, unit=TWO)
    assert data.schema.column_names == ("x", "y")
    assert (data.n, data.units) == (5, 3)
    assert any("The column itself is not released." in note for note in data.notes)
    assert load(FRAME, unit=TWO).schema.column_names == ("x", "y")
    assert load(FRAME, columns="1", unit=TWO).schema.column_names == ("x",)
    assert load(FRAME, SCHEMA, columns="home,y", unit=TWO).schema.column_names == ("y",)


def test_every_engine_reads_the_rows_that_stay(tmp_path) -> None:
    many = pl.concat([FRAME] * 2000).with_columns(
        home=pl.Series(np.random.default_rng(0).integers(0, 3000, 14000)).cast(pl.String)
    )
    (tmp_path / "parts").mkdir()
    many.write_csv(tmp_path / "t.csv")
    many[:6000].write_parquet(tmp_path / "parts" / "1.parquet")
    many[6000:].write_parquet(tmp_path / "parts" / "2.parquet")
    expected = many.filter(pl.int_range(pl.len()).over("home") < 2)
    rows = expected.select(pl.col("x").sum(), y=(pl.col("y") == "v").sum()).row(0)
    for table in (many, tmp_path / "t.csv", tmp_path / "parts"):
        for name in ("memory", "stream"):
            with Engine(name=name).open(table, SCHEMA, unit=TWO) as data:
                assert data.n == expected.height
                assert data.units == many["home"].n_unique()
                dense = np.zeros((data.n, data.schema.domain.bits), np.uint8)
                places = range(0, data.n, 4096)
                for first, block in zip(places, data.records.stream(), strict=True):
                    block.unpack(0, dense[first : first + 4096])
                assert (dense[:, 0].sum(), dense[:, 2].sum()) == rows


def test_rows_that_are_incomplete_go_by_themselves() -> None:
    holes = FRAME.with_columns(x=pl.Series([None, 0, 0, 1, 1, 1, 0]))
    schema = replace(SCHEMA, drop_incomplete=True)
    data = load(holes, schema, unit=TWO)
    assert (data.n, data.units) == (5, 3)  # the first two complete rows of each
    assert data.records.ones().tolist() == [3, 2, 3]
    assert any("how many stay is public" in note for note in data.notes)
    gone = load(holes.with_columns(x=pl.Series([0, None, 0, 1, 1, None, 0])), schema, unit=ONE)
    assert gone.n == gone.units == 2  # a home without a complete row is none
    with Engine(name="stream").open(holes, schema, unit=TWO) as streamed:
        assert streamed.n == 5
    heavy = holes.with_columns(w=pl.Series([1.0, 1, 2, 1, 1, 1, 5]))
    with Engine(name="memory").open(heavy, schema, unit=TWO, weight=Weight("w", 7.0)) as data:
        assert data.n * 7 == (2 + 1 + 1 + 1 + 1) * Weight("w", 7.0).copies


@pytest.mark.parametrize(
    ("column", "rows", "message"),
    [
        ("", 2, "--unit is ''; give the name of a column"),
        ("home", 0, "--max-rows-per-unit is 0; a whole number from 1 to 1,000,000"),
        ("home", 10**7, "--max-rows-per-unit is 10000000"),
    ],
)
def test_units_that_cannot_be(column, rows, message) -> None:
    with pytest.raises(BadInputError, match=message):
        Unit(column, rows)


def test_both_options_or_neither() -> None:
    assert together(Unit, {"unit": "home", "max_rows_per_unit": 3}) == Unit("home", 3)
    for given, needed in (("unit", "--max-rows-per-unit"), ("max_rows_per_unit", "--unit")):
        with pytest.raises(BadInputError, match=f"3 needs {needed}"):
            together(Unit, {given: 3})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (FRAME.with_columns(home=pl.Series(["a", None, *"abcde"])), "row 2 has no value"),
        (FRAME.with_columns(home=pl.Series([1.0, *[2.0] * 5, np.nan])), "row 7 has no value"),
        (FRAME.with_columns(home=pl.Series([[1]] * 7)), r"has type List\(Int64\); --weight"),
        (np.eye(3, dtype=np.uint8), "its rows are numbered items, without a column"),
    ],
    ids=["null", "nan", "list", "items"],
)
def test_tables_without_units_are_refused(table, message) -> None:
    with pytest.raises(BadInputError, match=message):
        load(table, unit=TWO)
