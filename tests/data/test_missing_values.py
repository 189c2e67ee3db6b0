"""Missing values by column: a number stands for one here, and for itself there."""

import datetime
import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data import Binary, Categorical, Dates, Numeric, TableSchema
from dualquery.data.schema.columns import Column
from dualquery.data.schema.schema_files import load_schema, schema_from_dict, write_schema
from dualquery.questions.compiler import ask
from dualquery.questions.plain_parser import read_question
from dualquery.rows.engines import load
from dualquery.runtime.errors import BadInputError
from tests.tables import random_records

KEPT = {"missing": "category"}
SURVEY = {
    "declared": True,
    "missing_values": ["", "n/a"],
    "columns": [
        {"name": "age", "kind": "numeric", "edges": [0, 50, 100], "integer": True},
        {"name": "kids", "kind": "numeric", "edges": [0, 3, 100], "integer": True, **KEPT,
         "missing_values": [99, -1.5]},
        {"name": "sex", "kind": "categorical", "values": ["f", "m", "99"], **KEPT,
         "missing_values": ["9"]},
        {"name": "born", "kind": "date", "by": "month", "first": "2023-01-01",
         "last": "2023-02-28", "format": "%d.%m.%Y", **KEPT,
         "missing_values": ["01.01.2023", "9999-12-31"]},
        {"name": "flag", "kind": "binary", "one": "yes", "zero": "no", "missing_values": [2]},
    ],
}  # fmt: skip


def missing(frame: pl.DataFrame, schema: TableSchema) -> dict[str, list[bool]]:
    """Return for each column that keeps missing values which rows have the bit of these."""
    rows = load(frame, schema).records.dense_rows(0, frame.height)
    places = {
        column.name: int(schema.domain.offsets[number]) + bit
        for number, column in enumerate(schema.columns)
        if not isinstance(column, Binary) and (bit := column.missing_bit) is not None
    }
    return {name: (rows[:, place] == 1).tolist() for name, place in places.items()}


def test_they_are_written_back_as_they_were_read(tmp_path: Path) -> None:
    schema = schema_from_dict(SURVEY)
    own = [(), ("99", "-1.5"), ("9",), ("01.01.2023", "9999-12-31"), ("2",)]
    assert [column.missing_values for column in schema.columns] == own
    assert schema.missing_in(schema.columns[1]) == ("", "n/a", "99", "-1.5")
    assert schema_from_dict(schema.to_dict()) == schema
    write_schema(schema, tmp_path / "s.json")
    written = json.loads((tmp_path / "s.json").read_text())["columns"]
    assert "missing_values" not in written[0]
    assert written[1]["missing_values"] == ["99", "-1.5"]
    assert load_schema(tmp_path / "s.json") == schema
    assert schema.restrict("kids").columns[0].missing_values == ("99", "-1.5")
    (tmp_path / "s.toml").write_text(
        '[[columns]]\nname = "x"\nkind = "numeric"\nedges = [0, 1, 2]\nmissing_values = [9, "k.A."]'
    )
    assert load_schema(tmp_path / "s.toml").columns[0].missing_values == ("9", "k.A.")  # type: ignore[union-attr]


def test_where_no_text_means_missing_a_text_file_cannot_hold_it() -> None:
    column = Numeric("n", (0.0, 1.0, 2.0), missing="category")
    schema = TableSchema((column, Binary("b")), declared=True, missing_values=())
    with pytest.raises(BadInputError, match="no text means missing"):
        schema.with_missing_texts(pl.DataFrame({"n": [0.5, None], "b": [0, 1]}))


@pytest.mark.parametrize("texts", [True, False])
def test_a_number_is_missing_in_the_columns_that_list_it(texts: bool) -> None:
    day = datetime.date
    frame = pl.DataFrame(
        {
            "age": [99, 3, 99, 60],
            "kids": [99.0, 98, -1.5, 1],
            "sex": ["99", "9", "f", "n/a"],
            "born": [day(9999, 12, 31), day(2023, 1, 1), day(2023, 1, 2), None],
            "flag": ["no", "no", "yes", "no"],
        }
    )
    if texts:
        frame = frame.with_columns(
            pl.col("age", "kids").cast(pl.String), pl.col("born").dt.strftime("%d.%m.%Y")
        )
    assert missing(frame, schema_from_dict(SURVEY)) == {
        "kids": [True, False, True, False],
        "sex": [False, True, False, True],
        "born": [True, True, False, True],
    }


def test_rows_are_refused_or_left_out_by_what_is_missing_in_a_column() -> None:
    columns = (
        Numeric("age", (0.0, 50.0, 100.0)),
        Numeric("kids", (0.0, 3.0, 100.0), missing_values=("99",)),
    )
    frame = pl.DataFrame({"age": [99, 20, 99], "kids": [1, 99, 2]})
    with pytest.raises(BadInputError, match=r"row 2, column 'kids': the value is missing \(99\)"):
        load(frame, TableSchema(columns, declared=True))
    assert load(frame, TableSchema(columns, declared=True, drop_incomplete=True)).n == 2


def column(**fields: object) -> dict[str, object]:
    return {"columns": [{"name": "c", "kind": "numeric", "edges": [0, 9, 10, 20], **fields}]}


CODES = {"kind": "categorical", "values": ["1", ["2", "3"]]}
SEEN = {"kind": "date", "by": "day", "first": "2023-01-01", "last": "2023-01-09"}


def named(fields: dict[str, object], *texts: object) -> dict[str, object]:
    return {"columns": [{"name": "c", **fields, "missing_values": list(texts)}]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (column(missing_values="99"), "column 'c': missing_values is '99'; a list is expected"),
        (column(missing_values=[None]), "missing_values holds None, which is not a text"),
        (column(missing_values=[""]), "lists '', which is listed before"),
        (named(CODES, 3), "column 'c': '3' is declared as a value and also stands for a missing"),
        (named(SEEN, "2023-01-02"), "'2023-01-02' is declared as a value and also"),
        (named({**SEEN, "format": "%d.%m.%y"}, "02.01.23"), "all that 2023-01-02 holds stands for"),
        (column(within=["uniform", [9.5, 9], "uniform"], missing_values=[9, 9.5]),
         "all that 9-10 holds"),
        (column(kind="numeric", edges=[0, 1, 9], integer=True) | {"missing_values": [0]},
         "'0' is declared"),
    ],
)  # fmt: skip
def test_missing_values_that_make_no_sense_are_explained(fields, message: str) -> None:
    with pytest.raises(BadInputError) as told:
        schema_from_dict(fields)
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kids=-1.50", "column 'kids': the schema lists '-1.50' as a missing value; ask for kids="),
        ("flag=2", "lists '2' as a missing value, and missing values are no value of this"),
    ],
)
def test_questions_are_told_what_is_missing_in_the_column(text: str, message: str) -> None:
    schema = schema_from_dict(SURVEY)
    with pytest.raises(BadInputError) as told:
        ask(read_question(text, schema), schema)
    assert message in str(told.value)


POOL = ["", "-9", "-9.0", "-9,00", "0", "1", "5", "05", "5.5", "7", "99", "n/a", "(missing)"]
DAYS = ["", "2023-01-01", "01.01.2023", "2023-01-31", "31.01.2023", "9999-12-31", "x"]
OF_ALL = ["", "-9", "-9,00", "1", "5.5", "99", "n/a", "9999-12-31", "x"]
"""In no list of these is all of a bucket: for a column's own that is refused."""

some = st.lists(st.sampled_from([*POOL, *DAYS]), max_size=4, unique=True)


def columns_of(name: str) -> st.SearchStrategy[Column]:
    kept = {"missing": st.just("category"), "missing_values": some.map(tuple)}
    numbers = {"unparsable": st.just("missing"), "outside": st.just("clip"), **kept}
    return st.one_of(
        st.builds(
            Numeric,
            st.just(name),
            st.sampled_from([(0, 1, 7), (-10, 0, 5, 6, 100), (0.5, 5.5, 7.0)]),
            decimals=st.sampled_from([None, 1]),
            **numbers,  # type: ignore[arg-type]
        ),
        st.builds(
            Numeric, st.just(name), st.just((0, 1, 5, 8)), st.just(True), **numbers  # type: ignore[arg-type]
        ),
        st.builds(
            Categorical,
            st.just(name),
            st.sampled_from([(("1",), ("5", "05")), (("0",), ("x",), ("7",)), (("99",), ("5.5",))]),
            outside=st.just("other"),
            **kept,  # type: ignore[arg-type]
        ),
        st.builds(
            Dates,
            st.just(name),
            st.sampled_from(["month", "day"]),
            first=st.just("2023-01-01"),
            last=st.just("2023-02-03"),
            format=st.sampled_from([None, "%d.%m.%Y"]),
            **numbers,  # type: ignore[arg-type]
        ),
        st.builds(Binary, st.just(name), missing_values=some.map(tuple)),
    )  # fmt: skip


def is_missing(column: Column, cell: str, listed: tuple[str, ...]) -> bool:
    """Return whether a text cell is missing, by the page: the long way."""
    known = {*listed, *(text.replace(",", ".") for text in listed if "," in text)}
    if cell in known:
        return True
    if isinstance(column, Dates):
        iso = {"2023-01-01": 1, "2023-01-31": 31, "9999-12-31": 9}
        told = iso if column.format is None else {"01.01.2023": 1, "31.01.2023": 31}
        if cell not in told:
            return cell not in column.labels[: column.buckets]
        return told[cell] in {(iso | told).get(text) for text in known}
    if isinstance(column, Numeric):
        number = as_number(cell)
        whole = number is not None and number == int(number)
        if number is None or (column.integer and not whole):
            return True
        return number in {as_number(text) for text in known}
    return False


def as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@settings(max_examples=150)
@given(st.integers(1, 3), st.sets(st.sampled_from(OF_ALL)), st.integers(0, 99), st.data())
def test_columns_read_what_they_write_and_miss_what_is_listed(number, of_all, seed, data) -> None:
    columns = tuple(data.draw(columns_of(f"c{place}")) for place in range(number))
    try:
        schema = TableSchema(columns, declared=True, missing_values=tuple(of_all))
    except BadInputError:
        return
    assert schema_from_dict(schema.to_dict()) == schema
    records = random_records(schema.domain, 60, np.random.default_rng(seed))
    decoded = schema.decode(records, np.random.default_rng(seed))
    for numbers in (decoded[each.name] for each in columns if getattr(each, "decimals", None)):
        assert numbers.round(1).equals(numbers)
    for frame in (decoded, decoded.select(pl.all().cast(pl.String))):
        again = load(frame, schema).records
        np.testing.assert_array_equal(again.dense_rows(0, len(records)), records)
    held = tuple(each for each in columns if not isinstance(each, Binary))
    cells = [*POOL, *DAYS]
    if held:
        own = TableSchema(held, declared=True, missing_values=tuple(of_all))
        found = missing(pl.DataFrame({each.name: cells for each in held}), own)
        for each in held:
            expected = [is_missing(each, cell, own.missing_in(each)) for cell in cells]
            assert found[each.name] == expected, each


def test_records_in_an_order_avoid_what_is_missing() -> None:
    edges = (0, 2, 4)
    columns = (
        Numeric("a", edges, integer=True, missing_values=("2",)),
        Numeric("b", edges, integer=True, missing_values=("4", "0")),
        *(Numeric(name, edges, integer=True) for name in "cdef"),
    )
    # So many columns are seldom drawn in this order: the last ones are drawn one by one.
    rules = tuple(f"{low} <= {high}" for low, high in itertools.pairwise("abcdef"))
    schema = TableSchema(columns, declared=True, rules=rules)
    records = np.tile(np.array([[1, 0] * 2 + [1, 0] * 4, [0, 1] * 6], np.uint8), (2000, 1))
    again = load(schema.decode(records), schema).records
    np.testing.assert_array_equal(again.dense_rows(0, len(records)), records)


def test_a_gap_in_a_chain_of_orders_is_refused() -> None:
    first = Numeric("a", (0, 5, 9), integer=True)
    middle = Numeric("b", (0, 3, 9), integer=True, missing_values=("4", "5"))
    last = Numeric("c", (0, 2, 6, 9), integer=True)
    with pytest.raises(BadInputError, match=r"column 'b' stands between .* missing_values inside"):
        TableSchema((first, middle, last), declared=True, rules=("a <= b", "b <= c"))
