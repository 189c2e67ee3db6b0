"""A public partition of all cells that a table may hold: what a schema is learned from.

Every cell lies in one *kind* and in one *size*: of a number its sign and power of two, of a date
its decade. Both are fixed before any table is read, so counting them tells nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.encoding.cuts import CutTable, Kept
from dualquery.data.encoding.encode import can_become_bits
from dualquery.data.readers.source import TableSource
from dualquery.data.schema.moments import CLOCKS, read_moments
from dualquery.runtime.errors import BadInputError

Int64 = NDArray[np.int64]
Seen = dict[tuple[str, ...], tuple[Int64, Int64]]
"""Kinds and sizes of a few texts: most columns of wide tables are 0 and 1."""

MARKERS = (
    *("", "?", ".", "NA", "N/A", "n/a", "na", "N.A.", "n.a.", "NaN", "nan", "NULL", "null", "<NA>"),
    *("#N/A", "#NA", "#NV", "#N/D", "#NULL!"),  # of spreadsheets
    *("k.A.", "k. A.", "k.a.", "K.A.", "s/d", "S/D"),  # keine Angabe, sin datos
)
"""Texts that usually stand for a missing value. Not ``ND`` or ``n.d.``, which may be North Dakota
or "not detected", nor words such as ``None``."""

MISSING = (*MARKERS, "None", "N", "-")
"""Texts that may stand for a missing value: the last three among numbers and dates only."""

FORMATS: tuple[str | None, ...] = (
    None,  # ISO 8601
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y"),
    *("%d.%m.%y", "%m/%d/%y", *CLOCKS, "%Y%m%d"),
)
"""Ways to write a date. A text that several of them read counts for the first."""

DECIMALS = 6
"""Largest number of decimals that is told apart."""

TEXT, CODE, WHOLE = 0, 1, 2
"""Kinds: other texts; digits behind a leading zero; whole numbers."""
FIRST_DATE = WHOLE + DECIMALS + 1
FIRST_MISSING = FIRST_DATE + len(FORMATS)
KINDS = FIRST_MISSING + len(MISSING)

FIRST_YEAR, DECADES = 1900, 20
LEAST_POWER, POWERS = -20, 72
ZERO = 2 * POWERS
"""Size of the number 0; below it negative and positive numbers by their power of two."""
FIRST_DECADE = ZERO + 1
NO_SIZE = FIRST_DECADE + DECADES
SIZES = NO_SIZE + 1
PARTITIONS = 2
"""A cell lies in one kind and in one size."""

RANGE_CELLS = 1024
STEPS = 32
"""Parts of a power of two that the grid of `Numbers` tells apart."""

_NUMBER = r"^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$"
_CODE = r"^0\d+$"
_DIGITS = "%Y%m%d"
_FEW = 4


def texts(values: pl.Series) -> pl.Series:
    """Return cells as texts: whole floats without a point, null as the empty text."""
    kind = values.dtype
    if kind.is_float():
        whole = values.round().eq(values) & (values.abs() < 2.0**53)
        values = values.cast(pl.String).zip_with(
            ~whole, values.cast(pl.Int64, strict=False).cast(pl.String)
        )
    elif kind == pl.Boolean:
        values = values.cast(pl.Int8)
    elif isinstance(kind, pl.Datetime):
        values = values.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    return values.cast(pl.String).fill_null("")


def distinct(values: pl.Series) -> tuple[pl.Series, Int64]:
    """Return the different cells as texts, and in how many rows each is; a text may come twice.

    Of a type that no column can hold, none.
    """
    if not can_become_bits(values):
        return pl.Series([], dtype=pl.String), np.zeros(0, np.int64)
    counted = values.rename("cell").value_counts(name="rows")
    return texts(counted["cell"]), counted["rows"].to_numpy().astype(np.int64)


def count_shapes(values: pl.Series, seen: Seen | None = None) -> Int64:
    """Return how many cells of a column lie in each kind, and behind these in each size.

    ``seen`` remembers what a few texts are, of column after column; private.
    """
    text, rows = distinct(values)
    seen = {} if seen is None or len(text) > _FEW else seen
    key = tuple(text.head(_FEW))
    if key not in seen:
        seen[key] = _kinds_and_sizes(text)
    kinds, sizes = seen[key]
    return np.concatenate(
        (
            np.bincount(kinds, rows, KINDS).astype(np.int64),
            np.bincount(sizes, rows, SIZES).astype(np.int64),
        )
    )


def _kinds_and_sizes(text: pl.Series) -> tuple[Int64, Int64]:
    kinds = np.full(len(text), TEXT, np.int64)
    sizes = np.full(len(text), NO_SIZE, np.int64)
    left = np.ones(len(text), np.bool_)
    for place, token in enumerate(MISSING):
        kinds[(text == token).to_numpy()] = FIRST_MISSING + place
    left &= kinds == TEXT
    code = left & text.str.contains(_CODE).to_numpy()
    kinds[code] = CODE
    numeric = left & ~code & text.str.contains(_NUMBER).to_numpy()
    numeric &= ~read_dates(text, _DIGITS).is_not_null().to_numpy()
    if numeric.any():
        written = text.filter(pl.Series(numeric))
        kinds[numeric] = WHOLE + _decimals(written)
        sizes[numeric] = size_of(_floats(written))
    left &= ~code & ~numeric
    if (left & text.str.contains(r"\d").to_numpy()).any():
        for place, pattern in enumerate(FORMATS):
            rest = np.flatnonzero(left)
            read = read_dates(text.gather(rest), pattern)
            dated = read.is_not_null().to_numpy()
            years = read.dt.year().filter(read.is_not_null()).to_numpy()
            kinds[rest[dated]] = FIRST_DATE + place
            decade = np.clip((years - FIRST_YEAR) // 10, 0, DECADES - 1)
            sizes[rest[dated]] = FIRST_DECADE + decade
            left[rest[dated]] = False
    return kinds, sizes


def read_dates(text: pl.Series, pattern: str | None) -> pl.Series:
    """Return texts as times, null where they are not written so, or digits of no likely date."""
    text = text.str.strip_chars()
    if pattern == _DIGITS:
        text = text.set(~text.str.contains(r"^(?:19|20)\d{6}$"), None)
    return read_moments(text, pattern)


def _floats(written: pl.Series) -> NDArray[np.float64]:
    return np.asarray(written.str.strip_chars().cast(pl.Float64, strict=False).to_numpy(), float)


def _decimals(written: pl.Series) -> Int64:
    """Return how many decimals numbers have: those behind the point, without zeros at the end."""
    decimals = written.str.extract(r"\.(\d*?)0*\s*$", 1).fill_null("").str.len_chars()
    powers = written.str.contains("[eE]").to_numpy()
    found = np.minimum(decimals.to_numpy().astype(np.int64), DECIMALS)
    return np.where(powers, DECIMALS, found)


def size_of(numbers: NDArray[np.float64]) -> Int64:
    """Return the size of each number: sign and power of two; `NO_SIZE` for NaN and infinity."""
    finite = np.isfinite(numbers) & (numbers != 0)
    power = np.frexp(np.where(finite, np.abs(numbers), 1.0))[1] - 1
    place = np.clip(power - LEAST_POWER, 0, POWERS - 1)
    sizes = np.where(numbers < 0, POWERS - 1 - place, POWERS + place)
    sizes = np.where(numbers == 0, ZERO, sizes)
    return np.where(finite | (numbers == 0), sizes, NO_SIZE).astype(np.int64)


@dataclass(frozen=True)
class Numbers:
    """A public grid: each power of two between two ends in `STEPS` equal cells, and 0."""

    low: int  # first and last size, of `size_of` without `ZERO`
    high: int
    whole: bool  # whether numbers are: cells without a whole number are left out
    ends: tuple[float, float] | None = None  # of a public range: `RANGE_CELLS` equal cells instead

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """Lower ends of the cells, increasing, and the upper end of the last: float64."""
        if self.ends is not None:
            equal = np.linspace(*self.ends, RANGE_CELLS + 1)
            return np.unique(np.ceil(equal)) if self.whole else equal
        ends: set[float] = {0.0}
        for size in range(self.low, self.high + 1):
            power = abs(size - POWERS) - (size < POWERS) + LEAST_POWER
            own = np.ldexp(1.0 + np.arange(STEPS + 1) / STEPS, power)
            ends |= set((own if size >= POWERS else -own).tolist())
        bounds = np.array(sorted(ends))
        if self.whole:
            return np.unique(np.ceil(np.append(bounds, 1.0)))
        return bounds if bounds[-1] > 0 else np.append(bounds, 1e-300)

    def count(self, values: pl.Series) -> Int64:
        """Return how many numbers lie in each cell, those beyond in the outermost ones."""
        text, rows = distinct(values)
        numbers = text.str.strip_chars().cast(pl.Float64, strict=False)
        # A leading zero makes no number here, as it makes none in `count_shapes`.
        known = (numbers.is_finite() & ~text.str.contains(_CODE)).fill_null(False).to_numpy()
        bounds = self.bounds
        place = np.searchsorted(bounds, numbers.to_numpy()[known], "right") - 1
        cells = len(bounds) - 1
        return np.bincount(np.clip(place, 0, cells - 1), rows[known], cells).astype(np.int64)


@dataclass(frozen=True)
class Months:
    """A public grid: the months of some decades, of dates that are written one way."""

    pattern: str | None
    first: int  # year
    years: int

    def count(self, values: pl.Series) -> Int64:
        """Return how many dates lie in each month, those beyond in the outermost ones."""
        text, rows = distinct(values)
        read = read_dates(text, self.pattern)
        known = read.is_not_null().to_numpy()
        read, months = read.drop_nulls(), 12 * self.years
        month = (read.dt.year() - self.first).cast(pl.Int64) * 12 + read.dt.month() - 1
        place = np.clip(month.to_numpy(), 0, months - 1)
        return np.bincount(place, rows[known], months).astype(np.int64)


@dataclass(frozen=True)
class Values:
    """The texts that occur: not public, so only frequent ones are ever published."""


Grid = Numbers | Months


class TableCounts:
    """Counts the cells of a table, exactly: the room adds noise to them, a draft takes them as is.

    Of a table that is cut to units only the rows that stay count. ``shapes``, int64 of shape
    ``(d, KINDS + SIZES)``, has the `count_shapes` of some columns; private, as ``rows`` and
    ``types`` are. `BadInputError` if there are no rows.
    """

    def __init__(self, source: TableSource, columns: Sequence[str]) -> None:
        self._source = source
        self.shapes = np.zeros((len(columns), KINDS + SIZES), np.int64)
        self.rows = 0
        self.types: dict[str, pl.DataType] = {}
        seen: Seen = {}
        for frame in self._frames(columns):
            self.rows += frame.height
            self.types = dict(frame.schema)
            for place, name in enumerate(columns):
                self.shapes[place] += count_shapes(frame[name], seen)
        if not self.rows:
            raise BadInputError(f"{source.label}: no rows below the header")

    def values(self, wanted: Sequence[tuple[str, Grid | Values]]) -> list[Int64 | pl.DataFrame]:
        """Return counts of cells of grids, and frames of ``text`` and ``rows``. Private."""
        found: list[list[Int64 | pl.DataFrame]] = [[] for _ in wanted]
        for frame in self._frames([name for name, _ in wanted]):
            for (name, how), blocks in zip(wanted, found, strict=True):
                if isinstance(how, Values):
                    text, rows = distinct(frame[name])
                    blocks.append(pl.DataFrame({"text": text, "rows": rows}))
                    if len(blocks) > _BLOCKS:
                        blocks[:] = [_together(blocks)]
                else:
                    blocks[:] = [sum([*blocks, how.count(frame[name])], start=np.int64(0))]  # type: ignore[list-item]
        return [
            _together(blocks) if isinstance(how, Values) else blocks[0]
            for (_, how), blocks in zip(wanted, found, strict=True)
        ]

    def _frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows that count, block by block."""
        if not isinstance(self._source, CutTable):
            yield from self._source.frames(names)
            return
        kept = Kept(self._source)
        for frame in self._source.source.frames(names):
            yield frame.filter(pl.Series(kept.of_next(frame.height)))
        kept.finish()


_BLOCKS = 16


def _together(blocks: Sequence[Int64 | pl.DataFrame]) -> pl.DataFrame:
    frames = [block for block in blocks if isinstance(block, pl.DataFrame)]
    return pl.concat(frames).group_by("text").agg(pl.col("rows").sum())
