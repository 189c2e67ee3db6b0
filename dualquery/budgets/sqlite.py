"""SQLite files that survive a kill at any instant: how they are opened, locked and written.

A change is one transaction with a rollback journal. SQLite syncs the journal, then the file, and
with ``synchronous=EXTRA`` (``FULL``, and the folder after the journal is gone) also the folder,
before a commit returns: what was committed is on the disk. A process that is killed leaves a
journal from which the next one restores what was there before. Nothing here opens these files other
than by SQLite: closing any other handle would drop the locks of this process (POSIX).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dualquery.runtime.errors import BadInputError

WAIT_SECONDS = 60.0
"""How long a process waits for others, which hold a file for milliseconds."""

_LARGEST_FILE = 1 << 26
"""64 MiB: above 100,000 releases."""

_LARGEST_VALUE = 1 << 20
"""Bytes of one text or line."""


@contextmanager
def connected(path: Path, what: str) -> Iterator[sqlite3.Connection]:
    """Open an existing file.

    Parameters
    ----------
    path
        The file.
    what
        What messages call it.

    Raises
    ------
    BadInputError
        If the file is missing, too large, locked for too long, damaged, not SQLite's or cannot be
        written: within the block, too.
    """
    with _faults(path, what):
        if not path.is_file():
            kind = "is a folder" if path.is_dir() else "does not exist"
            raise BadInputError(f"{what} {path} {kind}")
        if path.stat().st_size > _LARGEST_FILE:
            raise BadInputError(f"{what} {path} is larger than {_LARGEST_FILE >> 20} MiB")
        address = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(address, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
        with closing(connection):
            # What a stranger wrote into the file must not run, nor take much memory.
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
            for pragma in (
                "trusted_schema=OFF",
                "cell_size_check=ON",
                "mmap_size=0",
                "synchronous=EXTRA",
                "fullfsync=ON",
            ):
                connection.execute(f"PRAGMA {pragma}")
            yield connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the file alone; commit at the end of the block, or undo it if the block fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()


@contextmanager
def _faults(path: Path, what: str) -> Iterator[None]:
    """Turn SQLite's and the system's faults into `BadInputError`."""
    try:
        yield
    except sqlite3.NotSupportedError as fault:
        raise BadInputError(f"{what} {path}: {fault}") from fault
    except sqlite3.OperationalError as fault:
        raise BadInputError(f"{what} {path}: {_reason(fault)}") from fault
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as fault:
        raise BadInputError(
            f"{what} {path} is damaged, or not one at all ({fault}); beware of restoring an older "
            "copy: it forgets what was spent"
        ) from fault
    except OSError as fault:
        raise BadInputError(f"{what} {path}: {fault.strerror or fault}") from fault


def _reason(fault: sqlite3.OperationalError) -> str:
    """Return what an operational error means, and what to do."""
    text = str(fault)
    if "locked" in text or "busy" in text:
        return f"another process has held it for {WAIT_SECONDS:g} seconds; try again"
    if "readonly" in text:
        return "it or its folder cannot be written; change their permissions"
    if "full" in text:
        return "the disk is full"
    if "unable to open" in text:
        return "it or its folder cannot be opened; check their permissions"
    return f"{text}; check the disk and the folder"
