"""From the user's values to bits: many rows of all columns that are alike at a time.

A cell's bits depend on its column in the public schema and its own value, on no other cell.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.encoding.cuts import Piece
from dualquery.data.readers.source import DenseItems, ItemRows
from dualquery.data.schema.columns import Binary, Categorical, Column
from dualquery.data.schema.dates import ABOVE, BELOW, UNPARSABLE, Dates
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.numbers import exact_number, numbers_among, with_points
from dualquery.data.schema.numeric import Numeric
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError, suggest

# Codes of cells that set no bit, besides those of `dates`; local bits are never negative.
MISSING, OUTSIDE = -1, -3
CODES = 6  # one more than the largest of these codes without its sign

_Tables: TypeAlias = dict[tuple[int, int], NDArray[Any]]
Misfit: TypeAlias = tuple[Column, pl.Series, NDArray[np.int64], NDArray[Any]]
Watch: TypeAlias = Callable[[int, list[Misfit]], None]
"""Is shown the rows of each block, in any thread, and of each column that is not binary, where some
do not fit its values, the places of these and their `local_codes`."""


@dataclass(frozen=True, eq=False)
class BitRows:
    """Rows as lists of the bits that are 1: row ``r`` has ``bits[indptr[r]:indptr[r + 1]]``."""

    indptr: NDArray[np.int64]
    bits: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Encoded rows, column by column.

    ``flags`` are pairs of bits, ``(k,)``, and their values 0 or 1 in each row, ``(k, rows)``;
    ``codes`` are pairs of the first bits of one-hot columns and the local bits that are 1.
    """

    rows: int
    flags: tuple[tuple[NDArray[np.int32], NDArray[np.uint8]], ...]
    codes: tuple[tuple[NDArray[np.int32], NDArray[np.int32]], ...] = ()

    def __len__(self) -> int:
        return self.rows

    def listed(self) -> BitRows:
        """Return the rows as lists of the bits that are 1, in no order."""
        places, bits = [], []
        for numbers, values in self.flags:
            row, at = np.nonzero(values.T)
            places.append(row)
            bits.append(numbers[at])
        for starts, codes in self.codes:
            places.append(np.tile(np.arange(self.rows), len(starts)))
            bits.append((starts[:, None] + codes).ravel())
        rows = np.concatenate(places)
        order = np.argsort(rows, kind="stable")
        pointers = np.append(0, np.bincount(rows, minlength=self.rows).cumsum())
        return BitRows(pointers, np.concatenate(bits)[order].astype(np.int32))


Encoded: TypeAlias = BitRows | CodedRows


def encode_frame(schema: TableSchema, piece: Piece, watch: Watch | None = None) -> CodedRows:
    """Return the bits of a block of a table, and the digits of the numbers that rows carry.

    Rows that do not stay are left out; ``watch`` is shown the cells of all.
    """
    frame = piece.frame
    parts = _encode_alike(schema, frame, piece.label, watch)
    odd = [part for part in parts if part.odd]
    keep = _without_missing(odd, frame.height) if schema.drop_incomplete else None
    if piece.stay is not None:
        keep = piece.stay if keep is None else keep & piece.stay
    faults = []
    for part in odd:
        wrong = part.codes < 0 if keep is None else (part.codes < 0) & keep
        if wrong.any():
            row, at = np.argwhere(wrong.T)[0].tolist()
            faults.append((row, part.numbers[at], int(part.codes[at, row])))
    if faults:
        row, number, code = min(faults)
        column = schema.columns[number]
        where = f"{piece.label}: row {piece.first_row + row}, column {column.name!r}"
        raise BadInputError(f"{where}: {_fault(column, frame.get_column(column.name)[row], code)}")
    offsets = schema.domain.offsets[:-1].astype(np.int32)
    flags, codes = [], []
    for part in parts:
        bits = offsets[part.numbers]
        found = part.codes if keep is None else part.codes[:, keep]
        if isinstance(schema.columns[part.numbers[0]], Binary):
            flags.append((bits, found.astype(np.uint8, copy=False)))
        elif found.dtype.itemsize == 1 and (last := found.max(initial=0)) < _FEW:
            flags += [(bits + code, (found == code).view(np.uint8)) for code in range(last + 1)]
        else:
            codes.append((bits, found.astype(np.int32, copy=False)))
    first = schema.domain.bits
    for grid in schema.grids:
        numbers = to_numbers(frame.get_column(grid.column))
        digits = grid.encode(numbers if keep is None else numbers[keep])
        behind = np.arange(first, first := first + grid.digits, dtype=np.int32)
        flags.append((behind, np.ascontiguousarray(digits.T).view(np.uint8)))
    return CodedRows(frame.height if keep is None else int(keep.sum()), tuple(flags), tuple(codes))


def complete_rows(schema: TableSchema, frame: pl.DataFrame, label: str) -> NDArray[np.bool_]:
    """Return which rows of a block have a value in every column of the schema."""
    return _without_missing(_encode_alike(schema, frame, label, None), frame.height)


@dataclass(eq=False)
class _AlikeColumns:
    """Columns that differ in nothing but their names: their numbers, and their codes by row."""

    numbers: list[int]
    codes: NDArray[Any]
    odd: bool


def _without_missing(odd: Sequence[_AlikeColumns], rows: int) -> NDArray[np.bool_]:
    complete = np.ones(rows, np.bool_)
    for part in odd:
        complete &= ~np.any(part.codes == MISSING, axis=0)
    return complete


def _encode_alike(
    schema: TableSchema, frame: pl.DataFrame, label: str, watch: Watch | None
) -> list[_AlikeColumns]:
    """Return what columns make of their cells, those that are alike together."""
    alike: dict[tuple[int, object], list[int]] = {}
    # Polars would take a name such as ^a.*$ for a pattern.
    cells = {name: frame.get_column(name).alias("") for name in frame.columns}
    for number, (key, name) in enumerate(zip(schema.alike, schema.column_names, strict=True)):
        alike.setdefault((key, cells[name].dtype), []).append(number)
    together = max(1, _TOGETHER // max(frame.height, 1))
    parts = []
    seen: list[Misfit] = []
    for numbers in alike.values():
        column = schema.columns[numbers[0]]
        missing, tables = schema.missing_in(column), _Tables()
        for start in range(0, len(numbers), together):
            some = numbers[start : start + together]
            series = [cells[schema.columns[number].name] for number in some]
            codes, odd = _codes_of_cells(column, pl.concat(series), missing, label, tables)
            part = _AlikeColumns(some, codes.reshape(len(some), -1), odd)
            if part.odd:
                if watch is not None and not isinstance(column, Binary):
                    for number, values, own in zip(some, series, part.codes, strict=True):
                        places = np.flatnonzero(own < 0)
                        seen.append((schema.columns[number], values, places, own[places]))
                part.codes = np.take(meanings(column).astype(codes.dtype), part.codes)
            parts.append(part)
    if watch is not None:
        watch(frame.height, seen)
    return parts


def _codes_of_cells(
    column: Column, values: pl.Series, missing: Sequence[str], label: str, tables: _Tables
) -> tuple[NDArray[Any], bool]:
    """Return `local_codes`; whether any is odd. What few values mean is kept in ``tables``."""
    if (found := _as_small_integers(values)) is None:
        codes = local_codes(column, values, missing, label)
        return codes, bool(np.any(codes < 0))
    cells, low, domain = found
    if (table := tables.get(key := (low, len(domain)))) is None:
        table = np.append(local_codes(column, domain, missing, label), MISSING)  # of null
        table = table.astype(np.int8 if column.bits + CODES < 1 << 7 else np.int32)
        tables[key] = table
    first = int(table[0])
    odd = values.null_count() > 0 or bool(np.any(table[:-1] < 0))
    plain = cells.dtype == np.uint8 and first + len(domain) <= 1 << 8
    if plain and not odd and np.array_equal(table[:-1], np.arange(first, first + len(domain))):
        return cells + np.uint8(first), False
    return np.take(table, cells), odd


def _as_small_integers(values: pl.Series) -> tuple[NDArray[Any], int, pl.Series] | None:
    """Return cells' places among few values, null behind them, the least, and all; or None."""
    kind = values.dtype
    most = min(max(len(values) // 4, 16), (1 << 16) - 1)
    ends = (values.min(), values.max()) if kind.is_integer() else (0, -1)
    low, high = (cast(int, end or 0) for end in ends)
    if kind == pl.Boolean:
        domain = pl.Series([False, True])
    elif isinstance(kind, pl.Enum) and 0 < len(kind.categories) < most:
        values, domain = values.to_physical(), kind.categories
    elif -(2**53) < low <= high < low + most < 2**53:
        domain = pl.Series(np.arange(low, high + 1), dtype=kind)
    else:
        return None
    # Modulo 2^8 or 2^16, so that no type of whole numbers overflows.
    small, last = (pl.UInt8, 0xFF) if len(domain) <= 0xFF else (pl.UInt16, 0xFFFF)
    cells = values.cast(small, wrap_numerical=True)
    filled = cells.fill_null((low + len(domain)) & last) if cells.null_count() else cells
    numbers = filled.to_numpy()
    return numbers - numbers.dtype.type(low & last), low, domain


def encode_items(
    schema: ItemSchema, rows: ItemRows | DenseItems, label: str, first_row: int
) -> Encoded:
    """Return the bits of a block of rows of items."""
    if isinstance(rows, DenseItems) and (coded := _dense(schema, rows.cells)):
        return coded
    if rows.indptr[0] or rows.indptr[-1] != len(rows.items) or (np.diff(rows.indptr) < 0).any():
        raise BadInputError(f"{label}: the pointers of a block of rows do not fit its items")
    first, last = int(schema.items[0]), int(schema.items[-1])
    if last - first + 1 == len(schema.items):
        # Consecutive ids need no search.
        bits, known = rows.items - first, (rows.items >= first) & (rows.items <= last)
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


def _dense(schema: ItemSchema, cells: NDArray[np.uint8]) -> CodedRows | None:
    """Return rows of 0s and 1s, one item a column; None if one has an item that is an error."""
    width = cells.shape[1]
    items = schema.items[schema.items < width]
    if len(items) < width:
        if schema.outside == "error" and cells[:, np.setdiff1d(np.arange(width), items)].any():
            return None
        cells = cells[:, items]
    return CodedRows(len(cells), ((np.arange(len(items), dtype=np.int32), cells.T),))


def local_codes(
    column: Column, values: pl.Series, missing_values: Sequence[str], label: str
) -> NDArray[np.int32]:
    """Return the local bit of each value, or `MISSING`, `UNPARSABLE`, `OUTSIDE`, `BELOW`, `ABOVE`.

    Of a binary column it is the bit's value. What becomes of other codes is in `meanings`.
    """
    if not can_become_bits(values):
        raise BadInputError(
            f"{label}: column {column.name!r} has type {values.dtype}, which cannot become bits; "
            "leave it out with --columns, or store numbers or texts"
        )
    if values.dtype in (pl.Categorical, pl.Enum):  # which mean what their texts do
        values = values.cast(pl.String)
    missing = missing_mask(values, missing_values)
    if isinstance(column, Numeric):
        numbers = to_numbers(values)
        codes = _bucket_codes(column, numbers)
        if not values.dtype.is_numeric():  # texts were compared as they are written
            missing |= np.isin(numbers, numbers_among(missing_values))
    elif isinstance(column, Dates):
        codes = column.bits_of(values)
        missing |= column.are_among(values, missing_values)
    else:
        codes = _named_codes(column.codes, values)
        if isinstance(column, Binary) and values.dtype == pl.String and (codes == OUTSIDE).any():
            of_numbers = _named_codes(column.codes, pl.Series(to_numbers(values)))  # of 1.0 as of 1
            codes = np.where(codes == OUTSIDE, of_numbers, codes)
    codes[missing] = MISSING
    return codes


def meanings(column: Column) -> NDArray[np.int32]:
    """Return what a column makes of each code, at its place: a bit, or a code that is none.

    Where rows with missing values are left out, no column has a bit for them.
    """
    meanings = np.arange(column.bits + 1 + CODES, dtype=np.int32)
    meanings[-CODES:] = np.arange(-CODES, 0)
    meanings[[BELOW, ABOVE]] = OUTSIDE
    meanings[MISSING] = MISSING if column.missing_bit is None else column.missing_bit
    if isinstance(column, Categorical) and column.other_bit is not None:
        meanings[OUTSIDE] = column.other_bit
    if isinstance(column, Numeric | Dates) and column.outside == "clip":
        meanings[[BELOW, ABOVE]] = 0, column.buckets - 1
    if isinstance(column, Numeric | Dates) and column.unparsable == "missing":
        meanings[UNPARSABLE] = meanings[MISSING]
    return meanings


_KINDS = (pl.Boolean, pl.String, pl.Categorical, pl.Enum, pl.Null, pl.Date, pl.Datetime, pl.Time)

_TOGETHER = 1 << 18  # cells of columns that are encoded together: they fit the processor's cache
_FEW = 3  # local bits that are set one after the other


def can_become_bits(values: pl.Series) -> bool:
    """Return whether the type of values is one that a column can hold."""
    return values.dtype.is_numeric() or values.dtype in _KINDS


def missing_mask(values: pl.Series, missing_values: Sequence[str]) -> NDArray[np.bool_]:
    """Return which values are null, NaN or one of the texts that stand for a missing value.

    Texts are compared as they are written: ``09`` may be another code than ``9``.
    """
    if (values := values.alias("")).dtype.is_numeric():
        cells = _compared(values)
        listed = _denoted(with_points(missing_values), cells.dtype).drop_nulls()
        return cells.is_in(listed.implode()).fill_null(True).to_numpy()
    null = values.is_null()
    if values.dtype in (pl.String, pl.Categorical, pl.Enum) and missing_values:
        null |= values.cast(pl.String).is_in(with_points(missing_values)).fill_null(False)
    return null.to_numpy()


def _compared(values: pl.Series) -> pl.Series:
    """Return numbers as they are compared with texts: whole ones exactly; null for NaN."""
    if values.dtype.is_integer():
        return values
    if isinstance(kind := values.dtype, pl.Decimal) and not kind.scale:
        return values.cast(pl.Int128)
    return pl.Series(to_numbers(values) + 0.0).fill_nan(None)  # -0.0 is 0.0


def _denoted(texts: Iterable[str], kind: pl.DataType) -> pl.Series:
    """Return the number of a type that each text denotes, null where it denotes none."""
    numbers = [str(exact_number(text)) for text in texts]
    return pl.Series(numbers, dtype=pl.String).cast(kind, strict=False)


def to_numbers(values: pl.Series) -> NDArray[np.float64]:
    """Return values as numbers, NaN where they are none. Blanks around a number are allowed.

    A fraction of fewer than 64 bits stands for its shortest decimals: 0.7, not 0.699999988.
    """
    if (values := values.alias("")).dtype.is_float() and values.dtype != pl.Float64:
        exact = values.cast(pl.Float64)
        narrow = values.dtype != pl.Float32
        texts = pl.Series(values.to_numpy().astype(str)) if narrow else values.cast(pl.String)
        whole = (exact.round() == exact) & (exact.abs() < 2.0**53)
        numbers = exact.zip_with(whole, texts.cast(pl.Float64))
    elif values.dtype.is_numeric() or values.dtype == pl.Boolean:
        numbers = values.cast(pl.Float64)
    else:
        numbers = values.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    return numbers.to_numpy()  # where nulls are NaN


def _bucket_codes(column: Numeric, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
    edges = np.array(column.edges)
    codes = np.searchsorted(edges, numbers, side="right").astype(np.int32) - 1
    last = column.bounds[-1][1]
    codes[numbers == last] = column.buckets - 1
    codes[numbers < edges[0]] = BELOW
    codes[numbers > last] = ABOVE
    unparsable = ~np.isfinite(numbers)
    if column.integer:
        unparsable |= numbers != np.floor(numbers)
    codes[unparsable] = UNPARSABLE
    return codes


def _named_codes(codes: Mapping[str, int], values: pl.Series) -> NDArray[np.int32]:
    """Return the code of each value's text; of a number that of the first text that denotes it."""
    commas = {each: codes[text] for text in codes if "," in text for each in with_points([text])}
    known: dict[Any, int] = commas | {**codes}
    if values.dtype.is_numeric():
        values, known = _compared(values), {}
        for number, code in zip(_denoted(codes, values.dtype), codes.values(), strict=True):
            if number is not None:
                known.setdefault(number, code)
    elif values.dtype == pl.Boolean:
        # Every library writes truth values in a case of its own, or as 0 and 1.
        known = {text.strip().lower(): code for text, code in codes.items()} | known
        for text, digit in (("false", "0"), ("true", "1")):
            if digit in known:
                known.setdefault(text, known[digit])
    seen = values if values.dtype.is_numeric() else values.cast(pl.String)
    keys = pl.Series([*known], dtype=seen.dtype)
    found = seen.replace_strict(keys, [*known.values()], default=OUTSIDE, return_dtype=pl.Int32)
    return found.to_numpy().copy()


def shown(cell: object) -> str:
    """Return a cell as messages quote it, cut short."""
    return repr(f"{cell[:40]}..." if isinstance(cell, str) and len(cell) > 40 else cell)


def range_of(column: Column) -> tuple[str, str]:
    """Return the first and the last number or date of a column in buckets, as messages show it."""
    if isinstance(column, Numeric):
        return f"{column.edges[0]:g}", f"{column.bounds[-1][1]:g}"
    return getattr(column, "first", ""), getattr(column, "last", "")


def _fault(column: Column, value: object, code: int) -> str:
    """Return what is wrong with a cell and what to do."""
    if code == MISSING:
        fix = "set missing to category in the schema, or drop_incomplete to true"
        if isinstance(column, Binary):
            fix = "declare the column as categorical with missing set to category"
        return f"the value is missing ({shown(value)}); {fix}"
    if code == UNPARSABLE:
        fix = "correct it, or set unparsable to missing in the schema"
        if isinstance(column, Dates):
            form = "ISO 8601, such as 2014-01-31" if column.format is None else column.format
            return f"{shown(value)} is not a date written as {form}; {fix}, or give its format"
        whole = isinstance(column, Numeric) and column.integer
        if "," in str(value):
            fix = f"if commas stand before decimals, give --csv decimal=, ; else {fix}"
        return f"{shown(value)} is not {'a whole number' if whole else 'a number'}; {fix}"
    if isinstance(column, Numeric | Dates):
        return (
            f"{shown(value)} is outside the schema's range, {' to '.join(range_of(column))}; "
            "correct it, widen the range, or set outside to clip"
        )
    known = suggest(str(value), list(column.codes))
    fix = "" if isinstance(column, Binary) else ", or set outside to other"
    return f"{shown(value)} is not in the schema ({known}); correct it, or declare it{fix}"
