"""The table that a command reads, where its name alone does not say how it is written."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from dualquery.cli.options import is_stdin
from dualquery.runtime.errors import BadInputError


@contextlib.contextmanager
def given_table(text: str, csv: str | None) -> Iterator[Any]:
    """Yield what `dualquery.release` takes as a table, for as long as it is read.

    Parameters
    ----------
    text
        As for `parse_source`; or ``-``, for CSV from the standard input, or ``FORMAT:-``.
    csv
        How a CSV file is written; None for the standard.

    Raises
    ------
    BadInputError
        If the standard input is a terminal, or cannot be kept; if ``csv`` goes with no CSV file.
    """
    form = text.rpartition(":")[0]
    if not is_stdin(text):
        if csv is None:
            yield text
            return
        from dualquery.data.table import Table

        yield Table(text, csv=csv).named
        return
    from dualquery.data.readers.dialect import Dialect
    from dualquery.data.readers.formats import FORMATS, open_as
    from dualquery.data.spool import spooled

    form = form or "csv"
    if form not in FORMATS or FORMATS[form].folders or FORMATS[form].query:
        raise BadInputError(
            f"{text}: the standard input is read as CSV, or as FORMAT:- of a format of files"
        )
    if sys.stdin.isatty():
        raise BadInputError(f"{text}: the standard input is the keyboard; pipe a table into it")
    dialect = None if csv is None else Dialect.parse(csv)
    with spooled(sys.stdin.buffer, text) as path:
        yield open_as(form, path, text, dialect)
