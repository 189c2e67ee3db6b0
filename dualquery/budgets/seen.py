"""What this user's programs have seen of each budget file: how far it was, and a secret key.

A budget file that is restored from a backup, or copied and used twice, forgets what was spent. So
the user's state folder keeps, for each file's id, the number of its entries and the digest of the
last one; a file with fewer entries, or others, is refused. The counter is locked first; the file is
locked, charged and committed within; then the counter is raised; only then something is drawn.
Another user or machine, or a state folder that was removed or restored, has another counter.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualquery.budgets.account import Account
from dualquery.budgets.sqlite import connected, transaction
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import state_folder

_WHAT = "the counter of budget files"
_MAKING = threading.Lock()


class Seen:
    """The user's counters, locked."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

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
            yield Seen(connection)

    @property
    def key(self) -> bytes:
        """The user's secret key: 32 random bytes, made when it is first asked for."""
        if known := self._connection.execute("SELECT key FROM secret").fetchone():
            return bytes(known[0])
        key = secrets.token_bytes(32)
        self._connection.execute("INSERT INTO secret VALUES (?)", (key,))
        return key

    def problem(self, account: Account, path: str | Path) -> str | None:
        """Return why a file is not the one that was seen last, None if it may be."""
        known = self._connection.execute(
            "SELECT entries, digest FROM seen WHERE id = ?", (account.terms.id,)
        ).fetchone()
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
        self._connection.execute(
            "INSERT INTO seen VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "entries = excluded.entries, digest = excluded.digest",
            (account.terms.id, len(account.entries), account.digests[-1]),
        )


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
