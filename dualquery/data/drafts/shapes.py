"""A public partition of all cells that a table may hold: what a schema is learned from.

Every cell lies in one *kind* and in one *size*: of a number its sign and power of two, of a date
its decade. Both are fixed before any table is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.encoding.cuts import pieces
from dualquery.data.encoding.encode import can_become_bits
from dualquery.data.readers.source import TableSource
from dualquery.data.schema.dates import CLOCKS, read_moments
from dualquery.runtime.errors import BadInputError

Int64 = NDArray[np.int64]

MARKERS = (
    *("", "?", ".", "NA", "N/A", "n/a", "na", "N.A.", "n.a.", "NaN", "nan", "NULL", "null", "<NA>"),
    *("#N/A", "#NA", "#NV", "#N/D", "#NULL!"),  # of spreadsheets
    *("k.A.", "k. A.", "k.a.", "K.A.", "s/d", "S/D"),  # keine Angabe, sin datos
)
"""Texts that usually stand for a missing value. Not ``ND``, which may be North Dakota."""

MISSING = (*MARKERS, "None", "N", "-")
"""Texts that may stand for a missing value: the last three among numbers and dates only."""

FORMATS: tuple[str | None, ...] = (
    None,  # ISO 8601
    *("%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y"),
    *("%d/%m/%Y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"),
    *("%d.%m.%Y %H:%M", "%d.%m.%y", "%d/%m/%y", "%d/%m/%y", "%m/%d/%y", *CLOCKS, "%Y%m%d"),
)
"""Ways to write a date. A text that several of them read counts for the first."""

EITHER = tuple(at for at, form in enumerate(FORMATS) if form in FORMATS[at + 1 :])
"""Formats that stand there twice: first for days to 12 only, which the last of the three reads."""

DECIMALS = 6  # the largest number of decimals that is told apart

TEXT, CODE, WHOLE = 0, 1, 2  # kinds: other texts; digits behind a leading zero; whole numbers
FIRST_DATE = WHOLE + DECIMALS + 1
FIRST_MISSING = FIRST_DATE + len(FORMATS)
KINDS = FIRST_MISSING + len(MISSING)

# In the outer decades and powers of two also counts what lies beyond them.
FIRST_YEAR, DECADES = 1890, 20
LEAST_POWER, POWERS = -20, 72
ZERO = 2 * POWERS  # of the number 0; below it negative and positive ones by their power of two
FIRST_DECADE = ZERO + 1
NO_SIZE = FIRST_DECADE + DECADES
SIZES = NO_SIZE + 1
PARTITIONS = 2  # a cell lies in one kind and in one size

RANGE_CELLS = 1024
STEPS = 32  # parts of a power of two that the grid of `Numbers` tells apart

_NUMBER = r"^\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*$"
_CODE = r"^0[0-9]+$"
_DIGITS = "%Y%m%d"
_FEW = 4  # cells of a column whose places are kept
_BLOCKS = 16  # frames of texts that are held side by side
_FLAGS = pl.Series(["0", "1", ""])  # what columns of flags hold, as `_texts` writes it


def _texts(values: pl.Series) -> pl.Series:
    """Return cells as texts: whole floats without a point, null as the empty text."""
    kind = values.dtype
    if kind.is_float():
        whole = values.round().eq(values) & (values.abs() < 2.0**53)
        as_whole = values.cast(pl.Int64, strict=False).cast(pl.String)
        values = as_whole.zip_with(whole, values.fill_nan(None).cast(pl.String))
    elif kind == pl.Boolean:
        values = values.cast(pl.Int8)
    elif isinstance(kind, pl.Datetime):
        values = values.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    return values.cast(pl.String).fill_null("")


def _distinct(column: pl.Series) -> tuple[pl.Series, Int64]:
    """Return different cells, and in how many rows each is; none of a type no column can hold."""
    cells = column if can_become_bits(column) else pl.Series(dtype=pl.String)
    counted = cells.rename("cell").value_counts(name="rows")
    return counted["cell"], counted["rows"].to_numpy().astype(np.int64)


def _flag_counts(column: pl.Series) -> tuple[int, int, int] | None:
    """Return how many cells are 0, 1 and null if all are; None of another column."""
    whole = column.dtype.is_integer() or column.dtype == pl.Boolean
    if whole and (column.min(), column.max()) in ((0, 0), (0, 1), (1, 1), (None, None)):
        ones, none = int(column.sum()), column.null_count()
        return len(column) - ones - none, ones, none
    return None


@dataclass(frozen=True)
class Shapes:
    """All kinds, and behind these all sizes."""

    cells = KINDS + SIZES

    def places(self, text: pl.Series) -> Int64:
        """Return the two cells of each text: int64 ``(2, texts)``."""
        missing = {token: FIRST_MISSING + place for place, token in enumerate(MISSING)}
        kinds = text.replace_strict(missing, default=TEXT, return_dtype=pl.Int64).to_numpy().copy()
        sizes = np.full(len(text), NO_SIZE, np.int64)
        left = kinds == TEXT
        code = left & text.str.contains(_CODE).to_numpy()
        kinds[code] = CODE
        left &= ~code
        numeric = left & text.str.contains(_NUMBER).to_numpy()
        numeric &= ~read_dates(text, _DIGITS).is_not_null().to_numpy()
        if numeric.any():
            written = text.filter(pl.Series(numeric)).str.strip_chars()
            decimals = written.str.extract(r"\.(\d*?)0*$", 1).fill_null("").str.len_chars()
            powers = written.str.contains("[eE]").to_numpy()
            kinds[numeric] = WHOLE + np.where(powers, DECIMALS, decimals.clip(0, DECIMALS))
            sizes[numeric] = _size_of(written.cast(pl.Float64, strict=False).to_numpy())
        left &= ~numeric & text.str.contains(r"\d").to_numpy()
        for place, pattern in enumerate(FORMATS if left.any() else ()):
            rest = np.flatnonzero(left)
            read = read_dates(text.gather(rest), pattern)
            if place in EITHER:
                read = read.set(read.dt.day() > 12, None)
            dated = rest[read.is_not_null().to_numpy()]
            kinds[dated] = FIRST_DATE + place
            decade = (read.drop_nulls().dt.year().to_numpy() - FIRST_YEAR) // 10
            sizes[dated] = FIRST_DECADE + np.clip(decade, 0, DECADES - 1)
            left[dated] = False
        return np.stack([kinds, KINDS + sizes])


def read_dates(text: pl.Series, pattern: str | None) -> pl.Series:
    """Return texts as times, null where they are not written so, or digits of no likely date."""
    text = text.str.strip_chars()
    if pattern == _DIGITS:
        text = text.set(~text.str.contains(r"^(?:19|20)\d{6}$"), None)
    return read_moments(text, pattern)


def _size_of(numbers: NDArray[np.float64]) -> Int64:
    """Return the size of each number: sign and power of two; `NO_SIZE` for NaN and infinity."""
    finite = np.isfinite(numbers) & (numbers != 0)
    power = np.frexp(np.where(finite, np.abs(numbers), 1.0))[1] - 1
    place = np.clip(power - LEAST_POWER, 0, POWERS - 1)
    sizes = np.where(numbers < 0, POWERS - 1 - place, POWERS + place)
    return np.where(numbers == 0, ZERO, np.where(finite, sizes, NO_SIZE)).astype(np.int64)


@dataclass(frozen=True)
class Numbers:
    """A public grid: each power of two between two ends in `STEPS` equal cells, and 0."""

    low: int  # first and last size, of `_size_of` without `ZERO`
    high: int
    whole: bool  # cells without a whole number are left out
    ends: tuple[float, float] | None = None  # of a public range: `RANGE_CELLS` equal cells instead

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Lower ends of the cells, increasing, and the upper end of the last: float64."""
        zero = [0.0, 1.0 if self.whole else 10.0**-DECIMALS]  # many amounts are 0
        if self.ends is None:
            sizes = np.arange(self.low, self.high + 1)[:, None]
            powers = abs(sizes - POWERS) - (sizes < POWERS) + LEAST_POWER
            own = np.ldexp(1.0 + np.arange(STEPS + 1) / STEPS, powers)
            ends = np.where(sizes >= POWERS, own, -own)
        else:
            power = np.frexp(np.abs(self.ends).max())[1]  # the range may be wider than any number
            low, high = np.ldexp(self.ends, -power)
            ends = np.ldexp(np.linspace(low, high, RANGE_CELLS + 1), power)
            zero = [each for each in zero if self.ends[0] <= each < self.ends[1]]
        bounds = np.unique([*ends.flat, *zero])
        return np.unique(np.ceil(bounds)) if self.whole else bounds

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.bounds) - 1

    def places(self, text: pl.Series) -> Int64:
        """Return the cell of each number, -1 for no number: int64 ``(1, texts)``."""
        numbers = text.str.strip_chars().cast(pl.Float64, strict=False)
        # A leading zero makes no number here, as it makes none in `Shapes`.
        known = (numbers.is_finite() & ~text.str.contains(_CODE)).fill_null(False).to_numpy()
        place = np.searchsorted(self.bounds, numbers.to_numpy(), "right") - 1
        return np.where(known, np.clip(place, 0, self.cells - 1), -1)[None, :]


@dataclass(frozen=True)
class Months:
    """A public grid: months of dates that are written one way; what lies beyond is clipped."""

    pattern: str | None
    first: int  # year
    years: int

    @property
    def cells(self) -> int:
        """Number of months."""
        return 12 * self.years

    def places(self, text: pl.Series) -> Int64:
        """Return the month of each date, -1 for no date: int64 ``(1, texts)``."""
        read = read_dates(text, self.pattern)
        month = (read.dt.year() - self.first).cast(pl.Int64) * 12 + read.dt.month() - 1
        return month.clip(0, self.cells - 1).fill_null(-1).to_numpy()[None, :]


@dataclass(frozen=True)
class Values:
    """The texts that occur: not public, so only frequent ones are ever published."""


Grid = Numbers | Months


class TableCounts:
    """Counts the cells of a table, exactly: the room adds noise to them, a draft takes them as is.

    Of a table that is cut to units only the rows that stay count. ``shapes`` has the `Shapes` of
    some columns: int64, ``(d, KINDS + SIZES)``. `BadInputError` if there are no rows. All private.
    """

    def __init__(self, source: TableSource, columns: Sequence[str]) -> None:
        self._source = source
        self._few: dict[tuple[object, ...], Int64] = {}
        self._flags: dict[str, Int64] = {}
        self.rows = 0
        self.shapes = np.zeros((len(columns), Shapes.cells), np.int64)
        self.types: dict[str, pl.DataType] = {}
        for place, cells, rows in self._cells(columns):
            self.shapes[place] += self._count(Shapes(), cells, rows)
        if not self.rows:
            raise BadInputError(f"{source.label}: no rows below the header")

    def values(self, wanted: Sequence[tuple[str, Grid | Values]]) -> list[Int64 | pl.DataFrame]:
        """Return counts of cells of grids, and frames of ``text`` and ``rows``. Private."""
        found: list[list[Int64 | pl.DataFrame]] = [[] for _ in wanted]
        for place, cells, rows in self._cells([name for name, _ in wanted]):
            own, how = found[place], wanted[place][1]
            if isinstance(how, Values):
                own.append(pl.DataFrame({"text": _texts(cells), "rows": rows}))
            else:
                own.append(self._count(how, cells, rows))
            own[:] = own if len(own) < _BLOCKS else [_together(own)]
        return [_together(own) for own in found]

    def _count(self, how: Grid | Shapes, cells: pl.Series, rows: Int64) -> Int64:
        """Count rows; places of a few cells are kept, as most columns of wide tables are flags."""
        key = (how, str(cells.dtype), *cells.head(_FEW + 1).to_list())
        if (places := self._few.get(key)) is None:
            places = how.places(_texts(cells))
            if len(cells) <= _FEW:
                self._few[key] = places
        known = places >= 0
        rows = np.broadcast_to(rows, places.shape)[known]
        return np.bincount(places[known], rows, how.cells).astype(np.int64)

    def _cells(self, names: Sequence[str]) -> Iterator[tuple[int, pl.Series, Int64]]:
        """Yield columns' places, some different cells, and in how many rows that count each is."""
        # Columns that hold 0 and 1 only, as most of wide tables do, are counted together and once.
        flags = {name: self._flags.get(name, np.zeros(len(_FLAGS), np.int64)) for name in names}
        left = {name: place for place, name in enumerate(names) if name not in self._flags}
        others, rows = {*()}, 0
        for piece in pieces(self._source, [*left]) if left else ():
            frame = piece.frame if piece.stay is None else piece.frame.filter(pl.Series(piece.stay))
            rows, self.types = rows + frame.height, self.types | dict(frame.schema)
            for cells in frame.get_columns():  # one by one: a `select` of thousands takes longer
                if own := _flag_counts(cells):
                    flags[cells.name] += own
                else:
                    others.add(cells.name)
                    yield left[cells.name], *_distinct(cells)
        yield from ((at, _FLAGS, own) for at, own in enumerate(flags.values()) if own.any())
        self.rows = self.rows or rows
        self._flags |= {name: flags[name] for name in left if name not in others}


def _together(counts: Sequence[Int64 | pl.DataFrame]) -> Int64 | pl.DataFrame:
    blocks = [each for each in counts if isinstance(each, pl.DataFrame)]
    if not blocks:
        return np.asarray(sum(each for each in counts if isinstance(each, np.ndarray)))
    return pl.concat(blocks).filter(pl.col("rows") > 0).group_by("text").agg(pl.col("rows").sum())
