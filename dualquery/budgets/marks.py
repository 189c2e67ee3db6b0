"""A keyed hash of a table, to warn when a budget file meets another one.

A budget file belongs to a data set, not to certain bytes: a table that grows by a row opens no
fresh budget. So the hash only warns. It is an HMAC-SHA256 under a secret key of the user
(`dualquery.budgets.seen`): without the key nobody can test a guess of the table against it, as one
could with a plain hash. The key never leaves the user's state folder; the hash stands in the budget
file, not in a release.
"""

from __future__ import annotations

import hashlib
import hmac

from dualquery.budgets.account import Account
from dualquery.budgets.seen import Seen
from dualquery.data.opening import FilePath, reading_errors
from dualquery.data.readers.formats import source_of
from dualquery.rows.engines import files_of

_READ_BYTES = 1 << 20


def mark_of(table: object) -> str:
    """Return the mark of a table: which key it was made with, a colon, and the keyed hash.

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
    return f"{_name_of(key)}:{content.hexdigest()}"


def is_new(mark: str, account: Account) -> bool:
    """Return whether a budget file has marks of the same key, but not this one."""
    name, _, _ = mark.partition(":")
    known = {entry.mark for entry in account.entries if entry.mark.startswith(f"{name}:")}
    return bool(mark) and bool(known) and mark not in known


def _name_of(key: bytes) -> str:
    """Return what tells marks of one key from those of others, and nothing else about it."""
    return hmac.new(key, b"name", hashlib.sha256).hexdigest()[:16]


def _digest(key: bytes, file: FilePath) -> bytes:
    content = hmac.new(key, b"file", hashlib.sha256)
    with file.open("rb") as stream:
        while piece := stream.read(_READ_BYTES):
            content.update(piece)
    return content.digest()
