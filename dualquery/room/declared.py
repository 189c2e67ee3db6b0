"""What a user's own family of queries declares, held against public records."""

from __future__ import annotations

import numpy as np

from dualquery.data.cells import axis_sizes, rows_of_values
from dualquery.queries.family import Queries
from dualquery.rows.packed import RecordsBuilder
from dualquery.runtime.errors import BadInputError

RECORDS = 256
"""Uniform legal records that a family is tried on; nothing private is among them."""


def check_declared(queries: Queries) -> str:
    """Try a family's range, grid and spread on public records; return a remark for the release.

    A check, not a proof: the guarantee rests on the declaration.

    Raises
    ------
    BadInputError
        If a value lies outside ``low .. high``, off the grid, or two values of a query lie more
        than ``spread`` steps apart.
    """
    sizes = axis_sizes(queries.domain)
    generator = np.random.default_rng(0)
    records = rows_of_values(generator.integers(0, sizes, (RECORDS, len(sizes))), queries.domain)
    values = np.stack([queries.answers_on(record[None]) for record in records])
    name = type(queries).__name__
    if queries.spread < 1 or values.shape != (RECORDS, len(queries)):
        raise BadInputError(
            f"{name}: the spread is {queries.spread} and a record has {values.shape[1:]} answers; "
            f"a spread of at least 1 and {len(queries):,} answers are needed"
        )
    steps = np.rint(values / queries.step)
    wrong = {
        f"outside its declared range {queries.low:g} to {queries.high:g}": (
            ~((values >= queries.low) & (values <= queries.high))
        ),
        f"not a multiple of its declared step {queries.step:g}": steps * queries.step != values,
        f"more than its declared spread of {queries.spread} steps from another value": (
            np.abs(steps - steps.min(axis=0)) > queries.spread
        ),
    }
    for complaint, places in wrong.items():
        for record, query in np.argwhere(places)[:1]:
            raise BadInputError(
                f"{name}: query {query} is {values[record, query]} on the record "
                f"{records[record].tolist()}, {complaint}"
            )
    table = RecordsBuilder(queries.domain.bits)
    table.append_dense(records)
    counts = queries.counts(table.build(), threads=1)
    if not np.array_equal(counts, steps.sum(axis=0)):
        query = int(np.flatnonzero(counts != steps.sum(axis=0))[0])
        raise BadInputError(
            f"{name}: counts() gives {counts[query]} steps for query {query} on public records "
            f"whose answers add up to {steps[:, query].sum():g}"
        )
    return (
        f"the range and spread of {name} are declared by their author and were tried on {RECORDS} "
        "public records; the guarantee rests on them"
    )
