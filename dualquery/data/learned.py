"""Columns drafted from noisy counts: post-processing, so it costs nothing and sees no cell.

Whatever the counts are, the columns take every cell: numbers beyond the edges are clipped, unknown
texts are ``(other)``, and what cannot be read counts as missing. So no later error can tell of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.buckets import BUCKETS
from dualquery.data.edges import fitting_edges
from dualquery.data.hints import names_codes
from dualquery.data.profile import MARKERS
from dualquery.data.schema.columns import Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates, fitting_period
from dualquery.data.seen_values import order_of_text
from dualquery.data.shapes import (
    CODE,
    DECADES,
    FIRST_DATE,
    FIRST_DECADE,
    FIRST_MISSING,
    FIRST_YEAR,
    FORMATS,
    KINDS,
    MISSING,
    NO_SIZE,
    POWERS,
    STEPS,
    TEXT,
    WHOLE,
    Grid,
    Months,
    Numbers,
    Values,
)

Floats = NDArray[np.float64]

SURE = 4.5
"""Standard deviations above which a count is taken for more than noise: of a thousand columns
with 250 shapes each, less than one shape in a release is so by chance (P(Z > 4.5) = 3.4e-6)."""

_LIKELY = 3.0
"""The same where a mistake costs little: an empty end of a range, which has few buckets."""

MOST_WHOLE = 32
"""Whole numbers that get a bucket each, if the grid tells them apart (`shapes.STEPS`)."""

_SAMPLE = 20_000
"""Numbers that stand for the counts of a grid where edges are chosen: resolves 1 in 20,000."""


@dataclass(frozen=True)
class Shape:
    """What a column looks like, by the noisy counts of its cells' shapes.

    Parameters
    ----------
    how
        What its values are to be counted by; None if nothing exceeds the noise.
    missing
        Texts that stand for missing values.
    decimals
        Most decimals of its numbers.
    """

    how: Grid | Values | None
    missing: tuple[str, ...] = ()
    decimals: int = 0


def shape_of(name: str, counts: Floats, sd: float) -> Shape:
    """Return what a column looks like.

    Parameters
    ----------
    name
        The column's, which is public; some names tell codes.
    counts
        float64, shape ``(KINDS + SIZES,)``: noisy counts.
    sd
        Standard deviation of their noise.
    """
    kinds, sizes = counts[:KINDS], counts[KINDS:]
    sure = SURE * sd
    missing = tuple(
        token for token, count in zip(MISSING, kinds[FIRST_MISSING:], strict=True) if count > sure
    )
    dates, numbers = kinds[FIRST_DATE:FIRST_MISSING], kinds[WHOLE:FIRST_DATE]
    kept = np.where(kinds > sure, kinds, 0.0)
    of_dates, of_numbers = (
        float(kept[FIRST_DATE:FIRST_MISSING].max()),
        float(kept[WHOLE:FIRST_DATE].sum()),
    )
    of_texts = float(kept[TEXT] + kept[CODE])
    if max(of_dates, of_numbers, of_texts) == 0.0:
        return Shape(None, missing)
    if of_dates > of_numbers + of_texts:
        return Shape(_months(int(np.argmax(dates)), sizes, sure), missing)
    if of_texts >= of_numbers or names_codes(name):
        return Shape(Values(), tuple(token for token in missing if token in MARKERS))
    decimals = int(np.flatnonzero(numbers > sure).max())
    ends = _sizes(sizes[: 2 * POWERS], sd)
    return Shape(Numbers(*ends, whole=decimals == 0), missing, decimals)


def _sizes(sizes: Floats, sd: float) -> tuple[int, int]:
    """Return the first and the last size that is surely there, or likely and next to these."""
    found = np.flatnonzero(sizes > SURE * sd)
    if not len(found):
        return POWERS, POWERS - 1  # none but 0
    first, last = int(found.min()), int(found.max())
    first -= first > 0 and sizes[first - 1] > _LIKELY * sd
    last += last + 1 < len(sizes) and sizes[last + 1] > _LIKELY * sd
    return first, last


def _months(place: int, sizes: Floats, sure: float) -> Months:
    decades = np.flatnonzero(sizes[FIRST_DECADE:NO_SIZE] > sure)
    if not len(decades):  # each has few, together they are many
        decades = np.argsort(-sizes[FIRST_DECADE:NO_SIZE])[:1]
    first, last = int(decades.min()), int(decades.max())
    return Months(
        FORMATS[place], FIRST_YEAR + 10 * first, 10 * (min(last, DECADES - 1) - first + 1)
    )


def learned_column(
    name: str, shape: Shape, counts: Sequence[str] | Floats, sd: float
) -> Column | None:
    """Return the column that noisy counts of its values suggest; None if they suggest none.

    Parameters
    ----------
    name
        The column's.
    shape
        What `shape_of` returned; its ``how`` is not None.
    counts
        Of the cells of a grid; or the texts that were published.
    sd
        Standard deviation of the noise in them.
    """
    how = shape.how
    if isinstance(how, Values):
        listed = [text for text in counts if text not in shape.missing and text != ""]
        return _categorical(name, listed, shape)
    noisy = np.asarray(counts, np.float64)
    if isinstance(how, Months):
        return _dates(name, how, noisy, shape, sd)
    assert isinstance(how, Numbers)
    return _numeric(name, how, noisy, shape, sd)


def _categorical(name: str, listed: list[str], shape: Shape) -> Categorical | None:
    if not listed:
        return None
    return Categorical(
        name,
        tuple((text,) for text in sorted(listed, key=order_of_text)),
        missing="category",
        outside="other",
        missing_values=tuple(text for text in shape.missing if text),
    )


def _numeric(name: str, grid: Numbers, noisy: Floats, shape: Shape, sd: float) -> Numeric | None:
    """Return buckets of a range, where counts exceed their noise, that suit how numbers lie."""
    bounds = grid.bounds
    first, last = _range(noisy, sd)
    low, high = float(bounds[first]), float(bounds[last + 1])
    if grid.whole and high - low <= MOST_WHOLE and max(-low, high - 1) < 2 * STEPS:
        if high - low == 1:  # one number: a column has two buckets
            high += 1
        edges = tuple(float(edge) for edge in range(int(low), int(high) + 1))
    else:
        sample = _sample(bounds, _projected(noisy[first : last + 1]), first, grid.whole)
        edges = fitting_edges(sample, low, high, BUCKETS, whole=grid.whole)
    if len(edges) < 3:
        return None
    return Numeric(
        name,
        edges,
        integer=grid.whole,
        missing="category",
        outside="clip",
        unparsable="missing",
        decimals=None if grid.whole else max(shape.decimals, 1),
        missing_values=tuple(text for text in shape.missing if text),
    )


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
    sums = np.cumsum(noisy[tipped::-1]) - sd * np.sqrt(np.arange(1, tipped + 2))
    return tipped - int(np.argmax(sums))


def _projected(noisy: Floats) -> Floats:
    """Return counts >= 0 with the same total, nearest to noisy ones: a constant is subtracted."""
    total = max(float(noisy.sum()), 1.0)
    ordered = np.sort(noisy)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(noisy) + 1)
    kept = np.flatnonzero(ordered > excess)
    return np.maximum(noisy - excess[kept[-1]], 0.0) if len(kept) else np.full(len(noisy), 1.0)


def _sample(bounds: Floats, counts: Floats, first: int, whole: bool) -> Floats:
    """Return numbers that lie as counts say, evenly within each cell."""
    ends = np.concatenate(([0.0], np.cumsum(counts))) / counts.sum()
    places = (np.arange(_SAMPLE) + 0.5) / _SAMPLE
    numbers = np.interp(places, ends, bounds[first : first + len(counts) + 1])
    return np.floor(numbers) if whole else numbers


def _dates(name: str, grid: Months, noisy: Floats, shape: Shape, sd: float) -> Dates:
    first, last = _range(noisy, sd)
    low = (grid.first + first // 12, first % 12 + 1)
    high = (grid.first + last // 12, last % 12 + 1)
    days = math.ceil(30.4 * (last - first + 1))
    column = Dates(
        name,
        fitting_period(days) if days > 62 else "month",
        first=f"{low[0]}-{low[1]:02d}-01",
        last=f"{high[0]}-{high[1]:02d}-28",
        format=grid.pattern,
        missing="category",
        outside="clip",
        unparsable="missing",
        missing_values=tuple(text for text in shape.missing if text),
    )
    return column.with_whole_periods()
