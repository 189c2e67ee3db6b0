"""Columns proposed from counts of a public partition: exact counts, or noisy ones.

`shape_of` and `propose` see no cell. A schema learned under differential privacy gives them noisy
counts, a draft for a person to check exact ones, whose noise has standard deviation 0. A column
that is proposed from noisy counts takes every cell, so that no later error can depend on one.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.drafts import shapes
from dualquery.data.drafts.edges import BUCKETS, FEW_ROWS, Floats, fitting_edges
from dualquery.data.drafts.shapes import DECIMALS, Grid, Months, Numbers, TableCounts, Values
from dualquery.data.encoding.cuts import CutTable
from dualquery.data.encoding.encode import can_become_bits
from dualquery.data.readers.source import ItemSource, TableSource
from dualquery.data.schema.column_choice import MAX_ITEMS, ColumnChoice, select_columns
from dualquery.data.schema.columns import MISSING_LABEL, OTHER_LABEL, Binary, Categorical, Column
from dualquery.data.schema.dates import CLOCKS, Dates, Period
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.numbers import numbers_among
from dualquery.data.schema.numeric import Numeric
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

_log = logging.getLogger(__name__)

Counts = NDArray[np.float64 | np.int64]

SURE, LIKELY = 4.5, 3.0
"""Standard deviations above which a count is taken for more than noise: of a thousand columns
with 250 shapes each, less than one shape in a release is so by chance (P(Z > 4.5) = 3.4e-6).
`LIKELY` is enough at the ends of a range, where a mistake costs an empty bucket."""

_MOST_WHOLE = 32  # whole numbers that get a bucket each, if the grid tells them apart
_MANY_NUMBERS = 1000  # a range that may be the numbers of rows, if the column is called so
_SLIPS = 0.05  # of the numbers of a column this part may have a leading zero and be no code

# Of the texts of an exact draft:
_MOST_LISTED = 64  # with (other); half as many again are all listed
_LEAST_LISTED = 0.25  # part of the rows that they must name: (other) would hold the rest

# What columns are called as if they named rows, persons or orders; and codes, not amounts.
_ROWS = re.compile(
    r"(?i)(?:.*[_ .-])?(?:id|ids|key|uuid|guid|ssn|phone|telephone|mobile|fax|iban|account|passport"
    r"|mrn|serial|household|person|patient|customer|member|user|student|subject|respondent|employee"
    r"|visitor|session|order|basket|invoice|receipt|transaction)"
    r"(?:[_ .-]?(?:id|nr|no|number))?|.*(?:[_ .-]nr|[_ .-]?number|nummer)\.?|.*[a-z](?:Id|Nr)|.*ID"
)
_CODES = re.compile(
    r"(?i)(?:.*[_ .-])?(?:codes?|zip|postcode|postal|plz|fips|puma|(?:naics|soc|ind|occ)p?|sic|isco"
    r"|nace|nuts|icd\d*|cpt|atc|iso)(?:[_ .-]?code)?|.*[a-z]Code"
)


@dataclass(frozen=True)
class Shape:
    """What a column looks like, by the counts of its cells' shapes."""

    how: Grid | Values | None  # what its values are counted by; None if there is nothing to count
    missing: tuple[str, ...] = ()  # texts that stand for missing values
    decimals: int = 0  # of its numbers, at most; `DECIMALS` for that many or more
    gaps: bool = True  # whether cells are missing; noise cannot tell that none is
    slips: bool = True  # whether cells cannot be read
    beyond: bool = False  # whether most lie where also counts what no grid tells apart


def shape_of(name: str, counts: Counts, sd: float) -> Shape:
    """Return what a column looks like, by its public name and the counts of its `Shapes`.

    ``sd`` is the standard deviation of their noise; 0 for exact counts.
    """
    kinds, sizes = np.split(counts, [shapes.KINDS])
    sure = SURE * sd
    kept = np.where(kinds > sure, kinds, 0)
    firsts = shapes.WHOLE, shapes.FIRST_DATE, shapes.FIRST_MISSING
    texts, numbers, dates, absent = np.split(kept, firsts)
    for at in shapes.EITHER:  # counts for the format that reads more; their sum may exceed noise
        shared, *own = kinds[shapes.FIRST_DATE + at :][:3]
        best = int(own[1] > max(own[0], LIKELY * sd))
        both = shared + own[best]
        dates[at], dates[at + 1 + best] = 0, both * (max(shared, own[best], both / 2**0.5) > sure)
    missing = tuple(np.array(shapes.MISSING)[absent > 0].tolist())
    of_texts = texts.sum()
    digits = dates[-1] * (numbers.sum() > dates.max())  # among numbers, these are some
    others = kept[: shapes.FIRST_MISSING].sum() - max(dates.max(), numbers.sum() + digits)
    shape = Shape(None, missing, gaps=sd > 0 or bool(missing), slips=sd > 0 or bool(others))
    if max(dates.max(), numbers.sum(), of_texts) == 0:
        return shape
    if dates.max() > numbers.sum() + of_texts:
        of_decades = sizes[shapes.FIRST_DECADE : shapes.NO_SIZE]
        first, last = _sizes(of_decades, sd)
        if last < first:
            first = last = int(of_decades.argmax())
        held = of_decades[first : last + 1].sum()
        shape = replace(shape, beyond=_beyond(of_decades, [0, -1], sure) or 2 * held < dates.max())
        year, years = shapes.FIRST_YEAR + 10 * first, 10 * (last + 1 - first)
        return replace(shape, how=Months(shapes.FORMATS[dates.argmax()], year, years))
    codes = texts[shapes.CODE] > _SLIPS * numbers.sum() or _CODES.fullmatch(name)
    if codes or of_texts >= numbers.sum():
        markers = tuple(text for text in missing if text in shapes.MARKERS)
        return replace(shape, how=Values(), missing=markers, gaps=sd > 0 or bool(markers))
    decimals = int(np.flatnonzero(numbers).max())
    how = Numbers(*_sizes(sizes[: shapes.ZERO], sd), whole=decimals == 0)
    held = sizes[how.low : how.high + 1].sum() + sizes[shapes.ZERO]
    beyond = _beyond(sizes[: shapes.ZERO + 1], [0, shapes.POWERS - 1, shapes.POWERS, -2], sure)
    # Of a range that is lost in noise: few numbers lie in it, or none but 0, and some are parts.
    beyond = beyond or 2 * held < numbers.sum() or (decimals > 0 and how.low > how.high)
    return replace(shape, how=how, decimals=decimals, beyond=beyond)


def known_shape(column: Column) -> Shape | None:
    """Return what a column leaves to learn: its texts, or edges in its range; None if nothing."""
    missing = column.missing_values
    if isinstance(column, Categorical) and not column.values:
        return Shape(Values(), missing)
    if isinstance(column, Numeric) and len(column.edges) == 2:
        decimals = 0 if column.integer else column.decimals or DECIMALS
        ends = (column.edges[0], column.edges[1])
        if column.integer and -(-ends[0] // 1) >= ends[1] // 1:
            raise BadInputError(f"{column.where}: its range has no two whole numbers; give edges")
        if any(rule not in ("uniform", "sloped") for rule in column.rules):
            raise BadInputError(f"{column.where}: within is of buckets, which are to be learned")
        return Shape(Numbers(0, 0, column.integer, ends), missing, decimals)
    return None


def _beyond(sizes: Counts, outer: list[int], sure: float) -> bool:
    """Return whether most counts that are more than noise are of outer sizes."""
    kept = np.where(sizes > sure, sizes, 0)
    return bool(2 * kept[outer].sum() > kept.sum())


def _sizes(sizes: Counts, sd: float) -> tuple[int, int]:
    """Return the first and last size or decade that is surely there, or likely beside these."""
    if not len(found := np.flatnonzero(sizes > SURE * sd)):
        return shapes.POWERS, shapes.POWERS - 1  # none but 0
    first, last = int(found.min()), int(found.max())
    first -= first > 0 and sizes[first - 1] > LIKELY * sd
    last += last + 1 < len(sizes) and sizes[last + 1] > LIKELY * sd
    return first, last


def propose(
    name: str, shape: Shape, counts: Sequence[str] | Counts, sd: float, absent: Sequence[str] = ()
) -> Column | str:
    """Return the column that counts of a grid's cells, or listed texts, suggest; or why none.

    ``sd`` is the standard deviation of their noise; 0 for exact counts. The texts that are
    ``absent`` stand for missing values in all columns.
    """
    # What was learned is paid for: a column that no schema can have stays out, and is no error.
    try:
        if not isinstance(found := _proposed(name, shape, counts, sd, absent), str):
            found.check_missing("its draft", absent)
            if shape.beyond:
                raise BadInputError("its range is beyond drafts or lost in noise: say it by hand")
    except BadInputError as error:
        if sd:
            _log.warning("column %r is left out: %s", name, error)
        return str(error)
    return found


def _proposed(
    name: str, shape: Shape, counts: Sequence[str] | Counts, sd: float, absent: Sequence[str]
) -> Column | str:
    grid = shape.how
    texts = {*counts} if isinstance(shape.how, Values) else set[str]()
    # A text that is called like the bit of missing values, or of others, has that bit.
    known = dict.fromkeys((*shape.missing, *texts & {MISSING_LABEL}))
    own = tuple(text for text in known if text and text not in absent)
    gaps, slips = shape.gaps or MISSING_LABEL in texts, shape.slips or OTHER_LABEL in texts
    if isinstance(grid, Values):
        if not (listed := sorted(texts - {"", OTHER_LABEL, *own, *absent}, key=_order)):
            return "no text is frequent enough to be listed"
        return Categorical(
            name,
            tuple((text,) for text in listed),
            missing="category" if gaps else "error",
            outside="other" if slips or len(listed) + gaps < 2 else "error",
            missing_values=own,
        )
    cells, shape = np.array(counts, np.float64), replace(shape, missing=own)
    if isinstance(grid, Months):
        return _dates(name, grid, cells, shape, sd)
    assert grid is not None
    avoided = numbers_among((*absent, *own))
    # A range goes by other numbers: a cell of avoided ones without neighbours is none of them.
    among = np.intersect1d(np.searchsorted(grid.bounds, avoided, "right") - 1, range(len(cells)))
    alone = among[np.pad(cells, 1)[among[:, None] + [0, 2]].max(axis=1, initial=0.0) <= SURE * sd]
    if np.delete(cells, alone).max(initial=0.0) > SURE * sd:
        cells[alone] = 0.0
    return _numeric(name, grid, cells, shape, sd, avoided)


def _order(text: str) -> tuple[bool, float, list[str | tuple[int, str]], str]:
    """Return the key that sorts numbers by value and before words, and ``9th`` before ``10th``."""
    parts: list[str | tuple[int, str]] = [*re.split(r"([0-9]+)", text)]
    for place in range(1, len(parts), 2):  # digits, as many as there may be: the longer is larger
        number = str(parts[place]).lstrip("0")
        parts[place] = len(number), number
    try:
        return False, float(text), parts, text
    except ValueError:
        return True, 0.0, parts, text


def _numeric(
    name: str, grid: Numbers, counts: Floats, shape: Shape, sd: float, avoided: Sequence[float]
) -> Column | str:
    first, last = _range(counts, sd) if grid.ends is None else (0, len(counts) - 1)
    bounds = grid.bounds[first : last + 2]
    low, high = float(bounds[0]), float(bounds[-1])
    certain = not shape.gaps and not shape.slips
    if certain and grid.whole and low >= 0 and high <= 2:
        return Binary(name)
    if grid.whole and grid.ends is None and high - low >= _MANY_NUMBERS and _ROWS.fullmatch(name):
        return "numbers of rows, by what it is called; --unit keeps the rows of one together"
    if grid.whole and high - low <= _MOST_WHOLE and max(-low, high - 1) < 2 * shapes.STEPS:
        edges = tuple(map(float, range(int(low), max(int(high), int(low) + 2) + 1)))  # two buckets
    else:
        edges = _edges(bounds, _projected(counts[first : last + 1]), shape.decimals)
    end = grid.ends[1] if grid.whole and grid.ends is not None else None
    if end not in avoided and edges[-1] == end == edges[-2] + 1:  # which would not hold the end
        edges = (*edges, edges[-1] + 1)
    if grid.whole:  # a bucket of nothing but an avoided number joins the one before it
        alone = {each for each in avoided if each + 1 in edges}
        edges = tuple(edge for edge in edges if edge not in alone)
    held = max(map(abs, edges)) * 10**shape.decimals < 2**53
    decimals = shape.decimals if held and 0 < shape.decimals < DECIMALS else None
    # The end of a grid without ``ends`` is no number: of a last bucket one step wide, its start is.
    free = grid.ends is None and decimals is not None
    one = free and round((edges[-1] - edges[-2]) * 10**shape.decimals) == 1
    return Numeric(
        name,
        edges,
        within=(*("uniform",) * (len(edges) - 2), edges[-2]) if one else "uniform",
        integer=grid.whole,
        missing="error" if certain else "category",
        outside="clip",
        unparsable="missing" if shape.slips else "error",
        decimals=decimals,
        missing_values=shape.missing,
    )


def _edges(bounds: Floats, counts: Floats, decimals: int) -> tuple[float, ...]:
    """Return edges of buckets as numbers with the given decimals, if these are few."""
    if decimals == DECIMALS:
        return fitting_edges(bounds, counts, BUCKETS, whole=False)
    units, begins = np.unique(np.ceil(bounds * 10.0**decimals), return_index=True)
    merged = np.add.reduceat(counts, begins[:-1])  # the last unit has all to the end
    if len(units) < 3:  # a column has two buckets
        units, merged = np.append(units, units[-1] + 1), np.append(merged, 0.0)
    steps = fitting_edges(units, merged, BUCKETS, whole=True)
    return tuple(step / 10**decimals + 0.0 for step in steps)  # no -0.0


def _range(noisy: Floats, sd: float) -> tuple[int, int]:
    """Return the cells behind which counts do not exceed their noise together."""
    first, last = _start(noisy, sd), len(noisy) - 1 - _start(noisy[::-1], sd)
    return min(first, last), max(first, last)


def _start(noisy: Floats, sd: float) -> int:
    """Return where counts begin whose sum exceeds its noise; 0 if none does."""
    noise = np.sqrt(np.arange(1, len(noisy) + 1)) * sd * LIKELY
    if not len(ahead := np.flatnonzero(np.cumsum(noisy) > noise)):
        return 0
    # The cell that tips the sum is the last of those that made it: it rises the most behind these.
    before = np.cumsum(noisy[: ahead[0]][::-1]) - noise[: ahead[0]]
    return int(ahead[0] - (1 + np.argmax(before) if before.max(initial=0.0) > 0 else 0))


def _projected(noisy: Floats) -> Floats:
    """Return counts >= 0 with the same total, nearest to noisy ones: a constant is subtracted."""
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - max(float(noisy.sum()), 1.0)) / np.arange(1, len(noisy) + 1)
    return np.asarray((noisy - excess[ordered > excess][-1]).clip(0.0))


def _dates(name: str, grid: Months, counts: Floats, shape: Shape, sd: float) -> Dates:
    column = Dates(
        name,
        "hour of day",
        format=grid.pattern,
        missing="category" if shape.gaps or shape.slips else "error",
        outside="clip",
        unparsable="missing" if shape.slips else "error",
        missing_values=shape.missing,
    )
    if grid.pattern in CLOCKS:
        return column
    first, last = _range(counts, sd)
    months = last - first + 1
    by: Period = "day" if months == 1 else "month" if months <= 48 else "year"
    by = "decade" if months > 48 * 12 else by
    step = {"decade": 120, "year": 12}.get(by, 1)
    start = np.datetime64(f"{grid.first}-01")
    low = (start + (first - first % step)).astype("datetime64[D]")
    high = (start + (last - last % step + step)).astype("datetime64[D]") - 1
    return replace(column, by=by, first=str(low), last=str(high))


@dataclass(frozen=True)
class DraftedColumn:
    """What is proposed for one column of a table."""

    name: str
    column: Column | None  # None to leave it out
    remark: str  # what was taken from the data, for the user to check, or why it is left out


@dataclass(frozen=True)
class Draft:
    """A schema to check, which is not declared, and every column that was looked at."""

    schema: TableSchema
    columns: tuple[DraftedColumn, ...]


def careful_draft(source: TableSource, columns: ColumnChoice | None = None) -> Draft:
    """Draft a schema from exact counts of all rows, for a person to check: in two passes.

    ``columns`` chooses some of the table's (see `select_columns`). `BadInputError` if the table has
    no rows, or no column that a schema can keep.
    """
    names = chosen_columns(source, columns)
    counted = TableCounts(source.source if isinstance(source, CutTable) else source, names)
    shaped = {at: shape_of(at, each, 0.0) for at, each in zip(names, counted.shapes, strict=True)}
    wanted = {name: shape.how for name, shape in shaped.items() if shape.how is not None}
    values = dict(zip(wanted, counted.values([*wanted.items()]), strict=True))
    drafted = tuple(_drafted(at, shaped[at], values.get(at), counted.types[at]) for at in names)
    if not (kept := tuple(each.column for each in drafted if each.column is not None)):
        reasons = "; ".join(f"{each.name!r}: {each.remark}" for each in drafted)
        raise BadInputError(f"{source.label}: no column can be kept ({reasons})")
    return Draft(TableSchema(columns=kept, name=name_of(source), declared=False), drafted)


def _drafted(
    name: str, shape: Shape, counts: NDArray[np.int64] | pl.DataFrame | None, kind: pl.DataType
) -> DraftedColumn:
    if counts is None:
        possible = can_become_bits(pl.Series(dtype=kind))
        reason = "no value at all" if possible else f"type {kind}, which cannot become bits"
        return DraftedColumn(name, None, reason)
    if isinstance(counts, pl.DataFrame):
        listed, remark, share = _frequent(counts, shape)
        if share < _LEAST_LISTED:
            return DraftedColumn(name, None, f"{remark}: group them, by their first signs perhaps")
        found = propose(name, replace(shape, slips=share < 1.0), listed, 0.0)
    else:
        found = propose(name, shape, counts, 0.0)
        remark = "its range and how its values lie" + "; texts count as missing" * shape.slips
    if isinstance(found, str):
        return DraftedColumn(name, None, found)
    if isinstance(found, Binary):
        remark = "read as one bit"
    if kind == pl.Boolean:
        truth = Categorical(name, (("false",), ("true",)), missing="category")
        found = Binary(name, "false", "true") if isinstance(found, Binary) else truth
    remark += f"; read as {found.format}" if isinstance(found, Dates) and found.format else ""
    if found.missing_values:
        remark += f"; {', '.join(map(repr, found.missing_values))} as missing"
    return DraftedColumn(name, found, remark)


def _frequent(counts: pl.DataFrame, shape: Shape) -> tuple[list[str], str, float]:
    """Return the texts to list of a column, a remark, and in which part of the rows they are."""
    texts = counts.filter(~pl.col("text").is_in(["", *shape.missing]))
    if len(texts) + shape.gaps <= _MOST_LISTED * 3 // 2:
        return texts["text"].to_list(), f"its {len(texts)} texts", 1.0
    kept = texts.filter(pl.col("rows") >= FEW_ROWS).sort("rows", "text", descending=[True, False])
    kept = kept.head(_MOST_LISTED - 1 - shape.gaps)
    share = int(kept["rows"].sum()) / max(int(texts["rows"].sum()), 1)
    remark = f"the {len(kept)} most frequent of {len(texts):,} texts ({share:.0%} of the rows)"
    return kept["text"].to_list(), remark, share


def draft_table_schema(source: TableSource, columns: ColumnChoice | None = None) -> TableSchema:
    """Return the schema of `careful_draft`; a warning names the columns that are left out."""
    draft = careful_draft(source, columns)
    left_out = (each for each in draft.columns if each.column is None)
    if reasons := "; ".join(f"column {each.name!r}: {each.remark}" for each in left_out):
        _log.warning("%s: left out: %s; --columns '!NAME' says so, too", source.label, reasons)
    return draft.schema


def draft_item_schema(source: ItemSource) -> ItemSchema:
    """Return the format's items, or those found; `BadInputError` if there are none, or too many."""
    if source.width is not None:
        return ItemSchema.numbered(source.width, name_of(source))
    items = np.zeros(0, np.int64)
    for rows in source.item_rows():
        if len(items := np.union1d(items, rows.items)) > MAX_ITEMS:
            raise BadInputError(f"{source.label}: over {MAX_ITEMS:,} items; choose with --columns")
    if not len(items):
        raise BadInputError(f"{source.label}: no row has any item; declare them with --columns")
    return ItemSchema(items, name_of(source), declared=False)


def name_of(source: TableSource | ItemSource) -> str:
    """Return the name of the source without its folder, which a release must not show."""
    return Path(source.label.rpartition(":")[2]).name


def chosen_columns(source: TableSource, columns: ColumnChoice | None) -> list[str]:
    """Return the names of the columns to describe."""
    names = list(source.columns())
    return names if columns is None else [names[i] for i in select_columns(columns, names)]
