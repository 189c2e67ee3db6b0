"""The schema of a table: named columns, each of one bit or of a group of bits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.data.schema.column_choice import ColumnChoice, select_columns
from dualquery.data.schema.columns import Binary, Column, check_max_ones, check_shape, header
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.grids import Grid
from dualquery.data.schema.numeric import Buckets
from dualquery.data.schema.rules import Orders, Rule, rules_entry
from dualquery.runtime.errors import BadInputError, suggest


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table.

    `BadInputError` if columns, missing values, cuts or orders contradict each other.

    Parameters
    ----------
    columns
        In the order of the bits; at least one, no name twice.
    name
        For messages and for the release.
    declared
        False when buckets or categories were taken from the data. It has no default: say which.
    drop_incomplete
        Whether rows that lack a value in one of these columns are left out before anything else.
        It is a public filter: neighbouring tables are defined after it.
    missing_values
        Texts that stand for a missing value in every column, besides null and NaN; columns of
        buckets compare numbers and dates among them by value.
    max_ones_per_row
        Rows with more 1s than this are cut to it (`data.encoding.truncation`); None for no cut. It
        needs binary columns only.
    rules
        Rules between the columns, which all records keep (`dualquery.rules`).
    left_out
        Names of columns that rules may name, but records do not have: see `restrict`.
    summed
        Names of numeric columns whose rows carry their numbers (`grids`); not in a schema's file.
    learned
        What the schema cost, if it was learned under differential privacy: its ``epsilon``,
        ``delta``, ``neighbours`` and ``events``.
    partial
        Whether the table has further columns, which a release learns.
    """

    columns: tuple[Column, ...]
    name: str = "schema"
    declared: bool = field(kw_only=True)
    drop_incomplete: bool = False
    missing_values: tuple[str, ...] = ("",)
    max_ones_per_row: int | None = None
    rules: tuple[Rule, ...] = ()
    left_out: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()
    learned: Mapping[str, object] | None = field(default=None, hash=False)
    partial: bool = False

    def __post_init__(self) -> None:
        own = f"schema {self.name!r}"
        check_max_ones(self.name, self.max_ones_per_row)
        if not self.columns:
            raise BadInputError(f"{own}: it has no columns, so records have no bits")
        for number, column in enumerate(self.columns):
            where = f"{own}, column {column.name!r}"
            if self._numbers[column.name] != number:
                raise BadInputError(f"{own}: the column {column.name!r} is declared twice")
            if self.drop_incomplete and getattr(column, "missing", "error") == "category":
                raise BadInputError(
                    f"{where}: missing is a category, but drop_incomplete leaves such rows out; "
                    "choose one of the two"
                )
            column.check_missing(where, self.missing_values)
            if self.max_ones_per_row is not None and not isinstance(column, Binary):
                raise BadInputError(
                    f"{where}: a row always has one of its {column.bits} values, so rows cannot be "
                    "cut; --max-ones-per-row is for tables whose columns are all binary"
                )
        if self.rules:
            _ = self.orders  # checks them

    @cached_property
    def domain(self) -> Domain:
        """Which bits make up which column."""
        sizes = [column.bits for column in self.columns]
        return Domain(np.array([0, *itertools.accumulate(sizes)], np.int64), self.max_ones_per_row)

    @cached_property
    def alike(self) -> tuple[int, ...]:
        """For each column, the number of the first one that differs from it in its name at most."""
        first: dict[object, int] = {}
        said = (
            (type(column), *(getattr(column, key.name) for key in fields(column)[1:]))
            for column in self.columns
        )
        return tuple(first.setdefault(each, number) for number, each in enumerate(said))

    @cached_property
    def scores(self) -> NDArray[np.float64] | None:
        """The numbers that bits stand for: float64, ``(bits,)``, NaN for none; None for no bit.

        A bucket stands for the mean of its values, one of dates for its place.
        """
        found = np.full(self.domain.bits, math.nan)
        for column, start in zip(self.columns, self.domain.offsets.tolist(), strict=False):
            if column.bits > 1:
                found[start : start + len(column.means)] = column.means
        return None if np.isnan(found).all() else found

    @cached_property
    def orders(self) -> Orders:
        """The orders of two columns among the rules."""
        return Orders.of(self.columns, self.rules, self._avoided)

    @cached_property
    def _avoided(self) -> tuple[list[float], ...]:
        """For each column, the numbers and days that stand for a missing value."""
        return tuple(column.avoided(self.missing_in(column)) for column in self.columns)

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """Where the numbers lie that rows carry, as binary digits behind the domain's bits."""
        return tuple(Grid.of(self.column(name)[1]) for name in self.summed)

    @property
    def record_bits(self) -> int:
        """Bits of a row: the domain's, and the digits of the numbers that it carries."""
        return self.domain.bits + sum(grid.digits for grid in self.grids)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def bit_labels(self) -> pl.Series:
        """Return what each bit means: ``column=label``, or the name of a binary column."""
        labels = [
            f"{column.name}={text}" if text else column.name
            for column in self.columns
            for text in column.labels
        ]
        return pl.Series("label", labels, dtype=pl.String)

    def literal(self, column: str, value: str | None) -> int:
        """Return the literal code, ``2 * bit + negated``, of ``column=value``.

        The value is a label or a value of the column; None only for binary columns, meaning 1.
        """
        number, found = self.column(column)
        if value is None and not isinstance(found, Binary):
            raise BadInputError(
                f"column {column!r} needs a value, such as {column}={found.labels[0]}"
            )
        bit, negated = (0, False) if value is None else found.find_bit(value)
        return 2 * (int(self.domain.offsets[number]) + bit) + negated

    def column(self, name: str) -> tuple[int, Column]:
        """Return the number of a column in the domain, and the column."""
        if (number := self._numbers.get(name)) is None:
            raise BadInputError(f"there is no column {name!r}; {suggest(name, self.column_names)}")
        return number, self.columns[number]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.column_names)}

    def missing_in(self, column: Column) -> tuple[str, ...]:
        """Return the texts that stand for a missing value in a column, besides null and NaN."""
        return (*self.missing_values, *column.missing_values)

    def select(self, choice: ColumnChoice, option: str = "--query-columns") -> NDArray[np.int64]:
        """Return the numbers of the columns that an option selects: int64, increasing."""
        return np.array(select_columns(choice, self.column_names, option), np.int64)

    def restrict(self, choice: ColumnChoice) -> TableSchema:
        """Return the schema of the selected columns only. For its rules, it knows the others."""
        chosen = select_columns(choice, self.column_names)
        columns = tuple(self.columns[number] for number in chosen)
        kept = {column.name for column in columns}
        others = tuple(name for name in self.column_names if name not in kept and self.rules)
        return replace(self, columns=columns, left_out=(*self.left_out, *others), summed=())

    def with_sums(self, choice: ColumnChoice) -> TableSchema:
        """Return the schema whose rows carry the numbers of the selected columns."""
        columns = select_columns(choice, self.column_names, "--means")
        chosen = replace(self, summed=tuple(self.columns[each].name for each in columns))
        _ = chosen.grids  # checks them
        return chosen

    def decode(
        self, records: NDArray[np.uint8], generator: np.random.Generator | None = None
    ) -> pl.DataFrame:
        """Return records in the user's columns; encoding these again gives the same bits.

        A bucket becomes a number that is drawn as ``within`` and the orders among the rules say,
        or any of its days, written in the column's format; merged categories become the first of
        them, a missing value null. Categories that are all whole numbers come back as numbers.

        Records are uint8 0/1, shape ``(records, domain.bits)``; values within buckets come from the
        public ``generator``, or are the same each time. `ValueError` if the shape is wrong or a
        record does not obey a one-hot group.
        """
        check_shape(records, self.domain.bits)
        codes = self._codes(records)
        drawing = np.random.default_rng(0) if generator is None else generator
        drawn = zip(self.columns, codes, self._avoided, strict=True)
        decoded = [each.decoded(own.astype(np.int32), drawing, off) for each, own, off in drawn]
        if self.rules:
            self._put_in_order(codes.astype(np.int32), decoded, drawing)
        pairs = zip(self.columns, decoded, strict=True)
        return pl.DataFrame([of.written(it) if isinstance(of, Dates) else it for of, it in pairs])

    def _put_in_order(
        self, codes: NDArray[np.int32], decoded: list[pl.Series], generator: np.random.Generator
    ) -> None:
        """Draw the columns of numbers and dates in orders so that these hold, in place."""
        known = self.orders.numbers
        drawn = [place for place in known if isinstance(self.columns[place], Buckets)]
        values = {place: each.low[codes[place]] for place, each in known.items()}
        values |= {place: _numbers_of(decoded[place]) for place in drawn}

        def draw(place: int, rows: NDArray[np.int64]) -> NDArray[np.float64]:
            if place not in drawn:
                return np.asarray(values[place][rows])
            column, avoided = self.columns[place], self._avoided[place]
            return _numbers_of(column.decoded(codes[place, rows], generator, avoided))

        self.orders.keep(codes, values, draw)
        for place in drawn:
            numbers = pl.Series(decoded[place].name, values[place], nan_to_null=True)
            physical = numbers.cast(decoded[place].to_physical().dtype)
            decoded[place] = physical.cast(decoded[place].dtype)

    def _codes(self, records: NDArray[np.uint8]) -> NDArray[np.generic]:
        """Return the local bit of each column, of a binary one its value: ``(columns, r)``."""
        sizes = self.domain.sizes
        some = max(1, (1 << 22) // self.domain.bits)
        codes = np.empty((len(sizes), len(records)), np.min_scalar_type(sizes.max(initial=1)))
        for first in range(0, len(records), some):
            # Bit by bit: a column's bits of all records lie far apart, and would be read slowly.
            bits = np.ascontiguousarray(records[first : first + some].T)
            for size in np.unique(sizes).tolist():
                numbers = np.flatnonzero(sizes == size)
                own = bits[self.domain.offsets[numbers, None] + np.arange(size)]
                found = sum(own[:, at] * np.int32(at or size == 1) for at in range(size))
                if size > 1 and len(wrong := np.argwhere(own.sum(axis=1, dtype=np.int32) != 1)):
                    at, row = wrong[0].tolist()
                    raise ValueError(
                        f"record {first + row} has {own[at, :, row].sum()} bits of column "
                        f"{self.columns[numbers[at]].name!r} set; exactly one is expected"
                    )
                codes[numbers, first : first + some] = found
        return codes

    def with_missing_texts(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return decoded records with a text for each missing value, as a text file has them.

        That is the column's only own one, else an empty cell or the first of all columns.
        """
        filled = []
        for column, values in zip(self.columns, table.get_columns(), strict=True):
            text = column.missing_values[0] if len(column.missing_values) == 1 else ""
            if text not in (known := self.missing_in(column)):
                text = next(iter(known), "")
            if values.null_count() and not known and getattr(column, "unparsable", "") != "missing":
                raise BadInputError(f"{column.where}: no text means missing; write a .parquet file")
            empty = not text or not values.null_count()
            filled.append(values if empty else values.cast(pl.String).fill_null(text))
        return pl.DataFrame(filled)

    def to_dict(self) -> dict[str, object]:
        """Return the schema as JSON-able values."""
        return {
            **header(self, "table"),
            "drop_incomplete": self.drop_incomplete,
            "missing_values": list(self.missing_values),
            "columns": [column.to_dict() for column in self.columns],
            **rules_entry(self.rules),
            **({"partial": True} if self.partial else {}),
        }


def _numbers_of(values: pl.Series) -> NDArray[np.float64]:
    """Return numbers, or the days of dates counted from 1970: float64, NaN where there is none."""
    return np.array(values.to_physical().cast(pl.Float64))
