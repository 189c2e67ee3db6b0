"""``xlsx``: the first sheet of an Excel workbook, its first row the header.

Cells are handed on as texts, as those of CSV are. A column's type would depend on all of its cells,
and what a row becomes may depend on that row alone (`dualquery.room`).

A workbook is a packed file that may hold, or state, any amount: so it is read in a process of its
own, whose memory is limited where the system can.
"""

from __future__ import annotations

import importlib.util
import io

from dualquery.data.opening import FilePath, open_bytes, read_whole
from dualquery.data.readers.python_objects import check_names, check_width, frame_source
from dualquery.data.readers.source import Source
from dualquery.runtime.errors import BadInputError
from solvers.apart import Apart

LARGEST = 1 << 28
"""Bytes of a workbook, which is held whole; its sheets may be ten times as large."""

_READER = Apart("dualquery.data.readers.excel", "answer", space_per_byte=40)
_FAULT, _TABLE = b"F", b"T"
_MIDNIGHT = r"^(\d{4}-\d\d-\d\d) 00:00:00$"
"""A date, as the reader writes it."""


def open_excel(path: FilePath, label: str) -> Source:
    """Return the first sheet of a workbook as a table.

    Raises
    ------
    BadInputError
        If no reader of workbooks is installed, or the file is no workbook, has no rows or needs
        more memory than it may.
    """
    import polars as pl

    if importlib.util.find_spec("fastexcel") is None:
        raise BadInputError(
            f"{label}: no reader of Excel files is installed; install one with: pip install "
            "'dualquery[excel]', or save the sheet as CSV"
        )
    with open_bytes(path, label) as stream:
        content = read_whole(stream, label, LARGEST)
    found = _READER.ask(content)
    if found is None:
        raise BadInputError(
            f"{label}: not readable as an Excel workbook (its reader crashed or did not end, or "
            "needed more memory than it may); save the sheet as CSV"
        )
    if found[:1] == _FAULT:
        raise BadInputError(
            f"{label}: not readable as an Excel workbook ({found[1:].decode('utf-8', 'replace')})"
        )
    frame = pl.read_ipc_stream(io.BytesIO(found[1:]))
    check_width(frame.width, label)
    check_names(frame.columns, label)
    return frame_source(frame, label)


def answer(content: bytes) -> bytes:
    """Read the bytes of a workbook: in the other process."""
    import polars as pl

    try:
        frame = pl.read_excel(content, engine="calamine", infer_schema_length=0)  # texts
        frame = frame.select(pl.all().str.replace(_MIDNIGHT, "$1"))
    except Exception as fault:  # the reader's own errors have no common class
        return _FAULT + str(fault).encode("utf-8", "replace")
    out = io.BytesIO(_TABLE)
    out.seek(len(_TABLE))
    frame.write_ipc_stream(out)
    return out.getvalue()
