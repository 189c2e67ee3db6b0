"""``adbc``: what a query of a database returns, by a driver of Arrow Database Connectivity."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dualquery.data.readers.batches import batch_source
from dualquery.data.readers.source import Source
from dualquery.runtime.errors import BadInputError, did_you_mean

DRIVERS = ("sqlite", "postgresql", "flightsql", "snowflake", "bigquery")
"""Those of the Arrow project that take one address."""

_FORM = "write adbc:DRIVER:ADDRESS?SELECT ... (in quotation marks)"
# An address may have question marks of its own.
_QUERY = re.compile(r"\?\s*(?=(?:select|with|from|table|values)\b)", re.IGNORECASE)
_PASSWORD = re.compile(r"//[^/@]*:[^/@]+@|\bpassword\s*=", re.IGNORECASE)


def open_adbc(text: str, label: str) -> Source:
    """Return the source for ``DRIVER:ADDRESS?SELECT ...``: what a query of a database returns.

    The address is a file for ``sqlite``, which is opened for reading only, and the driver's URI
    else. A row of the result counts as one row of the table, so a query that joins or aggregates
    must keep what belongs to one person in one row.

    Raises
    ------
    BadInputError
        If the driver is unknown or not installed, the address holds a password (it would stand in
        the list of processes), or the database refuses.
    """
    driver, colon, rest = text.partition(":")
    if not colon or driver not in DRIVERS:
        close = did_you_mean(driver, DRIVERS)
        raise BadInputError(
            f"{_shown(label)}: no driver {driver!r}{close} (known: {', '.join(DRIVERS)}); {_FORM}"
        )
    address, *queries = _QUERY.split(rest, maxsplit=1)
    if _PASSWORD.search(address):
        raise BadInputError(
            f"adbc:{driver}: the address holds a password, which others see in the list of "
            "processes; leave it to a file or the environment, such as ~/.pgpass or PGPASSWORD"
        )
    if not address or not queries:
        raise BadInputError(f"{label}: no address or no query; {_FORM}")
    if driver == "sqlite":
        if not Path(address).is_file():
            raise BadInputError(f"{label}: there is no such file as {address}")
        address = f"file:{quote(address)}?mode=ro"
        _require_one_type(address, queries[0], label)
    opened = partial(_batches, driver, address, queries[0], label)
    return batch_source(opened, label, steady=False)


def _require_one_type(address: str, query: str, label: str) -> None:
    """Refuse columns of SQLite, whose cells have types of their own, with texts among numbers."""
    # The driver would make all of such a column texts, its numbers cut to seven digits, and what a
    # row becomes may depend on that row alone (`dualquery.room`).
    # The operator's own query, on a file that is opened for reading only.
    inner = f"FROM ({query.rstrip().rstrip(';')}\n)"
    with _batches("sqlite", address, f"SELECT * {inner} LIMIT 0", label) as none:
        names = none.schema.names
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    mixed = ", ".join(
        f"coalesce(max(typeof({name}) IN ('text', 'blob')) "
        f"AND max(typeof({name}) IN ('integer', 'real')), 0)"
        for name in quoted
    )
    with _batches("sqlite", address, f"SELECT {mixed} {inner}", label) as found:
        row = found.read_all()
    for name, both in zip(names, row.columns, strict=True):
        if both[0].as_py():
            raise BadInputError(
                f"{label}: column {name!r} has texts among numbers; make them all texts, such as "
                f"CAST({name} AS TEXT), or all numbers"
            )


def _shown(label: str) -> str:
    """Return a label without what may be a password."""
    return "adbc" if _PASSWORD.search(label) else label


@contextlib.contextmanager
def _batches(driver: str, address: str, query: str, label: str) -> Iterator[Any]:
    try:
        dbapi = import_module(f"adbc_driver_{driver}.dbapi")
    except ImportError:
        package = f"'adbc-driver-{driver}'"
        remedy = "'dualquery[adbc]'" if driver in ("sqlite", "postgresql") else package
        raise BadInputError(
            f"{label}: the driver is not installed; install it with: pip install {remedy}"
        ) from None
    try:
        # Nothing is written: without transactions, of which drivers that have none would warn.
        with (
            dbapi.connect(address, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(query)
            yield cursor.fetch_record_batch()
    except (dbapi.Error, OSError) as fault:  # the latter for a value of another type than before
        raise BadInputError(f"{label}: the database refuses ({fault})") from None
