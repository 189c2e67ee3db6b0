"""Tables as files that other programs read, written in blocks: whole or not at all."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from dualquery.data.readers.csv import Dialect
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import csv_cell
from dualquery.runtime.files import require_new, whole_file

SUFFIXES = (".csv", ".parquet")


def check_target(path: Path) -> None:
    """Refuse a file that cannot be made, or of a format that is not written, before any work."""
    if path.suffix not in SUFFIXES:
        raise BadInputError(f"{path}: name a file that ends in {' or '.join(SUFFIXES)}")
    require_new(path)


def write_frames(frames: Iterable[pl.DataFrame], path: Path, csv: Dialect | None = None) -> None:
    """Write tables of the same columns one below the other, as CSV or Parquet by the suffix.

    ``csv`` says how CSV is written. `BadInputError` if the file cannot be written; nothing is
    left behind then.
    """
    try:
        with whole_file(path) as part:
            if path.suffix == ".csv":
                _write_csv(frames, part, csv or Dialect())
            else:
                _write_parquet(frames, part)
            check_target(path)
    except PolarsError as fault:
        raise BadInputError(f"{path}: cannot be written ({fault})") from None


def _write_csv(frames: Iterable[pl.DataFrame], path: Path, dialect: Dialect) -> None:
    with path.open("wb") as file:
        for number, frame in enumerate(frames):
            if any(isinstance(dtype, pl.List) for dtype in frame.dtypes):
                raise BadInputError(
                    f"CSV has no lists, and records of this many items are lists of ids: name a "
                    f"file that ends in .parquet instead of {path.name}"
                )
            file.write(dialect.write(_plain(frame), header=number == 0))


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose names and texts no spreadsheet takes for formulas."""
    columns = []
    for column in frame:
        if column.dtype == pl.String:
            texts = column.unique().drop_nulls()
            cells = {text: cell for text in texts if (cell := csv_cell(text)) != text}
            column = column.replace(cells) if cells else column
        columns.append(column.alias(csv_cell(column.name)))
    return pl.DataFrame(columns)


def _write_parquet(frames: Iterable[pl.DataFrame], path: Path) -> None:
    from pyarrow.parquet import ParquetWriter

    out = None
    with ExitStack() as opened:
        file = opened.enter_context(path.open("wb"))  # Arrow changes some paths, as ~/
        for frame in frames:
            table = frame.to_arrow()
            if out is None:
                out = opened.enter_context(ParquetWriter(file, table.schema, compression="zstd"))
            out.write_table(table)
