"""Tiny tables: all legal records of a small domain, all tables of a few of them, all neighbours."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes, rows_of_values
from dualquery.data.domain import Domain
from dualquery.data.encoding.units import Unit, Weight
from dualquery.data.schema.grids import Grid
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.rows.packed import Records, RecordsBuilder
from dualquery.rows.protocol import Rows
from dualquery.rows.weighted import WeightedRows


class FewCopies(Weight):
    """A weight of at most three copies, so that much can be tried; others have about a thousand."""

    copies = 3


UNITS = tuple(Neighbours.parse(each.value, Unit("unit", 2)) for each in RELATIONS)
"""Both relations, of units of at most two rows."""

WEIGHTS = (
    Neighbours.parse("replace-one", None, FewCopies("weight", 3.0)),
    Neighbours.parse("add-remove", Unit("unit", 2), FewCopies("weight", 3.0)),
)
"""Rows that count by their weight, each for itself or of units of at most two."""

Cells = tuple[int, ...]
"""A table by the cells of its rows, increasing; a cell is a legal record's number."""


def legal_records(domain: Domain) -> NDArray[np.uint8]:
    """Return every legal record, in the order of the histogram's cells: uint8, ``(c, bits)``."""
    sizes = axis_sizes(domain).tolist()
    values = np.array(list(itertools.product(*map(range, sizes))))
    records = rows_of_values(values, domain)
    if domain.max_ones is not None:
        records = records[records.sum(axis=1) <= domain.max_ones]
    return records


def records_of(rows: NDArray[np.uint8]) -> Records:
    """Return rows, uint8 ``(r, bits)``, as the private room reads them."""
    builder = RecordsBuilder(rows.shape[1])
    builder.append_dense(np.asarray(rows, np.uint8))
    return builder.build()


def table_of(rows: NDArray[np.uint8], copies: NDArray[np.int64], relation: Neighbours) -> Rows:
    """Return rows, each with the number of its copies: 1 unless they have weights."""
    if relation.weight is None:
        return records_of(rows)
    digits = range(relation.copies.bit_length())
    return WeightedRows(tuple(records_of(rows[copies >> digit & 1 == 1]) for digit in digits))


def with_every_number(records: NDArray[np.uint8], grids: tuple[Grid, ...]) -> NDArray[np.uint8]:
    """Return each record with each combination of numbers on grids behind it."""
    for grid in grids:
        points = grid.encode(np.linspace(grid.low, grid.high, grid.steps + 1)).astype(np.uint8)
        each = np.repeat(records, len(points), axis=0)
        records = np.hstack((each, np.tile(points, (len(records), 1))))
    return records


def name_of(relation: Neighbours) -> str:
    """Return what checks call a relation."""
    units = "" if relation.unit is None else " of units"
    return relation.value + units + ("" if relation.weight is None else " with weights")


def tables_of(universe: int, rows: int, relation: Neighbours) -> list[Cells]:
    """Return the tables of so many rows; if their number is private, those of a unit more, too."""
    sizes = [rows] if relation.rows_public else range(rows, rows + relation.steps + 1)
    every = itertools.combinations_with_replacement
    return [cells for size in sizes for cells in every(range(universe), size)]


@cache
def pairs_of(universe: int, rows: int, relation: Neighbours) -> tuple[tuple[Cells, Cells], ...]:
    """Return all neighbours among these, each pair in both orders."""
    found = []
    for one, other in itertools.permutations(tables_of(universe, rows, relation), 2):
        shared = sum(min(one.count(c), other.count(c)) for c in range(universe))
        gone, come = len(one) - shared, len(other) - shared
        # A unit that comes or goes leaves no other in its place.
        if max(gone, come) <= relation.steps and (relation.replaces or 0 in (gone, come)):
            found.append((one, other))
    return tuple(found)
