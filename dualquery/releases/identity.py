"""What a release is of: facts that a run must share with the one that it goes on with.

A table in files is known by its *mark*, an HMAC-SHA256 under a secret key of the user
(`dualquery.budgets.seen`): without the key nobody can test a guess of the table against it. The key
stays in the state folder; the mark is in the checkpoint and the budget file, not in a release.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dualquery.budgets.account import Account
from dualquery.budgets.seen import Seen
from dualquery.data.opening import FilePath, reading_errors
from dualquery.data.readers.formats import source_of
from dualquery.room.journal import Journal, Public
from dualquery.rows.engines import files_of
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.versions import versions

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.mechanisms.protocol import Mechanism
    from dualquery.queries.family import Queries


def keep_request(
    journal: Journal,
    mechanism: Mechanism[Any],
    budget: Any,
    workload: Any,
    table: object,
    others: Public,
) -> None:
    """Keep versions, options and which table it is; see `Journal.same`.

    A table in memory is known by its schema and its number of rows only.

    Parameters
    ----------
    mechanism, budget, workload
        The mechanism's configuration, and what was asked for: dataclasses.
    table
        The private table, as the user gave it.
    others
        Options of none of these.
    """
    journal.same("program", versions())
    own: Any = mechanism
    journal.same("mechanism", {"name": mechanism.name, **asdict(own)})
    journal.same("budget request", asdict(budget))
    journal.same("workload request", asdict(workload))
    journal.same("request", others)
    try:
        mark = mark_of(table)
    except BadInputError:  # there is no folder to keep a key in
        mark = ""
    journal.same("table", {"keyed hash": mark})


def keep_questions(journal: Journal, schema: Schema, queries: Queries) -> None:
    """Keep the schema and the queries, by their digests."""
    import polars as pl

    described = json.dumps(schema.to_dict(), sort_keys=True).encode()
    journal.same("schema", {"sha256": hashlib.sha256(described).hexdigest()})
    digest = hashlib.sha256()
    columns = queries.to_columns()
    if columns:  # a family of the user's own may have none
        # The same from run to run of one version of Polars, and versions are compared.
        digest.update(pl.DataFrame(columns).hash_rows().to_numpy().tobytes())
    journal.same("workload", {"queries": len(queries), "sha256": digest.hexdigest()})


def mark_of(table: object) -> str:
    """Return the mark of a table: a name of the key, a colon, and the keyed hash.

    Parameters
    ----------
    table
        Anything that `dualquery.data.readers.formats.source_of` takes.

    Returns
    -------
    str
        "" for a table that is not in files: in memory, or made up.

    Raises
    ------
    BadInputError
        If there is no such table, or it or the key cannot be read.
    """
    source = source_of(table)
    files = files_of(source)
    if not files:
        return ""
    with Seen.opened() as seen:
        key = seen.key
    content = hmac.new(key, b"table", hashlib.sha256)
    for file in files:
        with reading_errors(source.label):
            content.update(_digest(key, file))
    name = hmac.new(key, b"name", hashlib.sha256).hexdigest()[:16]
    return f"{name}:{content.hexdigest()}"


def is_new(mark: str, account: Account) -> bool:
    """Return whether a budget file has marks of the same key, but not this one.

    It is a reason to warn and no more: a table that grew by a row opens no fresh budget.
    """
    name, _, _ = mark.partition(":")
    known = {entry.mark for entry in account.entries if entry.mark.startswith(f"{name}:")}
    return bool(mark) and bool(known) and mark not in known


def _digest(key: bytes, file: FilePath) -> bytes:
    content = hmac.new(key, b"file", hashlib.sha256)
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            content.update(piece)
    return content.digest()
