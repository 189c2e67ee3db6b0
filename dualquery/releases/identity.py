"""What a release is of: facts that a run must share with the one that it goes on with."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dualquery.budgets.marks import mark_of
from dualquery.room.journal import Journal, Public
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

    A table in files is known by its keyed hash (`dualquery.budgets.marks`): the key is not in the
    checkpoint, so nobody can test a guess of the table against it. A table in memory is known by
    its schema and its number of rows only.

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
