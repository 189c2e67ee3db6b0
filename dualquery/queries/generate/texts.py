"""Workloads of queries that a user writes as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualquery.queries.conjunctions import Workload
from dualquery.queries.text import parse_queries
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.protocol import Schema


def parse_workload(texts: Sequence[str], schema: Schema) -> Workload:
    """Return the workload of a user's list of queries, in its order.

    Raises
    ------
    BadInputError
        As `parse_query`, naming the position in the list, from 1; also when a query is repeated.
    """
    return workload_of_texts(texts, schema, "list", lambda i: f"query {i + 1}")


def workload_of_texts(
    texts: Sequence[str] | pl.Series, schema: Schema, source: str, place: Callable[[int], str]
) -> Workload:
    """Return the workload of a list of queries, whose entry ``i`` messages call ``place(i)``.

    Raises
    ------
    BadInputError
        As `parse_query`; also when a query is repeated.
    """
    literals = parse_queries(texts, schema, place)
    first = first_occurrences(literals, 2 * schema.domain.bits)
    repeated = np.flatnonzero(first != np.arange(len(first)))
    if len(repeated):
        again = int(repeated[0])
        raise BadInputError(
            f"{place(again)}: {texts[again]!r} is the same query as {place(int(first[again]))}; "
            "leave one of them out"
        )
    return Workload(literals, schema.domain, {"kind": "list", "source": source})
