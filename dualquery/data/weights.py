"""Weights: a row that stands for several people counts as often as its weight says.

Surveys give a row a weight. A weighted share is the sum of the weights of the rows on which a query
holds, divided by the sum of all weights. Both are private.

**Copies.** A weight is cut to a public largest weight W, and rounded to a whole number of *copies*,
0 to M, each of the weight W / M: a row then counts as so many copies of itself. M is the largest
multiple of W up to `MOST_COPIES` if W is a whole number up to that, so that whole weights are
exact, and else `MOST_COPIES`: a copy weighs at most W / 512. How many copies a row has depends on
that row alone. So a row with its weight is a unit of at most M rows, and all that is proven of
units holds (`dualquery.privacy.neighbours`); the sum of the weights is the private number of rows.

**Not covered**: weights that were fitted to totals of the whole table (raked, calibrated) depend on
other rows. The guarantee takes them as given, and says so.

Copies are counted by the binary digits of their number: the rows whose number has the digit b count
2^b times (`dualquery.rows.weighted`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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

MOST_COPIES = 1023
"""Largest M: ten binary digits."""

LARGEST_WEIGHT = 1e12


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

    column: str
    max: float

    def __post_init__(self) -> None:
        require_column_name(self.column, "--weight")
        number = isinstance(self.max, int | float) and not isinstance(self.max, bool)
        if not number or not 0 < self.max <= LARGEST_WEIGHT:
            raise BadInputError(
                f"--max-weight is {self.max!r}; a number above 0, up to {LARGEST_WEIGHT:g}, is "
                "needed"
            )
        object.__setattr__(self, "max", float(self.max))

    @staticmethod
    def of_options(column: str | None, largest: float | None) -> Weight | None:
        """Return the weight that ``--weight`` and ``--max-weight`` say; None if neither does.

        Raises
        ------
        BadInputError
            If only one of them is given, or it cannot be.
        """
        given = given_together(
            ("--weight", column, "the column of weights"),
            ("--max-weight", largest, "the largest weight that counts, a number"),
        )
        return Weight(str(column), largest) if given and largest is not None else None

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


def weigh(source: Source, weight: Weight) -> WeightedTable:
    """Find how many copies each row of a table has, in one pass over the column of weights.

    Raises
    ------
    BadInputError
        If the source has no such column, or a row has no weight or one that is no number from 0 on.
    """
    column_of(source, weight.column, "--weight")
    cut = source if isinstance(source, CutTable) else None
    given = source if cut is None else cut.source
    table = in_one_order(column_of(given, weight.column, "--weight"))
    blocks = []
    first = 1
    for frame in table.frames([weight.column]):
        blocks.append(_copies(frame[weight.column], weight, table.label, first))
        first += frame.height
    copies = np.concatenate(blocks) if blocks else np.zeros(0, np.int64)
    kept = np.ones(len(copies), np.bool_) if cut is None else cut.kept
    if len(kept) != len(copies):
        raise BadInputError(f"{table.label}: the data must not change while they are read")
    whole = CutTable(
        table,
        (*(cut.hidden if cut else ()), weight.column),
        kept,
        cut.units if cut else len(copies),
        (*(cut.notes if cut else ()), weight.note),
    )
    digits = range(weight.copies.bit_length())
    return WeightedTable(
        whole, tuple(replace(whole, kept=kept & ((copies >> b) & 1 == 1)) for b in digits)
    )


def _copies(values: pl.Series, weight: Weight, label: str, first_row: int) -> NDArray[np.int64]:
    """Return the number of copies of each row of a block: int64; refuse what is no weight."""
    from dualquery.data.encode import can_become_bits, to_numbers

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
