"""``xlsx``: a sheet of an Excel workbook, its first row the header.

Cells are handed on as texts, as those of CSV are. A column's type would depend on all of its cells,
and what a row becomes may depend on that row alone (`dualquery.room`).

A workbook is a packed file that may hold, or state, any amount: so it is read in a process of its
own, whose memory is limited where the system can.
"""

from __future__ import annotations

import importlib.util
import io
import json
import logging
from functools import partial
from typing import TYPE_CHECKING

from dualquery.data.opening import FilePath, open_bytes, read_whole
from dualquery.data.readers.python_objects import frame_source
from dualquery.data.readers.source import Source, check_columns
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import some
from solvers.child import ChildReader

if TYPE_CHECKING:
    import polars as pl

_log = logging.getLogger(__name__)

LARGEST = 1 << 28  # bytes of a workbook, held whole; its sheets may be ten times as large

_READER = ChildReader("dualquery.data.readers.excel", "answer", space_per_byte=40)
_FAULT, _TABLE, _ABSENT = b"F", b"T", b"A"
_MOST_SHOWN = 12
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"  # a date, as the reader writes it


def open_excel(path: FilePath, label: str, sheet: str | None = None) -> Source:
    """Return a sheet of a workbook as a table: the one of that name, or the first."""
    import polars as pl

    if importlib.util.find_spec("fastexcel") is None:
        raise BadInputError(
            f"{label}: no reader of Excel files is installed; install one with: pip install "
            "'dualquery[excel]', or save the sheet as CSV"
        )
    with open_bytes(path, label) as stream:
        content = read_whole(stream, label, LARGEST)
    silent = _FAULT + b"its reader crashed or did not end, or needed more memory than it may"
    found = _READER.read(json.dumps(sheet).encode() + b"\n" + content) or silent
    if found[:1] == _FAULT:
        fault = found[1:].decode("utf-8", "replace")
        raise BadInputError(f"{label}: not readable as an Excel workbook ({fault}); save it as CSV")
    named, packed = found[1:].split(b"\n", 1)
    sheets = json.loads(named)
    if found[:1] == _ABSENT:
        raise BadInputError(
            f"{label}: there is no sheet {sheet!r}; its sheets are {some(sheets, _MOST_SHOWN)}"
        )
    first, *others = sheets
    if others and sheet is None:
        _log.warning(
            f"{label}: its first sheet, {first!r}, is read; xlsx:FILE?SHEET (quote it) reads "
            f"another: {some(others, _MOST_SHOWN)}"
        )
    if (cells := pl.read_ipc_stream(io.BytesIO(packed))).is_empty():
        which = f"its first sheet, {first!r}," if sheet is None else f"the sheet {sheet!r}"
        raise BadInputError(f"{label}: {which} is empty")
    return frame_source(_headed(cells, label), label, path)


def _headed(cells: pl.DataFrame, label: str) -> pl.DataFrame:
    """Return the table whose header is the first row of some cells."""
    header = dict(zip(cells.columns, cells.row(0), strict=True))
    rows = cells[1:]
    # A cell that once was filled, or has a colour, makes a column of nothing.
    filled = {column.name for column in rows if column.null_count() < len(rows)}
    kept = [column for column, name in header.items() if name or column in filled]
    names = [header[column] or "" for column in kept]
    check_columns(names, label)
    return rows.select(kept).rename(dict(zip(kept, names, strict=True)))


def answer(request: bytes) -> bytes:
    """Read a sheet, of the name in front, of the bytes of a workbook: in the other process."""
    import fastexcel
    import polars as pl

    name, content = request.split(b"\n", 1)
    sheet = json.loads(name)
    try:
        book = fastexcel.read_excel(content)
        sheets = json.dumps(book.sheet_names).encode() + b"\n"
        if sheet is not None and sheet not in book.sheet_names:
            return _ABSENT + sheets
        load = partial(book.load_sheet, sheet or 0, header_row=None)
        both = (load(dtypes=kind).to_polars() for kind in ("string", "float"))
        cells = []
        for text, number in zip(*both, strict=True):  # a text has 9 decimals, Excel 15 digits
            written = text.cast(pl.Float64, strict=False)
            lost = number.is_finite() & ((written - number).abs() > 5e-16 * number.abs())
            cells.append(number.cast(pl.String).zip_with(lost, text))
        frame = pl.DataFrame(cells)
        if frame.width:
            # A blank row is none, wherever, and of one column, too: rows below must not decide.
            frame = frame.filter(pl.any_horizontal(pl.all().is_not_null()))
        frame = frame.select(pl.all().str.replace(_MIDNIGHT, "$1"))
    except Exception as fault:  # the reader's own errors have no common class
        return _FAULT + str(fault).encode("utf-8", "replace")
    out = io.BytesIO()
    out.write(_TABLE + sheets)
    frame.write_ipc_stream(out)
    return out.getvalue()
