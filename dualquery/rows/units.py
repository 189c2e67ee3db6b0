"""Which rows of a table count, and how often: the rows of units, and weights.

A *unit* is all rows with the same value in one column, as it is written: a household's persons. Of
each its first K complete rows stay, in the order of the table (a query's rows are sorted), so what
stays of a unit depends on its own rows alone, and neighbouring tables stay neighbours.

A *weight* is cut to a public largest weight W, and rounded to a whole number of *copies*, 0 to M,
each of the weight W / M; whole weights are exact where M is a multiple of W. A row with its weight
is a unit of at most M rows, and all that is proven of units holds (`dualquery.privacy.neighbours`).
Shares are of the sum of all weights, which is the private number of rows. Copies are counted by the
binary digits of their number (`weighted_rows`). **Not covered**: weights that were fitted
to totals of the whole table depend on other rows. Neither column is ever released.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.encoding.blocks import present_columns
from dualquery.data.encoding.cuts import CutTable, Piece, column_of, in_one_order, pieces
from dualquery.data.encoding.encode import can_become_bits, complete_rows, missing_mask, to_numbers
from dualquery.data.given_table import Unit, Weight
from dualquery.data.readers.source import Source, TableSource
from dualquery.data.schema.any_schema import Schema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError


def cut_to_units(source: Source, unit: Unit, schema: Schema | None = None) -> CutTable:
    """Find the units of a table and the rows that stay; a row that ``schema`` leaves out is none's.

    In one pass. Takes memory for the values of the unit column, and a byte a row afterwards.
    """
    table = in_one_order(column_of(source, unit.column, "--unit"))
    blocks, complete = [], [np.zeros(0, np.bool_)]
    for piece, whole in _columns(table, unit.column, schema):
        blocks.append(_named_units(piece, unit.column))
        complete.append(whole)
    stay = np.concatenate(complete)
    rows = pl.DataFrame({"unit": pl.concat(blocks or [pl.Series(dtype=pl.String)]), "stay": stay})
    place = pl.col("stay").cast(pl.UInt32).cum_sum().over("unit")
    kept = stay & rows.select(place <= unit.max_rows).to_series().to_numpy()
    units = rows.filter("stay")["unit"].n_unique()
    return CutTable(table, (unit.column,), kept, units, (unit.note,))


def weigh(
    source: Source, weight: Weight, schema: Schema | None = None
) -> tuple[CutTable, tuple[CutTable, ...]]:
    """Find how many copies each row of a table has, in one pass over the column of weights.

    Returns the rows that stay, and for each binary digit of the number of copies those whose number
    has it. Rows that ``schema`` leaves out have no copy.
    """
    given = column_of(source, weight.column, "--weight")
    cut = given if isinstance(given, CutTable) else None
    table = in_one_order(cut.source if cut else given)
    blocks, complete = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
    for piece, whole in _columns(table, weight.column, None if cut else schema):
        blocks.append(_copies(piece, weight))
        complete.append(whole)
    copies, kept = np.concatenate(blocks), np.concatenate(complete)
    if cut is None:
        cut = CutTable(table, (), kept, int(kept.sum()))
    elif len(cut.kept) != len(copies):
        raise BadInputError(f"{table.label}: the data must not change while they are read")
    hidden, notes = (*cut.hidden, weight.column), (*cut.notes, weight.note)
    whole_table = replace(cut, source=table, hidden=hidden, notes=notes)
    digits = range(weight.copies.bit_length())
    parts = (replace(whole_table, kept=cut.kept & ((copies >> b) & 1 == 1)) for b in digits)
    return whole_table, tuple(parts)


def _columns(
    table: TableSource, column: str, schema: Schema | None
) -> Iterator[tuple[Piece, NDArray[np.bool_]]]:
    """Yield blocks with a column, and which rows a schema does not leave out."""
    filters = schema if isinstance(schema, TableSchema) and schema.drop_incomplete else None
    names = [] if filters is None else present_columns(table, filters)
    for piece in pieces(table, [column, *(name for name in names if name != column)]):
        values = piece.frame.get_column(column)
        if not can_become_bits(values):
            raise BadInputError(
                f"{piece.label}: column {column!r} has type {values.dtype}; --weight needs "
                "numbers, --unit numbers or texts"
            )
        complete = np.ones(piece.frame.height, np.bool_)
        if filters is not None:
            complete = complete_rows(filters, piece.frame, piece.label)
        yield piece, complete


def _named_units(piece: Piece, column: str) -> pl.Series:
    """Return the values of the unit column of a block; refuse what tells no unit."""
    values = piece.frame.get_column(column)
    missing = missing_mask(values, ("",))
    if missing.any():
        row = piece.first_row + int(np.argmax(missing))
        raise BadInputError(
            f"{piece.label}: row {row} has no value in column {column!r}, which --unit names, so "
            "nobody can tell whose row it is; leave such rows out of the table, or give each a "
            "unit of its own"
        )
    return values.cast(pl.String) if values.dtype in (pl.Categorical, pl.Enum) else values


def _copies(piece: Piece, weight: Weight) -> NDArray[np.int64]:
    """Return the number of copies of each row of a block: int64; refuse what is no weight."""
    values = piece.frame.get_column(weight.column)
    numbers = to_numbers(values)
    faulty = ~(np.isfinite(numbers) & (numbers >= 0))
    if faulty.any():
        place = int(np.argmax(faulty))
        raise BadInputError(
            f"{piece.label}: row {piece.first_row + place}, column {values.name!r}: "
            f"{values[place]!r} is no weight; a number from 0 on is needed, 0 for a row that does "
            "not count"
        )
    copies = np.rint(np.minimum(numbers, weight.max) / weight.of_copy).astype(np.int64)
    return np.asarray(np.minimum(copies, weight.copies))
