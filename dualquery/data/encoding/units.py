"""What one unit contributes: rows that belong together, and rows that count by a weight.

A *unit* is all rows with the same value in one column, as it is written: a household's persons. Of
each its first K complete rows stay, in the order of the table, so what stays of a unit depends on
its own rows alone, and neighbouring tables stay neighbours.

A *weight* is cut to a public largest weight W, and rounded to a whole number of *copies*, 0 to M,
each of the weight W / M; whole weights are exact where M is a multiple of W. A row with its weight
is a unit of at most M rows, and all that is proven of units holds (`dualquery.privacy.neighbours`).
Shares are of the sum of all weights, which is the private number of rows. Copies are counted by the
binary digits of their number (`dualquery.rows.weighted`). **Not covered**: weights that were fitted
to totals of the whole table depend on other rows. Neither column is ever released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.encoding.cuts import CutTable, Piece, column_of, in_one_order, pieces
from dualquery.data.readers.source import Source, TableSource
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import DATA, option

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.items import ItemSchema
    from dualquery.data.schema.table import TableSchema

MOST_ROWS_PER_UNIT = 1_000_000
"""Largest K: beyond that no answer would be left."""

MOST_COPIES = 1023
"""Largest M: ten binary digits."""

LARGEST_WEIGHT = 1e12


@dataclass(frozen=True)
class Unit:
    """What a guarantee protects where that is more than a row.

    Values of ``column`` distinguish units, and are never released; ``max_rows``, K, public, rows of
    a unit stay, 1 to `MOST_ROWS_PER_UNIT`. Raises `BadInputError` if one of these cannot be.
    """

    column: str = option(
        MISSING,
        "Column whose value says whose row it is: all rows of one person, household or account "
        "are protected together.",
        DATA,
        name="unit",
    )
    max_rows: int = option(
        MISSING,
        "With --unit: how many rows of one unit count, the first in the table.",
        DATA,
        name="max_rows_per_unit",
    )

    def __post_init__(self) -> None:
        _require_column_name(self.column, "--unit")
        whole = isinstance(self.max_rows, int) and not isinstance(self.max_rows, bool)
        if not whole or not 1 <= self.max_rows <= MOST_ROWS_PER_UNIT:
            raise BadInputError(
                f"--max-rows-per-unit is {self.max_rows!r}; a whole number from 1 to "
                f"{MOST_ROWS_PER_UNIT:,} is needed"
            )

    @staticmethod
    def of_options(column: str | None, max_rows: int | None) -> Unit | None:
        """Return the unit that ``--unit`` and ``--max-rows-per-unit`` say; None if neither does."""
        how = "how many rows of one may count, a number"
        _require_both("--unit", column, "--max-rows-per-unit", max_rows, how)
        return None if column is None or max_rows is None else Unit(column, max_rows)

    @property
    def note(self) -> str:
        """A sentence for the release, by public choices only."""
        rows = "row" if self.max_rows == 1 else f"{self.max_rows:,} rows"
        return (
            f"Rows with the same value of {self.column!r} are one unit, which the guarantee "
            f"protects as a whole: of each the first {rows} of the table count, others are left "
            "out. The column itself is not released."
        )


@dataclass(frozen=True)
class Weight:
    """How much each row counts.

    ``column`` has the weights, numbers from 0 on, which are never released; larger ones than
    ``max``, W, public, count as this, above 0 and at most `LARGEST_WEIGHT`. Raises `BadInputError`
    if one of these cannot be.
    """

    column: str = option(
        MISSING, "Column that says how much each row counts: weighted answers.", DATA, name="weight"
    )
    max: float = option(
        MISSING, "With --weight: the largest weight that counts.", DATA, name="max_weight"
    )  # fmt: skip

    def __post_init__(self) -> None:
        _require_column_name(self.column, "--weight")
        number = isinstance(self.max, int | float) and not isinstance(self.max, bool)
        if not number or not 0 < self.max <= LARGEST_WEIGHT:
            raise BadInputError(
                f"--max-weight is {self.max!r}; a number above 0, up to {LARGEST_WEIGHT:g}, is "
                "needed"
            )
        object.__setattr__(self, "max", float(self.max))

    @staticmethod
    def of_options(column: str | None, largest: float | None) -> Weight | None:
        """Return the weight that ``--weight`` and ``--max-weight`` say; None if neither does."""
        how = "the largest weight that counts, a number"
        _require_both("--weight", column, "--max-weight", largest, how)
        return None if column is None or largest is None else Weight(column, largest)

    @property
    def copies(self) -> int:
        """M: the copies of a row of the largest weight."""
        whole = self.max == math.floor(self.max) and 1 <= self.max <= MOST_COPIES
        return MOST_COPIES // int(self.max) * int(self.max) if whole else MOST_COPIES

    @property
    def of_copy(self) -> float:
        """The weight of one copy, W / M."""
        return self.max / self.copies

    @property
    def note(self) -> str:
        """A sentence for the release, by public choices only."""
        return (
            f"Rows count by their weight in column {self.column!r}, at most {self.max:g}, rounded "
            f"to multiples of {self.of_copy:.6g}; shares are of the total weight. The column "
            "itself is not released."
        )

    @property
    def condition(self) -> str:
        """What the guarantee takes for granted."""
        return (
            f"the weights in column {self.column!r} as given, each a part of its own row (weights "
            "that were fitted to totals of the whole table also tell of other rows)"
        )


def without_counting(source: Source, unit: Unit | None, weight: Weight | None) -> Source:
    """Return a source without the columns of units and weights; of its rows none is looked at."""
    hidden = []
    for name, each in (("--unit", unit), ("--weight", weight)):
        if each is not None:
            source = column_of(source, each.column, name)
            hidden.append(each.column)
    if not isinstance(source, TableSource) or not hidden:
        return source
    return CutTable(source, tuple(hidden), np.zeros(0, np.bool_), 0)


def cut_to_units(
    source: Source, unit: Unit, schema: TableSchema | ItemSchema | None = None
) -> CutTable:
    """Find the units of a table and the rows that stay, in one pass.

    Takes memory for the values of the unit column, and a byte a row afterwards. Rows that
    ``schema`` leaves out are no unit's.
    """
    import polars as pl

    table = in_one_order(column_of(source, unit.column, "--unit"))
    blocks: list[pl.Series] = []
    complete: list[NDArray[np.bool_]] = []
    for piece, whole in _columns(table, unit.column, schema):
        blocks.append(_named_units(piece, unit.column))
        complete.append(whole)
    if not blocks:
        return CutTable(table, (unit.column,), np.zeros(0, np.bool_), 0, (unit.note,))
    if len({block.dtype for block in blocks}) > 1:
        blocks = [block.cast(pl.String) for block in blocks]
    stay = np.concatenate(complete)
    units = pl.DataFrame({"unit": pl.concat(blocks), "stay": stay})
    place = pl.col("stay").cast(pl.UInt32).cum_sum().over("unit")
    kept = stay & units.select(place <= unit.max_rows).to_series().to_numpy()
    return CutTable(table, (unit.column,), kept, units["unit"].n_unique(), (unit.note,))


def weigh(
    source: Source, weight: Weight, schema: TableSchema | ItemSchema | None = None
) -> tuple[CutTable, tuple[CutTable, ...]]:
    """Find how many copies each row of a table has, in one pass over the column of weights.

    Returns the rows that stay, and for each binary digit of the number of copies those whose number
    has it. Rows that ``schema`` leaves out have no copy.
    """
    column_of(source, weight.column, "--weight")
    cut = source if isinstance(source, CutTable) else None
    table = in_one_order(column_of(cut.source if cut else source, weight.column, "--weight"))
    blocks, complete = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
    for piece, whole in _columns(table, weight.column, None if cut else schema):
        blocks.append(_copies(piece, weight))
        complete.append(whole)
    copies, kept = np.concatenate(blocks), np.concatenate(complete)
    if cut is None:
        cut = CutTable(table, (), kept, len(copies))
    elif len(cut.kept) != len(copies):
        raise BadInputError(f"{table.label}: the data must not change while they are read")
    hidden, notes = (*cut.hidden, weight.column), (*cut.notes, weight.note)
    whole_table = replace(cut, source=table, hidden=hidden, notes=notes)
    digits = range(weight.copies.bit_length())
    parts = (replace(whole_table, kept=cut.kept & ((copies >> b) & 1 == 1)) for b in digits)
    return whole_table, tuple(parts)


def _columns(
    table: TableSource, column: str, schema: TableSchema | ItemSchema | None
) -> Iterator[tuple[Piece, NDArray[np.bool_]]]:
    """Yield blocks with a column, and which rows a schema does not leave out."""
    from dualquery.data.encoding.blocks import drops_rows, present_columns
    from dualquery.data.encoding.encode import complete_rows
    from dualquery.data.schema.table import TableSchema

    filters = schema if isinstance(schema, TableSchema) and drops_rows(schema) else None
    names = [] if filters is None else present_columns(table, filters)
    for piece in pieces(table, [column, *(name for name in names if name != column)]):
        complete = np.ones(piece.frame.height, np.bool_)
        if filters is not None:
            complete = complete_rows(filters, piece.frame, piece.label)
        yield piece, complete


def _named_units(piece: Piece, column: str) -> pl.Series:
    """Return the values of the unit column of a block; refuse what tells no unit."""
    import polars as pl

    from dualquery.data.encoding.encode import can_become_bits, missing_mask

    values = piece.frame.get_column(column)
    if not can_become_bits(values):
        raise BadInputError(
            f"{piece.label}: column {column!r} has type {values.dtype}, which cannot tell units "
            "apart; numbers or texts can"
        )
    missing = missing_mask(values, ("",))
    if missing.any():
        row = piece.first_row + int(np.argmax(missing))
        raise BadInputError(
            f"{piece.label}: row {row} has no value in column {column!r}, which --unit names, so "
            "nobody can tell whose row it is; leave such rows out of the table, or give each a "
            "unit of its own"
        )
    named = values.dtype in (pl.Categorical, pl.Enum)
    return values.cast(pl.String) if named else values


def _copies(piece: Piece, weight: Weight) -> NDArray[np.int64]:
    """Return the number of copies of each row of a block: int64; refuse what is no weight."""
    from dualquery.data.encoding.encode import can_become_bits, to_numbers

    values = piece.frame.get_column(weight.column)
    if not can_become_bits(values):
        raise BadInputError(
            f"{piece.label}: column {values.name!r} has type {values.dtype}; --weight needs numbers"
        )
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


def _require_column_name(column: object, option: str) -> None:
    """Raise `BadInputError` unless an option names a column by a text."""
    if not isinstance(column, str) or not column:
        raise BadInputError(f"{option} is {column!r}; give the name of a column")


def _require_both(first: str, column: str | None, second: str, limit: object, how: str) -> None:
    """Raise `BadInputError` if only one of two options is given: a column, and its limit."""
    if column is None and limit is not None:
        raise BadInputError(f"{second} needs {first}, the column")
    if column is not None and limit is None:
        raise BadInputError(
            f"{first} {column} needs {second}: {how} that you choose without looking at the table"
        )
