"""What one unit contributes: rows that belong together, and rows that count by a weight.

**Units.** A *unit* is all rows with the same value in one column: a household's persons, a
patient's visits. A guarantee for units needs that no unit has more than a public number K of rows,
so the first K of a unit's rows stay, in the order of the table. Incomplete rows that the schema
leaves out are left out before. Both depend on the unit's own rows and their order alone: when one
unit is replaced, added or removed, the rows of all others stay as they were. Values are compared as
they are in the table. A row without a value has no unit, and is refused.

**Weights.** A weighted share is the sum of the weights of the rows on which a query holds, divided
by the sum of all weights; both are private. A weight is cut to a public largest weight W, and
rounded to a whole number of *copies*, 0 to M, each of the weight W / M. M is the largest multiple
of W up to `MOST_COPIES` if W is a whole number up to that, so that whole weights are exact, and
else `MOST_COPIES`. The copies of a row depend on that row alone. So a row with its weight is a unit
of at most M rows, and all that is proven of units holds (`dualquery.privacy.neighbours`); the sum
of the weights is the private number of rows. Copies are counted by the binary digits of their
number (`dualquery.rows.weighted`). **Not covered**: weights that were fitted to totals of the whole
table depend on other rows. The guarantee takes them as given and says so.

Neither column is ever released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.encoding.cuts import CutTable, column_of, in_one_order
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import DATA, option

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.readers.source import Source, TableSource
    from dualquery.data.schema.items import ItemSchema
    from dualquery.data.schema.table import TableSchema

T = TypeVar("T")

MOST_ROWS_PER_UNIT = 1_000_000
"""Largest K: beyond that no answer would be left."""

MOST_COPIES = 1023
"""Largest M: ten binary digits."""

LARGEST_WEIGHT = 1e12


@dataclass(frozen=True)
class Unit:
    """What a guarantee protects where that is more than a row.

    Parameters
    ----------
    column
        Name of the column whose values distinguish units. It is never released.
    max_rows
        K, public: how many rows of a unit stay. From 1 to `MOST_ROWS_PER_UNIT`.

    Raises
    ------
    BadInputError
        If one of them cannot be.
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
        said = ("--unit", column, "the column that tells units")
        how = "how many rows of one may count, a number"
        return _of_options(Unit, said, ("--max-rows-per-unit", max_rows, how))

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

    Parameters
    ----------
    column
        Name of the column of weights, numbers from 0 on. It is never released.
    max
        W, public: larger weights count as this. Above 0, at most `LARGEST_WEIGHT`.

    Raises
    ------
    BadInputError
        If one of them cannot be.
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
        said = ("--weight", column, "the column of weights")
        return _of_options(
            Weight, said, ("--max-weight", largest, "the largest weight that counts, a number")
        )

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


@dataclass(frozen=True, eq=False)
class WeightedTable:
    """A table, and the rows that count 1, 2, 4 and so on times."""

    whole: CutTable
    """With all rows that stay."""
    digits: tuple[CutTable, ...]
    """For each binary digit of the number of copies: the rows whose number has it."""


def without_counting(source: Source, unit: Unit | None, weight: Weight | None) -> Source:
    """Return a source without the columns of units and weights; of its rows none is looked at."""
    for name, each in (("--unit", unit), ("--weight", weight)):
        if each is not None:
            hidden = (*(source.hidden if isinstance(source, CutTable) else ()), each.column)
            table = column_of(source, each.column, name)
            source = CutTable(table, hidden, np.zeros(0, np.bool_), 0)
    return source


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
    for row, values, whole in _columns(table, unit.column, schema):
        blocks.append(_named_units(values, table.label, row))
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
) -> WeightedTable:
    """Find how many copies each row of a table has, in one pass over the column of weights.

    Rows that ``schema`` leaves out have none.
    """
    cut = source if isinstance(source, CutTable) else None
    column_of(source, weight.column, "--weight")
    given = source if cut is None else cut.source
    table = in_one_order(column_of(given, weight.column, "--weight"))
    blocks, complete = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
    for row, values, whole in _columns(table, weight.column, None if cut else schema):
        blocks.append(_copies(values, weight, table.label, row))
        complete.append(whole)
    copies, kept = np.concatenate(blocks), np.concatenate(complete)
    if cut is None:
        whole_table = CutTable(table, (weight.column,), kept, len(copies), (weight.note,))
    else:
        if len(cut.kept) != len(copies):
            raise BadInputError(f"{table.label}: the data must not change while they are read")
        hidden, notes = (*cut.hidden, weight.column), (*cut.notes, weight.note)
        whole_table = replace(cut, source=table, hidden=hidden, notes=notes)
    digits = range(weight.copies.bit_length())
    kept = whole_table.kept
    parts = (replace(whole_table, kept=kept & ((copies >> b) & 1 == 1)) for b in digits)
    return WeightedTable(whole_table, tuple(parts))


def _columns(
    table: TableSource, column: str, schema: TableSchema | ItemSchema | None
) -> Iterator[tuple[int, pl.Series, NDArray[np.bool_]]]:
    """Yield of each block its first row, the values of a column, and which rows are complete."""
    from dualquery.data.encoding.blocks import drops_rows, present_columns
    from dualquery.data.encoding.encode import complete_rows
    from dualquery.data.schema.table import TableSchema

    filters = schema if isinstance(schema, TableSchema) and drops_rows(schema) else None
    names = [] if filters is None else present_columns(table, filters)
    row = 1
    for frame in table.frames([column, *(name for name in names if name != column)]):
        complete = np.ones(frame.height, np.bool_)
        if filters is not None:
            complete = complete_rows(filters, frame, table.label)
        yield row, frame.get_column(column), complete
        row += frame.height


def _named_units(values: pl.Series, label: str, first_row: int) -> pl.Series:
    """Return the values of the unit column of a block; refuse what tells no unit."""
    import polars as pl

    from dualquery.data.encoding.encode import can_become_bits, missing_mask

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


def _copies(values: pl.Series, weight: Weight, label: str, first_row: int) -> NDArray[np.int64]:
    """Return the number of copies of each row of a block: int64; refuse what is no weight."""
    from dualquery.data.encoding.encode import can_become_bits, to_numbers

    if not can_become_bits(values):
        raise BadInputError(
            f"{label}: column {values.name!r} has type {values.dtype}; --weight needs numbers"
        )
    numbers = to_numbers(values)
    faulty = ~(np.isfinite(numbers) & (numbers >= 0))
    if faulty.any():
        place = int(np.argmax(faulty))
        raise BadInputError(
            f"{label}: row {first_row + place}, column {values.name!r}: {values[place]!r} is no "
            "weight; a number from 0 on is needed, 0 for a row that does not count"
        )
    copies: NDArray[np.int64] = np.rint(np.minimum(numbers, weight.max) / weight.of_copy).astype(
        np.int64
    )
    return np.minimum(copies, weight.copies)


def _require_column_name(column: object, option: str) -> None:
    """Raise `BadInputError` unless an option names a column by a text."""
    if not isinstance(column, str) or not column:
        raise BadInputError(f"{option} is {column!r}; give the name of a column")


def _of_options(
    kind: Callable[[str, Any], T], column: tuple[str, str | None, str], limit: tuple[str, Any, str]
) -> T | None:
    """Return what an option that names a column and one that limits it say; both or none."""
    (first, name, what), (second, number, how) = column, limit
    if name is None and number is not None:
        raise BadInputError(f"{second} needs {first}, {what}")
    if name is not None and number is None:
        raise BadInputError(
            f"{first} {name} needs {second}: {how} that you choose without looking at the table"
        )
    return None if name is None else kind(name, number)
