"""SQLite files that survive a kill at any instant: how they are opened, locked and written.

A change is one transaction with a rollback journal, from which the next process restores what was
there if this one is killed. With ``synchronous=EXTRA`` SQLite syncs journal, file and folder before
a commit returns. Only SQLite opens these files: closing any other handle would drop the locks of
this process (POSIX).

`Seen` is what this user's programs have seen of each budget file: how far it was; and a secret key.
A budget file that is restored from a backup, or copied and used twice, forgets what was spent. So
the user's state folder keeps, for each file's id, the number of its entries and the digest of the
last one; a file with fewer entries, or others, is refused. The counter is locked first; within, the
file is charged and the counter raised; the file is committed, then the counter; then a run draws.
Another user or machine, or a state folder that was removed or restored, has another counter.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from dualquery.budgets.account import Account
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import state_folder

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


_WHAT = "the counter of budget files"
_MAKING = threading.Lock()


class Seen:
    """The user's counters, locked."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    @staticmethod
    @contextmanager
    def opened() -> Iterator[Seen]:
        """Lock the counters for a block; what the block records is kept if it does not fail."""
        path = state_folder() / "budgets.sqlite"
        _make(path)
        with connected(path, _WHAT) as connection, transaction(connection):
            connection.execute(
                "CREATE TABLE IF NOT EXISTS seen "
                "(id TEXT PRIMARY KEY, entries INTEGER NOT NULL, digest TEXT NOT NULL)"
            )
            connection.execute("CREATE TABLE IF NOT EXISTS secret (key BLOB NOT NULL)")
            yield Seen(connection, path)

    @property
    def key(self) -> bytes:
        """The user's secret key: 32 random bytes, made when it is first asked for."""
        if known := self._row("SELECT key FROM secret"):
            return bytes(known[0])
        key = secrets.token_bytes(32)
        self._row("INSERT INTO secret VALUES (?)", key)
        return key

    def problem(self, account: Account, path: str | Path) -> str | None:
        """Return why a file is not the one that was seen last, None if it may be."""
        known = self._row("SELECT entries, digest FROM seen WHERE id = ?", account.terms.id)
        if known is None:
            return None
        entries, digest = known
        if entries > len(account.entries):
            return (
                f"{path} is an older copy: it has {len(account.entries)} entries, and {entries} "
                "were seen. A copy or a restored backup forgets what was spent: go on with the "
                "newest file. If that is lost, what it had counts as spent"
            )
        if account.digests[entries] == digest:
            return None
        return (
            f"{path} is a copy that was charged apart from the one seen before: they have "
            f"different entries up to number {entries}. Go on with the other one, or with a new "
            "file for what both leave over"
        )

    def record(self, account: Account) -> None:
        """Note how far a file is."""
        now = account.terms.id, len(account.entries), account.digests[-1]
        self._row("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", *now)

    def _row(self, statement: str, *values: object) -> Any:
        """Carry out a statement and return a row, if any; faults are told as the counters'."""
        with _faults(self._path, _WHAT):
            return self._connection.execute(statement, values).fetchone()


def _make(path: Path) -> None:
    """Make an empty file that only the user can read, unless there is one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Closing a handle drops the locks that another thread has got meanwhile.
        with _MAKING:
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass  # another process made it just now
    except OSError as error:
        raise BadInputError(
            f"{_WHAT} cannot be kept in {path.parent}: {error.strerror}; set XDG_STATE_HOME to a "
            "folder that you can write, and keep it"
        ) from None
