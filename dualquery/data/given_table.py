"""A private table as it is given: what of it is read, and how much each row counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import DATA, check_options, option

if TYPE_CHECKING:
    from dualquery.data.readers.source import Source

MOST_ROWS_PER_UNIT = 1_000_000  # largest K: beyond that no answer would be left
MOST_COPIES = 1023  # largest M: ten binary digits
LARGEST_WEIGHT = 1e12


@dataclass(frozen=True)
class Table:
    """A private table, and what of it is read.

    The data are a built-in name, a path, ``FORMAT:PATH``, or a Polars, pandas, Arrow, NumPy or
    SciPy table; each option says what it does.
    """

    data: Any = option(
        MISSING,
        "A built-in table, PATH or FORMAT:PATH; - for CSV from the standard input.",
        DATA,
        flags=(),
        typed="adult",
        metavar="TABLE",
    )
    _: KW_ONLY
    csv: str | None = option(
        None,
        "How a CSV file is written, such as delimiter=;,encoding=latin-1,decimal=, in quotation "
        "marks; spaces=trim removes spaces around cells.",
        DATA,
    )
    columns: Sequence[str | int] | str | None = option(
        None, "Columns to read: names, positions, ranges; !name leaves one out.", DATA
    )
    max_ones_per_row: int | None = option(
        None,
        "Cut rows of 0/1 columns to this many 1s, so that they need less noise. Public.",
        DATA,
        least=1,
    )
    schema_share: float = option(
        0.1, "Without a schema: the share of the budget that learns one.", DATA
    )
    schema_from_data: bool = option(
        False,
        "Draft the schema from the exact data: NOT private.",
        DATA,
        flags=("--schema-from-data",),
    )
    public_types: bool = option(
        False,
        "Take columns' types, as Parquet states them, as public.",
        DATA,
        flags=("--public-types",),
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not 0.0 < self.schema_share < 1.0:
            raise BadInputError(
                f"--schema-share is {self.schema_share!r}; a number between 0 and 1 is needed"
            )

    @cached_property
    def source(self) -> Source:
        """What `dualquery.data.readers.formats.source_of` returns for the table, and raises."""
        from dualquery.data.readers.csv import Dialect
        from dualquery.data.readers.formats import parse_source, source_of
        from dualquery.data.readers.source import TableSource

        if self.csv is None or isinstance(self.data, TableSource):
            return source_of(self.data)
        if not isinstance(self.data, str | Path):  # as text it would show its rows
            raise BadInputError("csv says how a CSV file is written, but the table is no file")
        return parse_source(str(self.data), Dialect.parse(self.csv))

    def written_as(self, csv: object) -> Table:
        """Return the table, written as ``csv`` says if it is CSV in files and says nothing itself.

        ``csv`` comes from a release: what is no text says nothing.
        """
        from dualquery.data.readers.formats import csv_of

        in_file = self.csv is None and isinstance(self.data, str | Path)
        said = isinstance(csv, str) and in_file and csv_of(self.source) is not None
        return replace(self, csv=str(csv)) if said else self


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
        check_options(self)
        if not 1 <= self.max_rows <= MOST_ROWS_PER_UNIT:
            raise BadInputError(
                f"--max-rows-per-unit is {self.max_rows!r}; a whole number from 1 to "
                f"{MOST_ROWS_PER_UNIT:,} is needed"
            )

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
    ``max``, W, public, count as it. W is above 0 and at most `LARGEST_WEIGHT`, or `BadInputError`.
    """

    column: str = option(
        MISSING, "Column that says how much each row counts: weighted answers.", DATA, name="weight"
    )
    max: float = option(
        MISSING, "With --weight: the largest weight that counts.", DATA, name="max_weight"
    )  # fmt: skip

    def __post_init__(self) -> None:
        _require_column_name(self.column, "--weight")
        check_options(self)
        if not 1.0 / LARGEST_WEIGHT <= self.max <= LARGEST_WEIGHT:
            raise BadInputError(f"--max-weight is {self.max!r}; it is a number from 1e-12 to 1e12")
        object.__setattr__(self, "max", float(self.max))

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
            "that were fitted to totals of the whole table depend on other rows, too)"
        )


def _require_column_name(column: object, option: str) -> None:
    """Raise `BadInputError` unless an option names a column by a text."""
    if not isinstance(column, str) or not column:
        raise BadInputError(f"{option} is {column!r}; give the name of a column")
