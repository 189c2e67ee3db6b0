"""From the user's values to bits, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.readers.source import ItemRows
from dualquery.data.schema import dates
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.numbers import in_another_style, numbers_among, with_points
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError, suggest

# Codes of cells that set no bit; local bits are never negative.
MISSING = -1
UNPARSABLE = -2
OUTSIDE = -3
BELOW = -4
ABOVE = -5
CODES = 6
"""One more than the largest of these codes without its sign."""

Watch: TypeAlias = Callable[[Column, pl.Series, NDArray[np.int32], NDArray[np.int64]], None]
"""Is shown the values of a column, their `local_codes` and the places of those that are no bits,
block by block, in any thread."""


@dataclass(frozen=True, eq=False)
class BitRows:
    """Encoded rows as lists of the bits that are 1.

    Parameters
    ----------
    indptr
        int64, shape ``(rows + 1,)``, starting at 0.
    bits
        int32, the bits of row ``r`` at ``indptr[r] .. indptr[r + 1] - 1``.
    """

    indptr: NDArray[np.int64]
    bits: NDArray[np.int32]


def encode_frame(
    schema: TableSchema,
    frame: pl.DataFrame,
    label: str,
    first_row: int,
    stay: NDArray[np.bool_] | None = None,
    watch: Watch | None = None,
) -> BitRows:
    """Return the bits of a block of a table, and the digits of the numbers that rows carry.

    Parameters
    ----------
    schema
        What the columns are.
    frame
        Has the schema's columns, of any type that may hold their values.
    label, first_row
        For messages: the table, and the 1-based number of the block's first row.
    stay
        Which rows stay, bool; None for all of them.
    watch
        Is shown what the cells of all rows are; None for nobody.

    Raises
    ------
    BadInputError
        If a cell is not what the schema says: the first such row and its first such column.
    """
    codes = np.empty((frame.height, len(schema.columns)), np.int32)
    for number, column in enumerate(schema.columns):
        values = frame[column.name]
        found = local_codes(column, values, schema.missing_in(column), label)
        odd = np.flatnonzero(found < 0)
        if watch is not None:
            watch(column, values, found, odd)
        if len(odd):
            found[odd] = meanings(column)[-found[odd]]
        codes[:, number] = found
    rows = np.arange(first_row, first_row + frame.height)
    if stay is not None:
        codes, rows = codes[stay], rows[stay]
    if schema.drop_incomplete:
        complete = np.all(codes != MISSING, axis=1)
        codes, rows = codes[complete], rows[complete]
    for number, column in enumerate(schema.columns):
        if not isinstance(column, Binary) and column.missing_bit is not None:
            codes[codes[:, number] == MISSING, number] = column.missing_bit
    if np.any(codes < 0):
        row, number = (int(place) for place in np.argwhere(codes < 0)[0])
        column = schema.columns[number]
        value = frame[column.name][int(rows[row]) - first_row]
        fault = _fault(column, value, int(codes[row, number]))
        raise BadInputError(f"{label}: row {rows[row]}, column {column.name!r}: {fault}")
    binary = np.array([isinstance(column, Binary) for column in schema.columns])
    ones = ~binary | (codes == 1)
    codes[:, binary] = 0
    codes += schema.domain.offsets[:-1].astype(np.int32)
    if schema.grids:
        digits = [
            grid.encode(to_numbers(frame[grid.column])[rows - first_row]) for grid in schema.grids
        ]
        ones = np.hstack((ones, *digits))
        behind = np.arange(schema.domain.bits, schema.record_bits, dtype=np.int32)
        codes = np.hstack((codes, np.tile(behind, (len(codes), 1))))
    return BitRows(_pointers(ones.sum(axis=1)), codes[ones])


def encode_items(schema: ItemSchema, rows: ItemRows, label: str, first_row: int) -> BitRows:
    """Return the bits of a block of rows of items.

    Parameters
    ----------
    schema
        Which items there are.
    rows
        The items of each row.
    label, first_row
        For messages: the file, and the 1-based number of the block's first row.

    Raises
    ------
    BadInputError
        If an item is not in the schema, and the schema does not leave such items out.
    """
    first, last = int(schema.items[0]), int(schema.items[-1])
    if last - first + 1 == len(schema.items):
        # Consecutive ids need no search, which would take most of the time of a large table.
        bits = rows.items - first
        known = (rows.items >= first) & (rows.items <= last)
    else:
        bits = np.searchsorted(schema.items, rows.items)
        known = schema.items[np.minimum(bits, len(schema.items) - 1)] == rows.items
    if np.all(known):
        return BitRows(rows.indptr, bits.astype(np.int32))
    if schema.outside == "error":
        at = int(np.argmin(known))
        row = first_row + int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise BadInputError(
            f"{label}: row {row}: item {rows.items[at]} is not among the {len(schema.items):,} "
            f"items of the schema {schema.name!r}; declare it, or set outside to drop"
        )
    kept = np.concatenate(([0], np.cumsum(known)))
    return BitRows(kept[rows.indptr], bits[known].astype(np.int32))


def local_codes(
    column: Column, values: pl.Series, missing_values: Sequence[str], label: str
) -> NDArray[np.int32]:
    """Return the local bit of each value, or `MISSING`, `UNPARSABLE`, `OUTSIDE`, `BELOW`, `ABOVE`.

    For a binary column the result is the value of the bit, 0 or 1. The caller applies what
    the column says of values that set no bit; dates that are to be clipped have been.

    Raises
    ------
    BadInputError
        If the type of the values is one that no column can hold, such as lists.
    """
    if not can_become_bits(values):
        raise BadInputError(
            f"{label}: column {column.name!r} has type {values.dtype}, which cannot become bits; "
            "leave it out with --columns, or store numbers or texts"
        )
    missing = missing_mask(values, missing_values)
    if isinstance(column, Numeric):
        numbers = to_numbers(values)
        codes = _bucket_codes(column, numbers)
        if not values.dtype.is_numeric():  # texts were compared as they are written
            missing |= np.isin(numbers, numbers_among(missing_values))
    elif isinstance(column, Dates):
        codes = _date_codes(column, values)
        missing |= column.are_among(values, missing_values)
    else:
        codes = _named_codes(column.codes, values)
    codes[missing] = MISSING
    return codes


def meanings(column: Column) -> NDArray[np.int32]:
    """Return what a column makes of each code that is no bit: at place ``-code``, a bit or a code.

    Missing values stay `MISSING`: rows with them may be left out first.
    """
    meanings = -np.arange(CODES, dtype=np.int32)
    meanings[[-BELOW, -ABOVE]] = OUTSIDE
    if isinstance(column, Categorical) and column.other_bit is not None:
        meanings[-OUTSIDE] = column.other_bit
    if isinstance(column, Numeric) and column.outside == "clip":
        meanings[[-BELOW, -ABOVE]] = 0, column.buckets - 1
    if isinstance(column, Numeric | Dates) and column.unparsable == "missing":
        meanings[-UNPARSABLE] = MISSING
    return meanings


_KINDS = (
    pl.Boolean, pl.String, pl.Categorical, pl.Enum, pl.Null, pl.Date, pl.Datetime, pl.Time
)  # fmt: skip


def can_become_bits(values: pl.Series) -> bool:
    """Return whether the type of values is one that a column can hold."""
    return values.dtype.is_numeric() or values.dtype in _KINDS


def missing_mask(values: pl.Series, missing_values: Sequence[str]) -> NDArray[np.bool_]:
    """Return which values are null, NaN or one of the texts that stand for a missing value.

    Texts are compared as they are written: ``09`` may be another code than ``9``.
    """
    if values.dtype.is_numeric():
        numbers = to_numbers(values)
        return np.isnan(numbers) | np.isin(numbers, numbers_among(missing_values))
    null = values.is_null()
    if values.dtype in (pl.String, pl.Categorical, pl.Enum) and missing_values:
        null |= values.cast(pl.String).is_in(with_points(missing_values)).fill_null(False)
    return null.to_numpy()


def to_numbers(values: pl.Series) -> NDArray[np.float64]:
    """Return values as numbers, NaN where they are none. Blanks around a number are allowed."""
    if values.dtype.is_numeric() or values.dtype == pl.Boolean:
        numbers = values.cast(pl.Float64)
    else:
        numbers = values.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    return numbers.to_numpy()  # where nulls are NaN


def _bucket_codes(column: Numeric, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
    edges = np.array(column.edges)
    codes = np.searchsorted(edges, numbers, side="right").astype(np.int32) - 1
    codes[numbers == edges[-1]] = column.buckets - 1
    codes[numbers < edges[0]] = BELOW
    codes[numbers > edges[-1]] = ABOVE
    unparsable = ~np.isfinite(numbers)
    if column.integer:
        unparsable |= numbers != np.floor(numbers)
    codes[unparsable] = UNPARSABLE
    return codes


def _date_codes(column: Dates, values: pl.Series) -> NDArray[np.int32]:
    codes = column.bits_of(values)
    unreadable = codes == dates.UNREADABLE
    codes[codes == dates.BEYOND] = OUTSIDE
    codes[unreadable] = UNPARSABLE
    return codes


def _named_codes(codes: Mapping[str, int], values: pl.Series) -> NDArray[np.int32]:
    """Return the code of each value's text.

    Numbers are compared as numbers ("1" is 1.0), truth values in any case ("True" is true).
    """
    if values.dtype.is_numeric():
        return _numbered_codes(codes, to_numbers(values))
    if values.dtype == pl.Boolean:
        # Every library writes truth values in a case of its own.
        codes = {text.strip().lower(): code for text, code in codes.items()} | dict(codes)
    if not codes:
        return np.full(len(values), OUTSIDE, np.int32)
    found = values.cast(pl.String).replace_strict(
        list(codes), list(codes.values()), default=OUTSIDE, return_dtype=pl.Int32
    )
    return found.to_numpy().copy()


def _numbered_codes(codes: Mapping[str, int], numbers: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return for each number the code of the first text that denotes it; `OUTSIDE` for NaN."""
    by_number: dict[float, int] = {}
    for text, code in codes.items():
        try:
            by_number.setdefault(float(text), code)
        except ValueError:
            continue
    # NaN comes last, as if it were the largest number; it equals nothing.
    known = np.array([*sorted(number for number in by_number if not np.isnan(number)), np.nan])
    place = np.searchsorted(known[:-1], numbers)
    found = np.array([by_number.get(number, OUTSIDE) for number in known.tolist()], np.int32)
    return np.where(known[place] == numbers, found[place], np.int32(OUTSIDE))


def _pointers(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


_LONGEST = 40


def shown(cell: object) -> str:
    """Return a cell as messages quote it, cut short."""
    if isinstance(cell, str) and len(cell) > _LONGEST:
        cell = f"{cell[:_LONGEST]}..."
    return repr(cell)


def _fault(column: Column, value: object, code: int) -> str:
    """Return what is wrong with a cell and what to do."""
    if code == MISSING:
        fix = (
            "declare the column as categorical with missing set to category"
            if isinstance(column, Binary)
            else "set missing to category in the schema, or drop_incomplete to true"
        )
        return f"the value is missing ({shown(value)}); {fix}"
    if code == UNPARSABLE:
        fix = "correct it, or set unparsable to missing in the schema"
        if isinstance(column, Dates):
            form = "ISO 8601, such as 2014-01-31" if column.format is None else column.format
            return f"{shown(value)} is not a date written as {form}; {fix}, or give its format"
        whole = isinstance(column, Numeric) and column.integer
        if in_another_style(str(value), whole=whole):
            fix = f"if commas stand before decimals, give --csv decimal=, ; else {fix}"
        return f"{shown(value)} is not {'a whole number' if whole else 'a number'}; {fix}"
    if isinstance(column, Numeric):
        return (
            f"{shown(value)} is outside the schema's range, {column.edges[0]:g} to "
            f"{column.edges[-1]:g}; correct it, widen the edges, or set outside to clip"
        )
    if isinstance(column, Dates):
        return (
            f"{shown(value)} is outside the schema's range, {column.first} to {column.last}; "
            "correct it, widen the range, or set outside to clip"
        )
    known = suggest(str(value), list(column.codes))
    fix = "" if isinstance(column, Binary) else ", or set outside to other"
    return f"{shown(value)} is not in the schema ({known}); correct it, or declare it{fix}"
