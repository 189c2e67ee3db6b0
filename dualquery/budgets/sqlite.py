"""SQLite files that survive a kill at any instant: how they are opened, locked and written.

A change is one transaction with a rollback journal, from which the next process restores what was
there if this one is killed. With ``synchronous=EXTRA`` SQLite syncs journal, file and folder before
a commit returns. Only SQLite opens these files: closing any other handle would drop the locks of
this process (POSIX).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dualquery.runtime.errors import BadInputError

WAIT_SECONDS = 60.0
"""How long a process waits for others, which hold a file for milliseconds."""

_LARGEST_FILE = 1 << 26  # above 100,000 releases
_LARGEST_VALUE = 1 << 20  # bytes of one text or line

_HELD = f"another process has held it for {WAIT_SECONDS:g} seconds; try again"
_REASONS = {
    "locked": _HELD,
    "busy": _HELD,
    "readonly": "it or its folder cannot be written; change their permissions",
    "full": "the disk is full",
    "unable to open": "it or its folder cannot be opened; check their permissions",
}  # by parts of SQLite's own messages


@contextmanager
def connected(path: Path, what: str) -> Iterator[sqlite3.Connection]:
    """Open an existing file, which messages call ``what``.

    `BadInputError`, within the block, too, if the file is missing, too large, locked for too long,
    damaged, not SQLite's or cannot be written.
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
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0",
                           "synchronous=EXTRA", "fullfsync=ON"):  # fmt: skip
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
    except sqlite3.OperationalError as fault:
        unknown = f"{fault}; check the disk and the folder"
        reason = next((_REASONS[part] for part in _REASONS if part in str(fault)), unknown)
        raise BadInputError(f"{what} {path}: {reason}") from fault
    except sqlite3.NotSupportedError as fault:
        raise BadInputError(f"{what} {path}: {fault}") from fault
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as fault:
        raise BadInputError(
            f"{what} {path} is damaged, or not one at all ({fault}); beware of restoring an older "
            "copy: it forgets what was spent"
        ) from fault
    except OSError as fault:
        raise BadInputError(f"{what} {path}: {fault.strerror or fault}") from fault
