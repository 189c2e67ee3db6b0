"""``xlsx``: the first sheet of an Excel workbook, its first row the header."""

from __future__ import annotations

from dualquery.data.opening import FilePath, open_bytes, read_whole
from dualquery.data.readers.python_objects import check_names, check_width, frame_source
from dualquery.data.readers.source import Source
from dualquery.runtime.errors import BadInputError

LARGEST = 1 << 28
"""Bytes of a workbook, which is held whole; its sheets may be ten times as large."""


def open_excel(path: FilePath, label: str) -> Source:
    """Return the first sheet of a workbook as a table.

    Raises
    ------
    BadInputError
        If no reader of workbooks is installed, or the file is no workbook or has no rows.
    """
    import polars as pl

    try:
        import fastexcel  # noqa: F401  # Polars reads with it
    except ImportError:
        raise BadInputError(
            f"{label}: no reader of Excel files is installed; install one with: pip install "
            "'dualquery[excel]', or save the sheet as CSV"
        ) from None
    with open_bytes(path, label) as stream:
        content = read_whole(stream, label, LARGEST)
    try:
        frame = pl.read_excel(content, engine="calamine", infer_schema_length=None)
    except Exception as fault:  # the reader's own errors have no common class
        raise BadInputError(f"{label}: not readable as an Excel workbook ({fault})") from None
    check_width(frame.width, label)
    check_names(frame.columns, label)
    return frame_source(frame, label)
