"""Whether a table fits its schema: told to the holder, as a release would take it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dualquery.cli.main import BAD_INPUT, DONE, main
from dualquery.data.fit import show_fit
from dualquery.data.readers.formats import source_of
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.files import write_schema
from dualquery.data.schema.table import TableSchema
from dualquery.rows.dataset import load
from dualquery.runtime.errors import BadInputError

EDGES = (0.0, 10.0, 20.0)
PERIOD = ("month", "2023-01-01", "2023-12-31")


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        (Numeric("c", EDGES), "?", "cannot be read as numbers, such as '?'"),
        (Numeric("c", EDGES, unparsable="missing"), "?", "cannot be read as numbers"),
        (Numeric("c", EDGES), "-3", "lie below the first edge"),
        (Numeric("c", EDGES, outside="clip"), "30", "lie above the last edge, such as '30'"),
        (Numeric("c", EDGES), "", "are missing"),
        (Categorical("c", (("5",), ("6",))), "x", "are not among the values, such as 'x'"),
        (Categorical("c", (("5",), ("6",)), outside="other"), "x", "or in (other)"),
        (Binary("c", "5", "6"), "x", "are not among the values"),
        (Binary("c", "5", "6"), "", "are missing"),
        (Dates("c", *PERIOD, "%d.%m.%Y"), "2024", "cannot be read as dates"),  # type: ignore[arg-type]
        (Dates("c", *PERIOD), "2024-05-01", "lie outside the range"),  # type: ignore[arg-type]
        (Dates("c", *PERIOD, unparsable="missing"), "5", "cannot be read"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_told_and_refused_where_reading_refuses_it(
    caplog: pytest.LogCaptureFixture, column: Column, cell: str, said: str, drop: bool
) -> None:
    good = "2023-05-05" if isinstance(column, Dates) and column.format is None else "5"
    good = "05.05.2023" if isinstance(column, Dates) and column.format is not None else good
    frame = pl.DataFrame({"c": [good] * 99 + [cell]})
    schema = TableSchema((column,), declared=True, drop_incomplete=drop)
    taken = show_fit(source_of(frame), schema)
    line, _ = caplog.messages
    assert line.startswith("NOT PRIVATE, for the operator only: table: column 'c': 1 of 100 cells ")
    assert said in line
    assert taken != ("a release refuses them" in line)
    try:
        load(frame, schema)
    except BadInputError:
        assert not taken
    else:
        assert taken


def test_many_unreadable_cells_are_many_of_those_that_hold_something(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """1 of 60 is no slip where 30 are missing: `load` tells it, and so does this."""
    column = Numeric("c", EDGES, unparsable="missing", missing="category")
    schema = TableSchema((column,), declared=True)
    frame = pl.DataFrame({"c": ["5"] * 29 + ["1,5"] + [None] * 30})
    assert show_fit(source_of(frame), schema)
    assert "1 of 60 cells cannot be read as numbers" in caplog.messages[0]
    assert "they have decimal commas: give --csv decimal=," in caplog.messages[0]
    caplog.clear()
    load(frame, schema)
    assert "they have decimal commas: give --csv decimal=," in caplog.messages[0]


def test_a_table_without_rows_fits_nothing() -> None:
    schema = TableSchema((Numeric("c", EDGES),), declared=True)
    with pytest.raises(BadInputError, match="no rows that could fit"):
        show_fit(source_of(pl.DataFrame({"c": []}, {"c": pl.String})), schema)


def test_missing_cells_with_a_category_of_their_own_fit(caplog: pytest.LogCaptureFixture) -> None:
    schema = TableSchema((Numeric("c", EDGES, missing="category"),), declared=True)
    assert show_fit(source_of(pl.DataFrame({"c": ["5", None]})), schema)
    assert caplog.messages == [
        "NOT PRIVATE, for the operator only: table: all cells of 2 rows fit the schema"
    ]


def test_the_command_checks_without_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, table = tmp_path / "s.json", tmp_path / "t.csv"
    write_schema(TableSchema((Numeric("c", EDGES),), declared=True), schema)
    table.write_text("c\n5\n15\n")
    assert main(["schema", "check", str(schema), "--with", str(table)]) == DONE
    table.write_text("c\n5\n150\n")
    assert main(["schema", "check", str(schema), "--with", str(table)]) == BAD_INPUT
    assert "does not fit" in capsys.readouterr().err
