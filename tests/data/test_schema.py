"""What schemas promise: names, literals, selections, files, and decoding that encodes back."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data import Binary, Categorical, ItemSchema, Numeric, TableSchema
from dualquery.data.schema.column_choice import format_items, select_items
from dualquery.data.schema.schema_files import load_schema, schema_from_dict, write_schema
from dualquery.rows.engines import load
from dualquery.runtime.errors import BadInputError
from tests.tables import random_records

AGE = Numeric("age", (0.0, 30.0, 35.0, 100.0), integer=True)
SEX = Categorical("sex", (("Female", "F"), ("Male", "M")))
RATE = Numeric("rate", (0.0, 0.5, 1.0), missing="category", outside="clip")
TABLE = TableSchema((AGE, SEX, Binary("flag"), RATE), name="people", declared=True)


def test_labels_name_columns_and_values() -> None:
    assert TABLE.bit_labels().to_list() == [
        *("age=0-30", "age=30-35", "age=35-100", "sex=Female|F", "sex=Male|M", "flag"),
        *("rate=0-0.5", "rate=0.5-1", "rate=(missing)"),
    ]


@pytest.mark.parametrize(
    ("edges", "value", "bit"),
    [
        ((-114699.0, -94363.0, 0.0), "-114699 to -94363", 0),
        ((1e6, 2e6, 3e6), "1e+06-2e+06", 0),
        ((1.0, 1.00000001, 1.00000002), "1.00000001-1.00000002", 1),
    ],
)
def test_a_bucket_is_found_by_its_ends(edges: tuple[float, ...], value: str, bit: int) -> None:
    assert TableSchema((Numeric("x", edges),), declared=True).literal("x", value) == 2 * bit


@pytest.mark.parametrize("value", ["1-1", "1-1.00000002", "1.00000001-1", "0-1", "1-nan"])
def test_a_range_that_is_no_bucket_is_refused(value: str) -> None:
    schema = TableSchema((Numeric("x", (1.0, 1.00000001, 1.00000002)),), declared=True)
    with pytest.raises(BadInputError, match="has no value"):
        schema.literal("x", value)


def test_a_category_is_found_by_its_number() -> None:
    schema = TableSchema(
        (Categorical("Größe", (("1.70", "1.7e0"), ("1.80",), ("1.8", "tall"), (f"{2**60}",))),),
        declared=True,
    )
    for value, code in [("1.70", 0), ("1.7", 0), ("1.700", 0), ("1.80", 2), ("1.8", 4)]:
        assert schema.literal("Größe", value) == code
    for value in ("1.800", "1_7", "nan", "1.9", f"{2**60 + 1}"):  # 1.800 may be two of them
        with pytest.raises(BadInputError, match="column 'Größe' has no value"):
            schema.literal("Größe", value)


@given(st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=8, unique=True))
def test_every_printed_label_is_understood(edges: list[float]) -> None:
    column = Numeric("x", tuple(sorted(edges)))
    schema = TableSchema((column,), declared=True)
    for bit, label in enumerate(column.labels):
        assert schema.literal("x", label) == 2 * bit
        low, high = column.edges[bit : bit + 2]
        assert schema.literal("x", f"{low!r} to {high!r}") == 2 * bit


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("age", "30-35", 2),
        ("age", "32", 2),
        ("age", "35", 4),
        ("sex", "M", 8),
        ("sex", "Male|M", 8),
        ("flag", None, 10),
        ("flag", "0", 11),
        ("rate", "(missing)", 16),
        ("rate", "1.0", 14),
    ],
)
def test_a_literal_is_found_by_label_or_by_value(column: str, value: str | None, code: int) -> None:
    assert TABLE.literal(column, value) == code


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("agee", "3", "there is no column 'agee'; did you mean 'age'?"),
        ("sex", "Mal", "column 'sex' has no value 'Mal'; did you mean 'Male'"),
        ("age", None, "column 'age' needs a value, such as age=0-30"),
        ("age", "101", "column 'age' has no value '101'; it must be one of '0-30', '30-35'"),
    ],
)
def test_an_unknown_name_is_explained(column: str, value: str | None, message: str) -> None:
    with pytest.raises(BadInputError, match=f"^{re.escape(message)}"):
        TABLE.literal(column, value)


def test_items_have_ids_for_labels_and_literals() -> None:
    schema = ItemSchema(np.array([3, 7, 8], np.int64), declared=True)
    assert schema.bit_labels().to_list() == ["3", "7", "8"]
    assert (schema.literal("7", None), schema.literal("8", "0")) == (2, 5)
    assert list(schema.column_names) == ["3", "7", "8"]
    for column, value, message in [
        ("4", None, "there is no item 4; schema 'items' lists 3 items from 3 to 8"),
        ("x", None, "'x' is no item id"),
        ("7", "2", "item 7 is 0 or 1, never '2'"),
    ]:
        with pytest.raises(BadInputError, match=message):
            schema.literal(column, value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Categorical("c", (("a",),)), r"schema, column 'c': 1 value declared; a group"),
        (lambda: Categorical("c", (("a",), ("b", "a"))), "the value 'a' is declared twice"),
        (lambda: Categorical("c", (("a", "b"), ("a|b",))), "'a|b' is declared twice"),
        (lambda: Numeric("c", (0.0, 1.0)), "1 bucket declared"),
        (lambda: Binary("a\0b"), r"the column name 'a\\x00b' is empty or holds a NUL"),
        (lambda: Numeric("c", (0.0, 2.0, 1.0)), "must be finite and increase, but 1 follows 2"),
        (lambda: Numeric("c", (0.0, 0.2, 0.8, 3.0), integer=True), "holds no whole number"),
        (lambda: TableSchema((), declared=True), "it has no columns, so records have no bits"),
        (lambda: TableSchema((RATE,), drop_incomplete=True, declared=True),
         "column 'rate': missing is a category, but drop_incomplete leaves such rows out"),
        (lambda: schema_from_dict({"columns": [RATE.to_dict()], "learned": {"epsilon": 1}}),
         "a list of events"),
        (lambda: ItemSchema(np.array([1, 2]), names=("a", "a"), declared=True),
         "two items have the name 'a'"),
        (lambda: ItemSchema(np.array([5, 3], np.uint32), declared=True), "ids must increase"),
        (lambda: load(pl.DataFrame({"rate": [0.1]}), TableSchema((RATE,), declared=1)),
         "declared is 1; true or false"),
    ],
)  # fmt: skip
def test_a_schema_that_makes_no_sense_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(BadInputError, match=message):
        make()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"columns": [], "declared": "true"}, "schema: declared is 'true'; true or false, without"),
        ({"kolumns": []}, "schema: unknown key 'kolumns'; did you mean 'columns'?"),
        ({"columns": [{"name": "a", "kind": "text"}]}, "column 'a': kind is 'text'; it must be"),
        ({"columns": [{"name": "a", "kind": "binary", "won": 1}]}, "column 'a': unknown key"),
        ({"columns": [{"name": "a", "kind": "numeric", "edges": [0, 1, None]}]},
         "found [0, 1, null]; every bucket needs two ends"),
        ({"columns": [], "version": 2}, "version 2 is not known to this program"),
        ({"items": "4-x"}, "items: '4-x' is neither an item id nor a range"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(BadInputError, match=re.escape(message)):
        schema_from_dict(fields)


def test_selection_by_name_position_and_range() -> None:
    assert TABLE.restrict("sex,3").column_names == ("sex", "rate")
    assert TABLE.restrict(["flag", "0-1"]).column_names == ("age", "sex", "flag")
    assert TABLE.select("flag").tolist() == [2]
    numbered = TableSchema((Binary("2"), Binary("x"), Binary("y")), declared=True)
    assert numbered.restrict("2").column_names == ("2",)  # a name wins over a position
    for selection, message in [
        ("sexes", "columns: there is no column 'sexes'; did you mean 'sex'"),
        ("2-4", "columns: '2-4' reaches beyond the last position, 3"),
        (" , ", "columns: nothing is selected"),
        ("!sexes", "columns: there is no column 'sexes'; did you mean 'sex'"),
        ("sex,!sex", "columns: every selected column is also left out"),
        ('"!sex', "is no list with commas: unexpected end of data"),
    ]:
        with pytest.raises(BadInputError, match=message):
            TABLE.restrict(selection)


def test_a_selected_name_with_a_comma_is_in_quotation_marks() -> None:
    table = TableSchema((Binary("city, state"), Binary('note "x"'), Binary("age")), declared=True)
    assert table.select('age, "city, state"').tolist() == [0, 2]
    assert table.select('"!city, state"').tolist() == [1, 2]
    assert table.select('note "x","note ""x"""').tolist() == [1]


def test_a_selection_may_leave_out() -> None:
    assert TABLE.restrict("!sex").column_names == ("age", "flag", "rate")
    assert TABLE.restrict("!sex, !2-3").column_names == ("age",)
    assert TABLE.restrict(["0-2", "!sex"]).column_names == ("age", "flag")
    assert TABLE.select("! age,!rate").tolist() == [1, 2]
    odd = TableSchema((Binary("!x"), Binary("x"), Binary("y")), declared=True)
    assert odd.restrict("!x").column_names == ("!x",)  # a name wins
    assert odd.restrict("!!x").column_names == ("x", "y")
    with pytest.raises(BadInputError, match="items: '!3' leaves an item out, but only columns"):
        ItemSchema.numbered(9, "x").restrict("!3")


@given(st.sets(st.integers(0, 400), min_size=1))
def test_item_lists_survive_their_ranges(items: set[int]) -> None:
    array = np.array(sorted(items), np.int64)
    np.testing.assert_array_equal(select_items(format_items(array)), array)


def test_names_of_any_letters_survive_json() -> None:
    columns = (
        Binary("größe, \n", "\u2028", '"'),
        Categorical("=|", (("a|b", "!"), ("&",)), outside="other"),
    )
    schema = TableSchema((*TABLE.columns, *columns), name="\t", declared=False)
    assert schema_from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    records = random_records(schema.domain, 20, np.random.default_rng(1))
    again = load(schema.decode(records), schema).records
    np.testing.assert_array_equal(again.dense_rows(0, 20), records)


def test_decoded_tables_survive_csv_and_parquet(tmp_path: Path) -> None:
    records = random_records(TABLE.domain, 50, np.random.default_rng(3))
    frame = TABLE.decode(records)
    assert frame.schema == {"age": pl.Int64, "sex": pl.String, "flag": pl.UInt8, "rate": pl.Float64}
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        again = load(str(tmp_path / name), TABLE).records
        np.testing.assert_array_equal(again.dense_rows(0, 50), records)


def test_a_record_that_breaks_a_group_is_not_decoded() -> None:
    record = random_records(TABLE.domain, 1, np.random.default_rng(0))
    record[0, :3] = 1
    with pytest.raises(ValueError, match="record 0 has 3 bits of column 'age' set"):
        TABLE.decode(record)


@pytest.mark.parametrize(("items", "columns"), [(12, 12), (10_001, 1)])
def test_items_decode_to_columns_or_to_lists(items: int, columns: int, tmp_path: Path) -> None:
    schema = ItemSchema(np.arange(5, 5 + items, dtype=np.int64), declared=True)
    records = (np.random.default_rng(1).random((4, items)) < 0.3).astype(np.uint8)
    records[2] = 0
    frame = schema.decode(records)
    assert frame.width == columns
    frame.write_parquet(tmp_path / "r.parquet")
    for source in (frame, str(tmp_path / "r.parquet")):
        if columns == 1 and source is frame:
            assert frame.schema == {"items": pl.List(pl.Int32)}
        np.testing.assert_array_equal(load(source, schema).records.dense_rows(0, 4), records)


def test_a_schema_file_declares_itself_only_by_saying_so(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_schema(TABLE, path)
    assert '"declared": true' in path.read_text(encoding="utf-8")
    assert load_schema(path) == TABLE
    draft = TableSchema(TABLE.columns, name="survey.csv", declared=False)
    write_schema(draft, path)
    text = path.read_text(encoding="utf-8")
    assert '"declared": false' in text
    assert load_schema(path) == TableSchema(TABLE.columns, name="s.json", declared=False)
    path.write_text(text.replace('"declared": false', '"declared": true'), encoding="utf-8")
    assert load_schema(path) == TableSchema(TABLE.columns, name="s.json", declared=True)
    assert schema_from_dict(draft.to_dict()) == draft
    path.write_text(text.replace('  "declared": false,\n', ""), encoding="utf-8")
    assert load_schema(path).declared is False
    with pytest.raises(TypeError, match="declared"):
        TableSchema(TABLE.columns)  # type: ignore[call-arg]


def test_a_schema_is_written_whole_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "s.json").write_text("before", encoding="utf-8")

    def fail(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(BadInputError, match=r"s\.json: cannot be written \(No space left"):
            write_schema(TABLE, path)
    assert path.read_text(encoding="utf-8") == "before"
    write_schema(TABLE, path)
    assert load_schema(path) == TABLE
    assert [file.name for file in tmp_path.iterdir()] == ["s.json"]


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "people.toml").write_text(
        """
        declared = true
        drop_incomplete = true
        missing_values = ["", "?"]
        [[columns]]
        name = "sex"
        kind = "categorical"
        values = ["Female", ["Male", "M"]]
        [[columns]]
        name = "age"
        kind = "numeric"
        edges = [0, 50, 100]
        integer = true
        """,
        encoding="utf-8",
    )
    assert load_schema(tmp_path / "people.toml") == TableSchema(
        (
            Categorical("sex", (("Female",), ("Male", "M"))),
            Numeric("age", (0.0, 50.0, 100.0), integer=True),
        ),
        name="people.toml",
        drop_incomplete=True,
        missing_values=("", "?"),
        declared=True,
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.json", b"{", "not valid JSON"),
        ("s.json", b'{"declared": yes}', "missing, or one too many, near '{\"declared\": yes}'?"),
        ("s.json", b"\xff\xfe", "not UTF-8 text"),
    ],
)
def test_a_damaged_schema_is_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInputError) as error:
        load_schema(tmp_path / name)
    assert str(error.value).startswith(f"{tmp_path / name}: ")
    assert message in str(error.value)
