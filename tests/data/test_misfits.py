"""Cells that do not fit their column: the operator is told, the release is not."""

import json
from pathlib import Path

import polars as pl
import pytest

import dualquery
from dualquery import Unit, Weight
from dualquery.data import Categorical, Dates, Numeric, TableSchema
from dualquery.data.encoding.blocks import FOR_YOU, Misfits
from dualquery.data.readers.formats import source_of
from dualquery.data.schema.columns import Column
from dualquery.rows.engines import read
from dualquery.runtime.progress import NoProgress

FEE = Numeric("fee", (0, 10, 20, 40), missing="category", unparsable="missing", outside="clip")
SEEN = Dates(
    "seen", "month", "2023-01-01", "2023-12-31", "%m.%d.%Y", missing="category",
    unparsable="missing", outside="clip",
)  # fmt: skip


def told(
    caplog: pytest.LogCaptureFixture, column: Column, cells: list[str | None], **more: list[str]
) -> list[str]:
    frame = pl.DataFrame({column.name: pl.Series(cells, dtype=pl.String), **more})
    caplog.clear()
    read(source_of(frame), TableSchema((column,), declared=True), Misfits("t"))
    return caplog.messages


def test_a_column_of_decimal_commas_is_called_lost(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = told(caplog, FEE, ["-", *[f"{n % 30},50" for n in range(98)], None])
    assert line.startswith(
        f"{FOR_YOU}: t: column 'fee': MOST OF THE COLUMN IS LOST: 99 of 99 cells"
    )
    assert "such as '-'" in line
    assert "--csv decimal=," in line


def test_a_column_of_other_values_is_called_lost(caplog: pytest.LogCaptureFixture) -> None:
    few = Categorical("g", (("1",), ("2",)), missing="category", outside="other")
    (line,) = told(caplog, few, ["1.0", "2.0", None] * 33)
    assert "column 'g': THE COLUMN IS LOST: none of 66 cells" in line
    assert "such as '1.0'" in line
    assert not told(caplog, few, ["one", "two", None] * 33 + ["1"])
    assert not told(caplog, few, [None] * 9)


@pytest.mark.parametrize("over", [0, 1])
def test_what_is_rare_is_not_told(caplog: pytest.LogCaptureFixture, over: int) -> None:
    few = 20 + over
    lines = told(caplog, FEE, ["?"] * few + ["5"] * (1000 - few) + [None] * 500)
    assert len(lines) == over
    assert all(f"{few:,} of 1,000 cells" in line and "LOST" not in line for line in lines)


@pytest.mark.parametrize(
    ("column", "value", "inside", "place"),
    [
        (FEE, "-1", "5", "numbers lie before the start of the schema's range, 0,"),
        (FEE, "99", "5", "numbers lie beyond the end of the schema's range, 40,"),
        (SEEN, "12.31.2022", "05.01.2023", "dates lie before the start of the schema's range, 20"),
        (SEEN, "01.01.2024", "05.01.2023", "beyond the end of the schema's range, 2023-12-31,"),
    ],
)
@pytest.mark.parametrize("over", [0, 1])
def test_what_lies_beyond_the_range_is_told(caplog, column, value, inside, place, over) -> None:
    many = 100 + over
    lines = told(caplog, column, [value] * many + [inside] * (1000 - many))
    assert len(lines) == over
    assert all(f"{many:,} of 1,000 " in line and place in line for line in lines)


@pytest.mark.parametrize("engine", ["memory", "stream"])
@pytest.mark.parametrize(
    "given",
    [{}, {"unit": Unit("who", 1), "rows": 200}, {"weight": Weight("w", max=4), "rows": 900}],
)
def test_each_column_is_told_once_and_never_in_the_release(tmp_path, caplog, engine, given) -> None:
    rows = 400
    frame = pl.DataFrame(
        {
            "fee": [f"{n % 30},5" for n in range(rows)],
            "sex": ["F", "M"] * (rows // 2),
            "who": [n // 2 for n in range(rows)],
            "w": [1 + n % 4 for n in range(rows)],
        }
    )
    frame.write_csv(tmp_path / "t.csv")
    schema = {
        "declared": True,
        "columns": [FEE.to_dict(), {"name": "sex", "kind": "categorical", "values": ["F", "M"]}],
    }
    released = dualquery.release(
        tmp_path / "t.csv", schema=schema, queries="all", way=1, mechanism="gaussian",
        engine=engine, **given,
    )  # fmt: skip
    (line,) = [text for text in caplog.messages if FOR_YOU in text]
    assert "column 'fee': MOST OF THE COLUMN IS LOST: 400 of 400 cells" in line
    assert "cannot be read" not in json.dumps(released.summary())
    caplog.clear()
    dualquery.evaluate(released, tmp_path / "t.csv", engine=engine)
    assert sum(FOR_YOU in text for text in caplog.messages) == 1


def test_a_release_keeps_how_its_table_was_written_and_evaluate_reads_it_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("fee;sex\n" + "".join(f"{n % 30},5;F\n" for n in range(400)))
    schema = TableSchema((FEE,), declared=True)
    asked = {"queries": "all", "way": 1, "mechanism": "gaussian", "epsilon": 5.0}
    dualquery.release(path, schema=schema, csv="decimal=,", **asked).save(tmp_path / "r")
    again = dualquery.load_release(tmp_path / "r")
    assert again.options["csv"] == "decimal=,"
    assert dualquery.evaluate(again, path)["max_error"] < 0.1
    assert not any(FOR_YOU in text for text in caplog.messages)
    # Other words win; a table that is not CSV is read as it is; so is one without any words.
    assert dualquery.evaluate(again, dualquery.Table(path, csv="decimal=."))["max_error"] > 0.2
    other = pl.DataFrame({"fee": [n % 30 + 0.5 for n in range(400)]})
    other.write_parquet(tmp_path / "t.parquet")
    for table in (other, tmp_path / "t.parquet"):
        assert dualquery.evaluate(again, table)["max_error"] < 0.1
    assert dualquery.release(other, schema=schema, **asked).options["csv"] is None  # type: ignore[arg-type]


def test_columns_that_are_left_out_are_named_to_the_operator_and_counted_in_the_release() -> None:
    class Heard(NoProgress):
        def __init__(self) -> None:
            self.notes: list[str] = []

        def note(self, text: str) -> None:
            self.notes.append(text)

    heard = Heard()
    frame = pl.DataFrame({"fee": [5, 15] * 50, "Appt ID": range(100), "who": range(100)})
    released = dualquery.release(
        frame, schema=TableSchema((FEE,), declared=True), queries="all", way=1,
        mechanism="gaussian", progress=heard,
    )  # fmt: skip
    assert "left out, not chosen or not described: 'Appt ID', 'who'" in heard.notes
    assert "Appt ID" not in json.dumps(released.summary())
    assert "Columns that were not chosen, or not described, left out: 2." in released.notes
