"""A public partition of all cells that a table may hold: what a schema is learned from.

Every cell lies in one *kind* and in one *size*: of a number its sign and power of two, of a date
its decade. Both are fixed before any table is read, so counting them tells nothing by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.profile import MARKERS
from dualquery.data.schema.moments import read_moments

Int64 = NDArray[np.int64]

MISSING = (*MARKERS, "None", "N", "-")
"""Texts that may stand for a missing value: the last three among numbers and dates only."""

FORMATS: tuple[str | None, ...] = (
    None,  # ISO 8601
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y"),
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

STEPS = 32
"""Parts of a power of two that the grid of `Numbers` tells apart."""

_NUMBER = r"^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$"
_CODE = r"^0\d+$"


def texts(values: pl.Series) -> pl.Series:
    """Return cells as texts: whole floats without a point, null as the empty text."""
    from dualquery.data.seen_values import texts_of

    if values.dtype == pl.Boolean:
        values = values.cast(pl.Int8)
    return texts_of(values).fill_null("").cast(pl.String)


def distinct(values: pl.Series) -> tuple[pl.Series, Int64]:
    """Return the different cells as texts, and in how many rows each is; a text may come twice."""
    counted = values.rename("cell").value_counts(name="rows")
    return texts(counted["cell"]), counted["rows"].to_numpy().astype(np.int64)


def count_shapes(values: pl.Series) -> Int64:
    """Return how many cells lie in each kind, and behind these in each size: int64.

    Parameters
    ----------
    values
        The cells of one column. Distinct texts are looked at once.
    """
    text, rows = distinct(values)
    kinds, sizes = _kinds_and_sizes(text)
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
    if numeric.any():
        written = text.filter(pl.Series(numeric))
        kinds[numeric] = WHOLE + _decimals(written)
        sizes[numeric] = size_of(_floats(written))
    left &= ~code & ~numeric
    if (left & text.str.contains(r"\d").to_numpy()).any():
        for place, pattern in enumerate(FORMATS):
            rest = np.flatnonzero(left)
            read = read_moments(text.gather(rest).str.strip_chars(), pattern)
            dated = read.is_not_null().to_numpy()
            years = read.dt.year().filter(read.is_not_null()).to_numpy()
            kinds[rest[dated]] = FIRST_DATE + place
            decade = np.clip((years - FIRST_YEAR) // 10, 0, DECADES - 1)
            sizes[rest[dated]] = FIRST_DECADE + decade
            left[rest[dated]] = False
    return kinds, sizes


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
    """A public grid: each power of two between two ends in `STEPS` equal cells, and 0.

    Parameters
    ----------
    low, high
        First and last size, of `size_of` without `ZERO`.
    whole
        Whether numbers are whole: cells without a whole number are left out.
    """

    low: int
    high: int
    whole: bool

    @property
    def bounds(self) -> NDArray[np.float64]:
        """Lower ends of the cells, increasing, and the upper end of the last: float64."""
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
    first: int
    """First year."""
    years: int

    def count(self, values: pl.Series) -> Int64:
        """Return how many dates lie in each month, those beyond in the outermost ones."""
        text, rows = distinct(values)
        read = read_moments(text.str.strip_chars(), self.pattern)
        known = read.is_not_null().to_numpy()
        read, months = read.drop_nulls(), 12 * self.years
        month = (read.dt.year() - self.first).cast(pl.Int64) * 12 + read.dt.month() - 1
        place = np.clip(month.to_numpy(), 0, months - 1)
        return np.bincount(place, rows[known], months).astype(np.int64)


@dataclass(frozen=True)
class Values:
    """The texts that occur: not public, so only frequent ones are ever published."""


Grid = Numbers | Months
