"""Rows that belong together: a household's persons, a patient's visits, an account's payments.

A *unit* is all rows with the same value in one column, the unit column. A guarantee for units needs
that no unit has more than a public number K of rows, so of a unit with more the first K stay, in
the order of the table. A table is so a set of units, each of them a list of rows. Which of its rows
stay depends on that list alone, whatever stands between them: when one unit is replaced, added or
removed, the rows of all others stay as they were.

Values are compared as they are in the table: ``7`` and ``07`` are two units, if they are texts. A
row without a value has no unit, and is refused. The unit column itself is never released.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dualquery.data.cuts import (
    CutTable,
    column_of,
    given_together,
    in_one_order,
    require_column_name,
)
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.readers.source import Source

MOST_ROWS_PER_UNIT = 1_000_000
"""Largest K: beyond that no answer would be left."""


@dataclass(frozen=True)
class Unit:
    """What a guarantee protects where that is more than a row.

    Parameters
    ----------
    column
        Name of the column whose values tell units apart.
    max_rows
        K, public: how many rows of a unit stay. From 1 to `MOST_ROWS_PER_UNIT`.

    Raises
    ------
    BadInputError
        If one of them cannot be.
    """

    column: str
    max_rows: int

    def __post_init__(self) -> None:
        require_column_name(self.column, "--unit")
        whole = isinstance(self.max_rows, int) and not isinstance(self.max_rows, bool)
        if not whole or not 1 <= self.max_rows <= MOST_ROWS_PER_UNIT:
            raise BadInputError(
                f"--max-rows-per-unit is {self.max_rows!r}; a whole number from 1 to "
                f"{MOST_ROWS_PER_UNIT:,} is needed"
            )

    @staticmethod
    def of_options(column: str | None, max_rows: int | None) -> Unit | None:
        """Return the unit that ``--unit`` and ``--max-rows-per-unit`` say; None if neither does.

        Raises
        ------
        BadInputError
            If only one of them is given, or it cannot be.
        """
        given = given_together(
            ("--unit", column, "the column that tells units"),
            ("--max-rows-per-unit", max_rows, "how many rows of one may count, a number"),
        )
        return Unit(str(column), max_rows) if given and max_rows is not None else None

    @property
    def note(self) -> str:
        """A sentence for the release, by public choices only."""
        rows = "row" if self.max_rows == 1 else f"{self.max_rows:,} rows"
        return (
            f"Rows with the same value of {self.column!r} are one unit, which the guarantee "
            f"protects as a whole: of each the first {rows} of the table count, others are left "
            "out. The column itself is not released."
        )


def cut_to_units(source: Source, unit: Unit) -> CutTable:
    """Find the units of a table and the rows that stay, in one pass over the unit column.

    Takes memory for the values of that column, and a byte a row afterwards; for a query's whole
    result (`dualquery.data.cuts.in_one_order`).

    Raises
    ------
    BadInputError
        If the source has no such column, or a row has no value in it.
    """
    import polars as pl

    table = in_one_order(column_of(source, unit.column, "--unit"))
    blocks: list[pl.Series] = []
    row = 1
    for frame in table.frames([unit.column]):
        blocks.append(_named_units(frame[unit.column], table.label, row))
        row += frame.height
    if len({block.dtype for block in blocks}) > 1:
        blocks = [block.cast(pl.String) for block in blocks]
    if row == 1:
        return CutTable(table, (unit.column,), np.zeros(0, np.bool_), 0, (unit.note,))
    values = pl.concat(blocks).rename("unit").to_frame()
    place = pl.int_range(pl.len(), dtype=pl.UInt32).over("unit")
    kept = values.select(place < unit.max_rows).to_series().to_numpy()
    return CutTable(table, (unit.column,), kept, values["unit"].n_unique(), (unit.note,))


def _named_units(values: pl.Series, label: str, first_row: int) -> pl.Series:
    """Return the values of the unit column of a block; refuse what tells no unit."""
    import polars as pl

    from dualquery.data.encode import can_become_bits, missing_mask

    if not can_become_bits(values):
        raise BadInputError(
            f"{label}: column {values.name!r} has type {values.dtype}, which cannot tell units "
            "apart; numbers or texts can"
        )
    missing = missing_mask(values, ("",))
    if missing.any():
        row = first_row + int(np.argmax(missing))
        raise BadInputError(
            f"{label}: row {row} has no value in column {values.name!r}, which --unit names, so "
            "nobody can tell whose row it is; leave such rows out of the table, or give each a "
            "unit of its own"
        )
    named = values.dtype in (pl.Categorical, pl.Enum)
    return values.cast(pl.String) if named else values
