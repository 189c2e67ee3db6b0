"""Measured tables: the cells of a query's bits, and which values of a column touch them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mwem.layout import Layout
from mwem.sampled.gibbs_kernels import Places, Touches


@dataclass(frozen=True, eq=False)
class MeasuredTables:
    """Tables over the bits of queries: bit ``i`` of a cell's number is bit ``i`` of the table.

    Parameters
    ----------
    layout
        The columns of the population.
    bits
        int32, shape ``(tables, k)``: bits of each table, padded on the right with -1. A padded bit
        is never 1: the upper cells stay empty.

    Attributes
    ----------
    places
        Column and value of each bit.
    touches
        The same by column.
    possible
        bool, shape ``shape``: see `possible_cells`.
    """

    layout: Layout
    bits: NDArray[np.int32]
    places: Places = field(init=False)
    touches: Touches = field(init=False)
    possible: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        present = self.bits >= 0
        columns = np.where(present, self.layout.column[self.bits], np.int32(-1))
        values = np.where(present, self.layout.value[self.bits], np.uint16(0))
        places = Places(np.ascontiguousarray(columns), np.ascontiguousarray(values))
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "touches", _touches(places))
        possible = [possible_cells(self.layout, table) for table in self.bits]
        object.__setattr__(self, "possible", np.reshape(possible, self.shape).astype(np.bool_))

    def __len__(self) -> int:
        return len(self.bits)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of tables, and of cells of each."""
        return len(self.bits), 1 << self.bits.shape[1]

    def add(self, bits: NDArray[np.int32]) -> MeasuredTables:
        """Return these tables and one more, over ``bits`` (shape ``(k,)``, padded)."""
        return MeasuredTables(self.layout, np.concatenate((self.bits, bits[None])))


def possible_cells(layout: Layout, bits: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which cells of a table over ``bits`` (padded, ``(k,)``) some legal record lies in.

    Two bits of a one-hot column exclude each other, and one of all of them must be 1.

    Returns
    -------
    bool, shape ``(2^k,)``.
    """
    cell = np.arange(1 << len(bits))
    one = (cell[:, None] >> np.arange(len(bits)) & 1).astype(bool)
    possible: NDArray[np.bool_] = np.logical_not(np.any(one[:, bits < 0], axis=1))
    columns = np.where(bits >= 0, layout.column[bits], -1)
    for column in np.unique(columns[bits >= 0]):
        on_column = columns == column
        ones = one[:, on_column].sum(axis=1)
        possible = possible & (ones <= 1)
        if on_column.sum() == layout.domain.sizes[layout.columns[column]] > 1:
            possible = possible & (ones == 1)
    return possible


def _touches(places: Places) -> Touches:
    table, place = np.nonzero(places.columns >= 0)
    column, value = places.columns[table, place], places.values[table, place]
    order = np.lexsort((table, column))
    table, column, value, place = table[order], column[order], value[order], place[order]
    sets = np.left_shift(np.int32(1), place.astype(np.int32))
    # The bits of one table that are about one column follow each other.
    new = np.ones(len(table), np.bool_)
    new[1:] = (table[1:] != table[:-1]) | (column[1:] != column[:-1])
    run = np.cumsum(new) - 1
    whole = np.bitwise_or.reduceat(sets, np.flatnonzero(new))[run] if len(sets) else sets
    touched, first = np.unique(column, return_index=True)
    return Touches(
        columns=touched.astype(np.int32),
        start=np.append(first, len(column)).astype(np.int64),
        table=table.astype(np.int32),
        value=value,
        sets=sets,
        all=whole,
    )
