"""What a user's own family of queries declares, held against public records."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes, cells_of, rows_of_values
from dualquery.queries.family import Queries, disjunctions_of, offers
from dualquery.room.exclusive import require_exclusive
from dualquery.room.private_data import require_grid
from dualquery.rows.packed import RecordsBuilder
from dualquery.runtime.errors import BadInputError

RECORDS, EVERY_RECORD = 256, 1024
"""Uniform legal records that a family is tried on; up to this number all of them are."""


@dataclass(frozen=True)
class Declaration:
    """What is known of the range, grid and spread that a family declares."""

    family: str
    tried: int  # number of public records that it was tried on
    complete: bool  # whether these are all legal records: the declaration is true of every row

    @property
    def condition(self) -> str:
        """What the guarantee is conditional on."""
        if self.complete:  # what counts() does on other tables cannot be tried
            return f"the counts of {self.family} adding up over rows"
        return f"the declared sensitivity of {self.family}"

    @property
    def remark(self) -> str:
        """A sentence for the release."""
        tried = (
            f"tried on all {self.tried:,} legal records"
            if self.complete
            else f"tried on {self.tried:,} public records; the guarantee rests on them"
        )
        return (
            f"the range and spread of {self.family} are declared by their author and were {tried}"
        )


def check_declared(queries: Queries) -> Declaration:
    """Try a family's range, grid and spread on public records.

    In a small domain these are all legal records. Elsewhere it is a check, not a proof: the
    guarantee is conditional on the declaration. `BadInputError` as `require_grid`, or if a value
    lies outside ``low .. high``, off the grid, or two values of a query lie more than ``spread``
    steps apart; or if ``counts()`` or ``disjunctions()`` give other values.
    """
    require_grid(queries)
    records, complete = _public_records(queries.domain)
    values = np.stack([queries.answers_on(record[None]) for record in records])
    name = type(queries).__name__
    if values.shape != (len(records), len(queries)):
        raise BadInputError(
            f"{name}: a record has {values.shape[1:]} answers; {len(queries):,} are needed"
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
    if getattr(counts, "dtype", None) != np.int64:
        raise BadInputError(f"{name}: counts() must return int64, one for each query")
    if not np.array_equal(counts, steps.sum(axis=0)):
        query = int(np.flatnonzero(counts != steps.sum(axis=0))[0])
        raise BadInputError(
            f"{name}: counts() gives {counts[query]} steps for query {query} on public records "
            f"whose answers add up to {steps[:, query].sum():g}"
        )
    if offers(queries, "disjunctions"):
        _check_disjunctions(queries, records, values)
    return Declaration(name, len(records), complete)


def _public_records(domain: Domain) -> tuple[NDArray[np.uint8], bool]:
    """Return legal records, uint8 ``(r, bits)``, and whether these are all that there are."""
    sizes = axis_sizes(domain)
    cells = cells_of(domain)
    if cells <= EVERY_RECORD:
        values = np.stack(np.unravel_index(np.arange(cells), tuple(sizes.tolist())), axis=1)
        return rows_of_values(values, domain), True
    generator = np.random.default_rng(0)
    return rows_of_values(generator.integers(0, sizes, (RECORDS, len(sizes))), domain), False


def _check_disjunctions(
    queries: Queries, records: NDArray[np.uint8], values: NDArray[np.float64]
) -> None:
    """Compare a family's values, brought to 0 .. 1, with those of its sums of conjunctions."""
    posed = disjunctions_of(queries)
    require_exclusive(posed)
    name = type(queries).__name__
    if len(posed) != len(queries):
        raise BadInputError(
            f"{name}: disjunctions() has {len(posed):,} queries, and the family {len(queries):,}"
        )
    scaled = (values - queries.low) / (queries.high - queries.low)
    truth = np.stack([posed.on_record(record) for record in records])
    for record, query in np.argwhere(truth != scaled)[:1]:
        raise BadInputError(
            f"{name}: on the record {records[record].tolist()} disjunctions() gives "
            f"{truth[record, query]} for query {query}, and answers_on() {values[record, query]}, "
            f"which is {scaled[record, query]:g} of its range"
        )
