"""A budget file: one SQLite file for one data set. Releases charge it before their first draw.

A charge is one transaction: read the content, ask the filter (`dualquery.privacy.composition`), add
an entry, while no other process can write. It is on the disk when `BudgetFile.write` returns.
Nothing takes an entry away: a run that fails or is killed has spent its charge.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualquery.budgets.account import ROW, Account, Claim, Entry, Terms, new_token, now
from dualquery.budgets.sqlite_files import Seen, connected, transaction
from dualquery.privacy.composition import Composition, Cost, PrivacyFilter
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError

VERSION = 2
"""2: with claims and thresholds. Files of version 1 are read, and get both when charged."""

_APPLICATION = 0x44514246
"""Tells budget files from all other SQLite files: the letters DQBF."""

_TERMS = (
    "CREATE TABLE terms (id TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, "
    "composition TEXT NOT NULL, neighbours TEXT NOT NULL, unit TEXT NOT NULL, "
    "created TEXT NOT NULL)"
)
_ENTRIES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, release TEXT NOT NULL, "
    "attempt INTEGER NOT NULL, rho REAL NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, "
    "mechanism TEXT NOT NULL, mark TEXT NOT NULL, written TEXT NOT NULL, digest TEXT NOT NULL)"
)
_CLAIMS = (
    "CREATE TABLE claims (release TEXT PRIMARY KEY, nonce TEXT NOT NULL, begun INTEGER NOT NULL, "
    "digest TEXT NOT NULL)"
)
_THRESHOLD = "threshold REAL NOT NULL DEFAULT 0"
_TABLES = {
    1: [(_TERMS,), (_ENTRIES,)],
    2: [(_TERMS,), (f"{_ENTRIES[:-1]}, {_THRESHOLD})",), (_CLAIMS,)],
}
_WHAT = "the budget file"


@dataclass(frozen=True)
class BudgetFile:
    """The budget of one data set, in a file that `create` made, opened anew for each use."""

    path: str | Path

    @staticmethod
    def of(given: str | Path | BudgetFile) -> BudgetFile:
        """Return a budget file that is given by its path or as what it is."""
        if isinstance(given, str | Path):
            return BudgetFile(given)
        if not isinstance(given, BudgetFile):
            raise BadInputError(f"budget is of type {type(given).__name__}; give a file's path")
        return given

    @staticmethod
    def create(
        path: str | Path,
        *,
        epsilon: float,
        delta: float,
        composition: Composition | str = Composition.SUM,
        neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
        unit: str = ROW,
    ) -> BudgetFile:
        """Make a new budget file where nothing is yet; `BadInputError` if that cannot be.

        All releases together may cost ``epsilon`` in (0, 10,000] and ``delta`` in [0, 1), added up
        by ``composition`` (``zcdp`` and ``either`` need a delta above 0). Each must protect what
        ``neighbours`` and ``unit`` say.
        """
        if isinstance(composition, str):
            composition = Composition.parse(composition)
        neighbours = Neighbours.parse(neighbours) if isinstance(neighbours, str) else neighbours
        if neighbours.unit is not None or neighbours.weight is not None:
            raise BadInputError(f"neighbours {neighbours}: give a relation of rows, and unit=NAME")
        chosen = PrivacyFilter(epsilon, delta, composition)
        terms = Terms(new_token(), chosen, neighbours, unit, now())
        file = BudgetFile(path)
        place = file._place()
        try:
            place.open("x").close()
        except OSError as error:
            raise BadInputError(f"{path}: {error.strerror}; name another place") from None
        try:
            with connected(place, _WHAT) as connection, transaction(connection):
                connection.execute(f"PRAGMA application_id={_APPLICATION}")
                connection.execute(f"PRAGMA user_version={VERSION}")
                for (table,) in _TABLES[VERSION]:
                    connection.execute(table)
                connection.execute(
                    "INSERT INTO terms VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (terms.id, float(chosen.epsilon), float(chosen.delta), composition.value,
                     neighbours.value, unit, terms.created),
                )  # fmt: skip
            with Seen.opened() as seen:
                seen.record(Account(terms, []))
        except BaseException:
            place.unlink(missing_ok=True)
            raise
        return file

    def read(self) -> Account:
        """Return what the file says now; `BadInputError` if it is damaged or of a newer format."""
        with connected(self._place(), _WHAT) as connection:
            connection.execute("BEGIN")
            return _content(connection, self.path)

    def problem(self) -> str | None:
        """Return why this user may not charge the file, as far as the user's own counter tells."""
        # Read under the counter's lock: else a charge meanwhile makes this look like an old copy.
        with Seen.opened() as seen:
            return seen.problem(self.read(), self.path)

    def write(self, decide: Callable[[Account], Sequence[Entry | Claim]]) -> None:
        """Add entries and set claims; they are on the disk when this returns.

        ``decide`` gets the content, which no other process can change meanwhile, and returns what
        is to be written; what it raises leaves the file as it was. The user's counter is locked
        around the file (`Seen`), and committed after it. `BadInputError` as `read`, and if the
        file cannot be written, or is an older copy by that counter.
        """
        place = self._place()
        with Seen.opened() as seen, connected(place, _WHAT) as file, transaction(file):
            account = _content(file, self.path)
            if problem := seen.problem(account, self.path):
                raise BadInputError(problem)
            written = decide(account)
            if written and _pragma(file, "user_version") == 1:
                file.execute(f"ALTER TABLE entries ADD COLUMN {_THRESHOLD}")
                file.execute(_CLAIMS)
                file.execute(f"PRAGMA user_version={VERSION}")
            for what in written:
                if isinstance(what, Claim):
                    file.execute(
                        "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)",
                        (what.release, what.nonce, what.begun, what.digest(account.terms.id)),
                    )
                    continue
                account = Account(account.terms, [*account.entries, what])
                _ = account.releases  # raises if the entry does not follow the others
                cost = what.cost
                file.execute(
                    "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (len(account.entries), what.kind, what.release, what.attempt, cost.rho,
                     cost.epsilon, cost.delta, what.mechanism, what.mark, what.written,
                     account.digests[-1], cost.threshold),
                )  # fmt: skip
            seen.record(account)  # if this fails, nothing is charged

    def count_draw(self, claim: Claim) -> bool:
        """Count a draw that is about to be made; it is on the disk when this returns.

        Returns whether the file has the claim's nonce, and one draw less: else it is as it was.
        """
        with connected(self._place(), _WHAT) as connection, transaction(connection):
            (name,) = connection.execute("SELECT id FROM terms").fetchone() or ("",)
            done = connection.execute(
                "UPDATE claims SET begun = ?, digest = ? "
                "WHERE release = ? AND nonce = ? AND begun = ?",
                (claim.begun, claim.digest(name), claim.release, claim.nonce, claim.begun - 1),
            )
            return done.rowcount == 1

    def _place(self) -> Path:
        """Return the file's one name: SQLite names its journal by it."""
        place = Path(os.path.realpath(self.path))
        if not os.path.isdir(place.parent):  # noqa: PTH112 - bears long names, as `isfile` does
            raise BadInputError(f"{self.path}: there is no folder {place.parent}")
        if os.path.isfile(place) and place.stat().st_nlink > 1:  # noqa: PTH113
            raise BadInputError(
                f"{self.path} has several names (hard links); a change that is interrupted under "
                "one of them could not be undone under another: remove all but one"
            )
        return place


def _content(connection: sqlite3.Connection, path: str | Path) -> Account:
    """Read and check the whole file."""
    number = _pragma(connection, "application_id")
    if number != _APPLICATION:
        empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        why = (
            "is empty: it was cut off, or its making was interrupted. What was charged to it stays "
            "spent, and a new file would forget it: restore the newest copy"
            if empty and number == 0
            else "is no budget file; make one with 'dualquery budget init'"
        )
        raise BadInputError(f"{path} {why}")
    version = _pragma(connection, "user_version")
    if version not in _TABLES:
        raise BadInputError(
            f"{path} has format {version}; this version reads {VERSION}: upgrade dualquery"
        )
    if _pragma(connection, "journal_mode") != "delete":
        raise BadInputError(f"{path} was changed by another program; it keeps no rollback journal")
    tables = connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    ).fetchall()  # an index of SQLite's own has no text
    if tables != _TABLES[version] or _pragma(connection, "quick_check") != "ok":
        raise BadInputError(f"{path} is damaged: its tables are not those of a budget file")
    try:
        return _checked(connection, claims=version > 1)
    except (BadInputError, TypeError, ValueError, AttributeError) as fault:
        raise BadInputError(f"{path} is damaged: {fault}") from None


def _checked(connection: sqlite3.Connection, *, claims: bool) -> Account:
    (stored,) = connection.execute("SELECT * FROM terms LIMIT 2").fetchall()
    name, epsilon, delta, composition, neighbours, unit, created = stored
    chosen = PrivacyFilter(epsilon, delta, Composition.parse(composition))
    terms = Terms(name, chosen, Neighbours.parse(neighbours), unit, created)
    lines = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
    entries: list[Entry] = []
    for line in lines:
        number, kind, release, attempt, *costs, mechanism, mark, written, _ = line[:11]
        if number != len(entries) + 1:
            raise ValueError(f"entry {len(entries) + 1} is missing")
        cost = Cost(*costs, *line[11:])
        entries.append(Entry(kind, release, attempt, cost, mechanism, mark, written))
    held = {}
    for *stored, digest in connection.execute("SELECT * FROM claims") if claims else ():
        held[stored[0]] = Claim(*stored)
        if digest != held[stored[0]].digest(name):
            raise ValueError(f"the claim of release {stored[0]} is not as it was written")
    account = Account(terms, entries, held)
    for number, line in enumerate(lines, start=1):
        if line[10] != account.digests[number]:
            raise ValueError(f"entry {number} is not as it was written")
    _ = account.releases
    return account


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
