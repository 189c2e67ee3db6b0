"""Columns proposed from counts of a public partition: exact counts, or noisy ones.

`shape_of` and `propose` see no cell. A schema learned under differential privacy gives them noisy
counts, a draft for a person to check exact ones, whose noise has standard deviation 0. A column
that is proposed from noisy counts takes every cell: numbers beyond the edges are clipped, unknown
texts are ``(other)``, and what cannot be read counts as missing. So no later error can tell of one.
"""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.drafts.column_names import names_codes, names_rows, order_of_text
from dualquery.data.drafts.edges import BUCKETS, as_written, fitting_edges
from dualquery.data.drafts.shapes import (
    CODE,
    DECADES,
    DECIMALS,
    FIRST_DATE,
    FIRST_DECADE,
    FIRST_MISSING,
    FIRST_YEAR,
    FORMATS,
    KINDS,
    MARKERS,
    MISSING,
    NO_SIZE,
    POWERS,
    STEPS,
    TEXT,
    WHOLE,
    Grid,
    Months,
    Numbers,
    TableCounts,
    Values,
)
from dualquery.data.encoding.cuts import CutTable
from dualquery.data.encoding.encode import can_become_bits
from dualquery.data.readers.source import ItemSource, TableSource
from dualquery.data.schema.column_choice import (
    MAX_ITEMS,
    ColumnChoice,
    exclude_columns,
    select_columns,
)
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import CLOCKS, Dates, fitting_period
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

_log = logging.getLogger(__name__)

Floats = NDArray[np.float64]

SURE = 4.5
"""Standard deviations above which a count is taken for more than noise: of a thousand columns
with 250 shapes each, less than one shape in a release is so by chance (P(Z > 4.5) = 3.4e-6)."""

_LIKELY = 3.0
"""The same for the ends of a range, where a mistake costs an empty bucket: of 700 columns one end
is wrong by chance (P(Z > 3) = 1.4e-3)."""

MOST_WHOLE = 32
"""Whole numbers that get a bucket each, if the grid tells them apart (`shapes.STEPS`)."""

MOST_LISTED = 64
"""Texts of a column that an exact draft lists, with (other); half as many again are all listed."""

FEW_ROWS = 5
"""Of too many texts an exact draft lists none that so few rows have: the table alone knows them."""

_LEAST_LISTED = 0.25
"""Part of the rows that listed texts must name, in an exact draft: (other) would hold the rest."""

_MANY_NUMBERS = 1000
"""A range of whole numbers that may be those of rows or persons, if the column is called so."""

_OPPOSITES = (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("off", "on"), ("0", "1"))


@dataclass(frozen=True)
class Shape:
    """What a column looks like, by the counts of its cells' shapes."""

    how: Grid | Values | None  # what its values are counted by; None if there is nothing to count
    missing: tuple[str, ...] = ()  # texts that stand for missing values
    decimals: int = 0  # of its numbers, at most; `DECIMALS` for that many or more
    gaps: bool = True  # whether cells are missing; noise cannot tell that none is
    slips: bool = True  # whether cells cannot be read
    absent: tuple[str, ...] = ()  # texts that stand for missing values in all columns

    def without(self, absent: tuple[str, ...]) -> Shape:
        """Return the same where a table's schema says what is missing in all columns."""
        own = tuple(text for text in self.missing if text not in absent)
        return replace(self, missing=own, absent=absent)


def shape_of(name: str, counts: NDArray[np.float64 | np.int64], sd: float) -> Shape:
    """Return what a column looks like, by its public name and the counts of `Shapes`.

    ``sd`` is the standard deviation of their noise; 0 for exact counts.
    """
    kinds, sizes, sure = counts[:KINDS], counts[KINDS:], SURE * sd
    kept = np.where(kinds > sure, kinds, 0)
    missing = tuple(
        text for text, count in zip(MISSING, kept[FIRST_MISSING:], strict=True) if count
    )
    dates, numbers = kept[FIRST_DATE:FIRST_MISSING], kept[WHOLE:FIRST_DATE]
    of_texts = kept[TEXT] + kept[CODE]
    shape = Shape(
        None, missing, gaps=sd > 0 or bool(missing), slips=sd > 0 or bool(of_texts or dates.sum())
    )
    if max(dates.max(), numbers.sum(), of_texts) == 0:
        return shape
    if dates.max() > numbers.sum() + of_texts:
        others = kinds[:FIRST_MISSING].sum() - dates.max()
        months = _months(int(np.argmax(dates)), sizes, sure)
        return replace(shape, how=months, slips=sd > 0 or bool(others))
    if of_texts >= numbers.sum() or names_codes(name):
        markers = tuple(text for text in missing if text in MARKERS)
        return replace(shape, how=Values(), missing=markers, gaps=sd > 0 or bool(markers))
    decimals = int(np.flatnonzero(numbers).max())
    ends = _sizes(sizes[: 2 * POWERS], sd)
    return replace(shape, how=Numbers(*ends, whole=decimals == 0), decimals=decimals)


def known_shape(column: Column) -> Shape | None:
    """Return what a column of a partial schema leaves to learn: its texts, or edges in its range.

    None for a column that is complete.
    """
    missing = column.missing_values
    if isinstance(column, Categorical) and not column.values:
        return Shape(Values(), missing)
    if isinstance(column, Numeric) and len(column.edges) == 2:
        decimals = 0 if column.integer else column.decimals or DECIMALS
        ends = (column.edges[0], column.edges[1])
        return Shape(Numbers(POWERS, POWERS, column.integer, ends), missing, decimals)
    return None


def _sizes(sizes: NDArray[np.float64 | np.int64], sd: float) -> tuple[int, int]:
    """Return the first and the last size that is surely there, or likely and next to these."""
    found = np.flatnonzero(sizes > SURE * sd)
    if not len(found):
        return POWERS, POWERS - 1  # none but 0
    first, last = int(found.min()), int(found.max())
    first -= first > 0 and sizes[first - 1] > _LIKELY * sd
    last += last + 1 < len(sizes) and sizes[last + 1] > _LIKELY * sd
    return first, last


def _months(place: int, sizes: NDArray[np.float64 | np.int64], sure: float) -> Months:
    decades = np.flatnonzero(sizes[FIRST_DECADE:NO_SIZE] > sure)
    if not len(decades):  # each has few, together they are many
        decades = np.argsort(-sizes[FIRST_DECADE:NO_SIZE])[:1]
    first, last = int(decades.min()), int(decades.max())
    return Months(
        FORMATS[place], FIRST_YEAR + 10 * first, 10 * (min(last, DECADES - 1) - first + 1)
    )


def propose(
    name: str, shape: Shape, counts: Sequence[str] | NDArray[np.float64 | np.int64], sd: float
) -> Column | str:
    """Return the column that counts of a grid's cells, or listed texts, suggest; or why none.

    ``sd`` is the standard deviation of their noise; 0 for exact counts.
    """
    how = shape.how
    if isinstance(how, Months):
        return _dates(name, how, np.asarray(counts, np.float64), shape, sd)
    if isinstance(how, Numbers):
        return _numeric(name, how, np.asarray(counts, np.float64), shape, sd)
    absent = {"", *shape.missing, *shape.absent}
    listed = sorted((text for text in counts if text not in absent), key=order_of_text)
    if not listed:
        return "no text is frequent enough to be listed"
    for pair in () if shape.gaps or shape.slips else _OPPOSITES:
        if sorted(text.lower() for text in listed) == [*pair]:
            zero, one = sorted(listed, key=str.lower)
            return Binary(name, zero=zero, one=one)
    return Categorical(
        name,
        tuple((text,) for text in listed),
        missing="category" if shape.gaps else "error",
        outside="other" if shape.slips or len(listed) + shape.gaps < 2 else "error",
        missing_values=tuple(text for text in shape.missing if text),
    )


def _numeric(name: str, grid: Numbers, counts: Floats, shape: Shape, sd: float) -> Column | str:
    """Return buckets of a range, where counts exceed their noise, that suit how numbers lie."""
    bounds = grid.bounds
    first, last = _range(counts, sd) if sd else _ends(counts)
    if grid.ends is not None:
        first, last = 0, len(counts) - 1
    low, high = float(bounds[first]), float(bounds[last + 1])
    certain = not shape.gaps and not shape.slips
    if certain and grid.whole and low >= 0 and high <= 2:
        return Binary(name)
    if grid.whole and high - low >= _MANY_NUMBERS and names_rows(name):
        return (
            "numbers of a wide range, which name rows by what it is called; --unit keeps the rows "
            "of one together"
        )
    if grid.whole and high - low <= MOST_WHOLE and max(-low, high - 1) < 2 * STEPS:
        if high - low == 1:  # one number: a column has two buckets
            high += 1
        edges = tuple(float(edge) for edge in range(int(low), int(high) + 1))
    else:
        cells = _projected(counts[first : last + 1])
        edges = _edges(bounds[first : last + 2], cells, shape.decimals)
    decimals = None if grid.whole or shape.decimals == DECIMALS else shape.decimals
    if decimals and max(map(abs, edges)) * 10**decimals >= 2**53:
        decimals = None
    return Numeric(
        name,
        edges,
        integer=grid.whole,
        missing="error" if certain else "category",
        outside="clip",
        unparsable="missing" if shape.slips else "error",
        decimals=decimals,
        missing_values=tuple(text for text in shape.missing if text),
    )


def _edges(bounds: Floats, counts: Floats, decimals: int) -> tuple[float, ...]:
    """Return edges of buckets as numbers with the given decimals, if these are few."""
    if decimals == DECIMALS:
        return fitting_edges(bounds, counts, BUCKETS, whole=False)
    units, begins = np.unique(np.ceil(bounds * 10.0**decimals), return_index=True)
    merged = np.add.reduceat(np.append(counts, 0.0), begins)[:-1]
    if len(units) < 3:  # a column has two buckets
        units, merged = np.append(units, units[-1] + 1), np.append(merged, 0.0)
    steps = fitting_edges(units, merged, BUCKETS, whole=True)
    return tuple(float(as_written(step) / 10**decimals) for step in steps)


def _ends(counts: Floats) -> tuple[int, int]:
    """Return the first and the last cell that is not empty."""
    found = np.flatnonzero(counts)
    return int(found[0]), int(found[-1])


def _range(noisy: Floats, sd: float) -> tuple[int, int]:
    """Return the first and the last cell behind which counts do not exceed their noise together.

    From each end: the first cell up to which the sum of counts exceeds its noise.
    """
    width = np.sqrt(np.arange(1, len(noisy) + 1)) * sd * _LIKELY
    ahead = np.flatnonzero(np.cumsum(noisy) > width)
    back = np.flatnonzero(np.cumsum(noisy[::-1]) > width)
    if not len(ahead) or not len(back):
        return 0, len(noisy) - 1
    first, last = int(ahead[0]), len(noisy) - 1 - int(back[0])
    # The cell that tips a sum is the last of those that made it: the range begins before it.
    first = _start(noisy, first, sd)
    last = len(noisy) - 1 - _start(noisy[::-1], len(noisy) - 1 - last, sd)
    return min(first, last), max(first, last)


def _start(noisy: Floats, tipped: int, sd: float) -> int:
    """Return where the sum that tips at a cell most likely began: where it rises the most."""
    before = np.cumsum(noisy[:tipped][::-1]) - _LIKELY * sd * np.sqrt(np.arange(1, tipped + 1))
    return tipped - 1 - int(np.argmax(before)) if before.max(initial=0.0) > 0 else tipped


def _projected(noisy: Floats) -> Floats:
    """Return counts >= 0 with the same total, nearest to noisy ones: a constant is subtracted."""
    total = max(float(noisy.sum()), 1.0)
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(noisy) + 1)
    kept = np.flatnonzero(ordered > excess)
    return np.maximum(noisy - excess[kept[-1]], 0.0) if len(kept) else np.full(len(noisy), 1.0)


def _dates(name: str, grid: Months, counts: Floats, shape: Shape, sd: float) -> Dates | str:
    """Return periods of about as many as numbers get buckets, or hours of the day."""
    column = Dates(
        name,
        "hour of day",
        format=grid.pattern,
        missing="category" if shape.gaps or shape.slips else "error",
        outside="clip",
        unparsable="missing" if shape.slips else "error",
        missing_values=tuple(text for text in shape.missing if text),
    )
    if grid.pattern in CLOCKS:
        return column
    first, last = _range(counts, sd) if sd else _ends(counts)
    low = (grid.first + first // 12, first % 12 + 1)
    high = (grid.first + last // 12, last % 12 + 1)
    days = math.ceil(30.4 * (last - first + 1))
    return replace(
        column,
        by=fitting_period(days) if days > 62 else "day" if first == last else "month",
        first=f"{low[0]}-{low[1]:02d}-01",
        last=f"{high[0]}-{high[1]:02d}-28",
    ).with_whole_periods()


@dataclass(frozen=True)
class DraftedColumn:
    """What is proposed for one column of a table; None to leave it out.

    The remark says what was taken from the data, for the user to check, or why it is left out.
    """

    name: str
    column: Column | None
    remark: str


@dataclass(frozen=True)
class Draft:
    """A schema to check, which is not declared, and every column that was looked at."""

    schema: TableSchema
    columns: tuple[DraftedColumn, ...]


def careful_draft(source: TableSource, columns: ColumnChoice | None = None) -> Draft:
    """Draft a schema from exact counts, for a person to check: in two passes over a table.

    Parameters
    ----------
    source
        The table.
    columns
        Which of its columns to take (see `select_columns`); None for all.

    Raises
    ------
    BadInputError
        If the table has no rows, or no column that a schema can keep.
    """
    names = chosen_columns(source, columns)
    whole = source.source if isinstance(source, CutTable) else source  # which rows stay comes later
    counted = TableCounts(whole, names)
    shaped = {
        name: shape_of(name, counts, 0.0)
        for name, counts in zip(names, counted.shapes, strict=True)
    }
    wanted = [(name, shape.how) for name, shape in shaped.items() if shape.how is not None]
    values = dict(zip([name for name, _ in wanted], counted.values(wanted), strict=True))
    drafted = tuple(
        _drafted(name, shaped[name], values.get(name), counted.types[name]) for name in names
    )
    kept = tuple(each.column for each in drafted if each.column is not None)
    if not kept:
        reasons = "; ".join(f"{each.name!r}: {each.remark}" for each in drafted)
        raise BadInputError(f"{source.label}: no column can be kept ({reasons})")
    return Draft(TableSchema(columns=kept, name=name_of(source), declared=False), drafted)


def _drafted(
    name: str, shape: Shape, counts: NDArray[np.int64] | pl.DataFrame | None, kind: pl.DataType
) -> DraftedColumn:
    """Propose a column from exact counts, with what was taken from the data."""
    if counts is None:
        possible = can_become_bits(pl.Series(dtype=kind))
        reason = "no value at all" if possible else f"type {kind}, which cannot become bits"
        return DraftedColumn(name, None, reason)
    remark = ""
    if isinstance(counts, pl.DataFrame):
        listed, remark, share = _frequent(counts, shape)
        if share < _LEAST_LISTED:
            return DraftedColumn(name, None, f"{remark}: group them, by their first signs perhaps")
        shape = replace(shape, slips=share < 1.0)
        found = propose(name, shape, listed, 0.0)
    else:
        found = propose(name, shape, counts, 0.0)
    if isinstance(found, str):
        return DraftedColumn(name, None, found)
    if kind == pl.Boolean:
        if isinstance(found, Binary):
            found = replace(found, zero="false", one="true")
        else:
            found = Categorical(name, (("false",), ("true",)), missing="category")
    if isinstance(found, Binary):
        remark = "its two values"
    elif isinstance(found, Numeric):
        remark = "its range and how its values lie"
        remark += "; texts count as missing" if shape.slips else ""
    elif isinstance(found, Dates):
        remark = f"its first and last {found.by}" if found.first else "hours of the day"
        remark += "" if found.format is None else f", read as {found.format}"
        remark += "; other texts count as missing" if shape.slips else ""
    if markers := [text for text in shape.missing if text]:
        remark += f"; {', '.join(map(repr, markers))} as missing"
    return DraftedColumn(name, found, remark)


def _frequent(counts: pl.DataFrame, shape: Shape) -> tuple[list[str], str, float]:
    """Return the texts to list of a column, a remark, and in which part of the rows they are."""
    texts = counts.filter(~pl.col("text").is_in(["", *shape.missing]))
    rows = max(int(texts["rows"].sum()), 1)
    if len(texts) + shape.gaps <= MOST_LISTED * 3 // 2:
        return texts["text"].to_list(), f"its {len(texts)} texts", 1.0
    kept = texts.filter(pl.col("rows") >= FEW_ROWS).sort("rows", "text", descending=[True, False])
    kept = kept.head(MOST_LISTED - 1 - shape.gaps)
    share = int(kept["rows"].sum()) / rows
    remark = f"the {len(kept)} most frequent of {len(texts):,} texts ({share:.0%} of the rows)"
    return kept["text"].to_list(), remark, share


def draft_table_schema(source: TableSource, columns: ColumnChoice | None = None) -> TableSchema:
    """Return the schema of `careful_draft`; a warning names the columns that are left out.

    Parameters and errors are those of `careful_draft`.
    """
    draft = careful_draft(source, columns)
    left_out = {each.name: each.remark for each in draft.columns if each.column is None}
    if left_out:
        _log.warning(
            "%s: left out: %s; --columns %s says so, too",
            source.label,
            "; ".join(f"column {name!r}: {remark}" for name, remark in left_out.items()),
            shlex.quote(exclude_columns(list(left_out), source.columns())),
        )
    return draft.schema


def draft_item_schema(source: ItemSource) -> ItemSchema:
    """Return the schema of a source of items: those its format fixes, else those that occur.

    Raises `BadInputError` if none does, or far too many do.
    """
    width = source.width()
    if width is not None:
        return ItemSchema.numbered(width, name_of(source))
    items = np.zeros(0, np.int64)
    for rows in source.item_rows():
        items = np.union1d(items, rows.items)
        if len(items) > MAX_ITEMS:
            raise BadInputError(
                f"{source.label}: more than {MAX_ITEMS:,} items; choose some with --columns"
            )
    if not len(items):
        raise BadInputError(f"{source.label}: no row has any item; declare them with --columns")
    return ItemSchema(items, name_of(source), declared=False)


def name_of(source: TableSource | ItemSource) -> str:
    """Return the name of the source without its folder, which a release must not show."""
    return Path(source.label.rpartition(":")[2]).name


def chosen_columns(source: TableSource, columns: ColumnChoice | None) -> list[str]:
    """Return the names of the columns to describe."""
    present = list(source.columns())
    if columns is None:
        return present
    return [present[place] for place in select_columns(columns, present)]
