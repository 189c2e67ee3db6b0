"""What a schema is learned from: noisy counts of shapes, and of the values that occur.

**Shapes.** Each cell lies in one of `KINDS` kinds and one of `SIZES` sizes
(`data.drafts.shapes`), a public partition each. Replacing a row moves, in each of d columns and
2 partitions, two counts by 1: L2 sensitivity ``sqrt(4 d)``; adding or removing one moves one of
them: ``sqrt(2 d)``. A unit of K rows moves K times as much (`dualquery.privacy.neighbours`). Rows
count once here, whatever their weight.

Where the number of rows n is public, noise that is not read is not drawn. In each partition the
counts of a column add up to n (or 0), so n less the noisy counts of what flags hold, which are
drawn first, is about the number of other cells. Where that is small in both, the other counts are
given out as 0. What is given out is a function of n and all noisy counts, a post-processing of what
is charged. The noises are independent, and n and the first ones determine whether the others are
read, so the result has the same distribution as if all were drawn.

**Values.** Each column is counted on a public grid, or by the texts that occur in it. A row lies in
one cell, or has one text, of each column: L2 sensitivity ``sqrt(2 d)`` or ``sqrt(d)``, times K. A
text is published only if its noisy count is tau or more. Let D and D' be neighbours. Texts that
both tables have, and grids, cost the Gaussian noise. A text that only one of them has is had by at
most K of its rows, so it is published with probability at most ``P(Z >= tau - K)``; each side has
at most K d of them. With `tau` such that ``K d P(Z >= tau - K) <= delta_0 / 2`` the result is
delta_0 / 2-approximately rho-zCDP, which composes by adding (Bun and Steinke 2016, Section 8;
Rogers 2023; Wilson et al. 2020).

**Items.** Of rows of numbered items, cut to K items each by their own content
(`data.encoding.truncation`), the same with K in the place of d: a row has K items at most.

**Floating point.** A table may have millions of texts that hardly occur. Of those whose chance of
being published is at most twice that of a text of one row, a uniform number of two words each
decides whether they are, against the normal tail in double precision: a relative error below 2^-45.
Only the texts are given out. The sum of their chances is at most ``2 n delta_0 / (2 K)``, so for n
up to 2^33 rows the total variation is below ``2^-12 delta_0``: it costs at most
``(1 + e^epsilon) 2^-12 delta_0``, where epsilon is that of the whole guarantee: below delta_0 / 2
for epsilon up to `LARGEST_EPSILON`. That is what the other half of delta_0 is for. Beyond it every
text has noise of its own. All other noise is drawn as in `dualquery.room.noise.gaussian`.
"""

import json
import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.drafts.shapes import KINDS, PARTITIONS, Grid, Shapes, TableCounts, Values
from dualquery.data.encoding.cuts import CutTable
from dualquery.data.encoding.encode import BitRows
from dualquery.data.encoding.truncation import truncate
from dualquery.data.readers.source import ItemSource, TableSource
from dualquery.privacy.events import GaussianNoise, Schedule, ThresholdedCounts
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.ground import Ground
from dualquery.room.journal import Journal
from dualquery.room.ledger import Ledger
from dualquery.room.noise.gaussian import add_gaussian, check_gaussian
from dualquery.room.randomness import Randomness, randomness
from dualquery.runtime.errors import BadInputError

LARGEST_EPSILON = 7.0
"""Of a whole guarantee, up to which rare texts are drawn by their chances."""
_RARE = 2.0
"""A text is rare if its chance is at most this multiple of that of a text of one row."""

_FLAGS = pl.Series(["", "0", "1", "2"])
"""What flags hold; 2 lies next to them, where few rows extend a range."""

Published = list[str]


def shapes_sensitivity(columns: int, neighbours: Neighbours) -> float:
    """Return how far the counts of all shapes move between neighbours, in L2."""
    return values_sensitivity(PARTITIONS * columns, neighbours)


def values_sensitivity(columns: int, neighbours: Neighbours) -> float:
    """Return how far the counts of all values move between neighbours, in L2."""
    each = math.sqrt(2.0 * columns) if neighbours.replaces else math.sqrt(columns)
    return rows_of_unit(neighbours) * each


def rows_of_unit(neighbours: Neighbours) -> int:
    """Return K: the most rows of what the guarantee protects. Weights count for nothing here."""
    return 1 if neighbours.unit is None else neighbours.unit.max_rows


def threshold(scale: float, columns: int, neighbours: Neighbours, delta: float) -> float:
    """Return tau: ``K d P(Z >= tau - K) <= delta / 2`` for Gaussian noise Z of a scale."""
    from scipy.special import ndtri

    rows = rows_of_unit(neighbours)
    # A relative 1e-9 of the scale covers the rounding of the quantile.
    return rows + scale * (-float(ndtri(delta / (2 * rows * columns))) + 1e-9)


class SchemaRoom:
    """Reads the cells of a private table, and gives out noisy counts of them only; charged.

    ``source`` is the table, cut to its units where these are protected. ``columns`` are the
    (public) names of those that are learned, ``shaped`` those whose shapes are counted.
    `BadInputError` if the table cannot be read to the end, or has no rows.
    """

    def __init__(
        self,
        source: TableSource,
        columns: tuple[str, ...],
        shaped: tuple[str, ...],
        neighbours: Neighbours,
    ) -> None:
        self._source = source
        self._columns = columns
        self._shaped = len(shaped)
        self._neighbours = neighbours
        self._counts = TableCounts(source, shaped or columns[:1])
        self._ledger = Ledger(())
        self._randomness: Randomness
        self._epsilon = math.inf

    @property
    def protected(self) -> int | None:
        """The number of rows, or of units, where that is public; else None."""
        if not self._neighbours.replaces:
            return None
        return self._source.units if isinstance(self._source, CutTable) else self._counts.rows

    def open(self, schedule: Schedule, seed: int | None, journal: Journal, epsilon: float) -> None:
        """Take the schedule and the epsilon of the whole guarantee, and an experiment's seed."""
        self._ledger, self._epsilon = Ledger(schedule, journal), epsilon
        self._randomness = randomness(None if seed is None else seed + 2**65)  # its own

    def grounds(self) -> tuple[Ground | None, ...]:
        """Return why each charged event covers what was drawn; public."""
        return self._ledger.grounds

    def shapes(self, scale: float, likely: float) -> NDArray[np.float64]:
        """Return the noisy number of cells of each shape: a row a column of ``shaped``; charged.

        In columns where other cells than flags seem at most ``likely``, which is public, other
        numbers are 0 and not drawn.
        """
        exact = self._counts.shapes[: self._shaped]
        check_gaussian(scale, exact.size)
        moved = shapes_sensitivity(self._shaped, self._neighbours)
        ground = Ground(__name__, "ShapeCounts", moved, scale, "public partitions")
        rows = self._counts.rows if self._neighbours.rows_public else math.inf
        first = np.isin(np.arange(Shapes.cells), Shapes().places(_FLAGS))

        def noisy() -> NDArray[np.float64]:
            drawn = np.zeros(exact.shape)
            drawn[:, first] = add_gaussian(exact[:, first], scale, self._randomness)
            known = np.minimum(drawn[:, :KINDS].sum(axis=1), drawn[:, KINDS:].sum(axis=1))
            rest = np.ix_(rows - known > likely, ~first)
            drawn[rest] = add_gaussian(exact[rest], scale, self._randomness)
            return drawn

        return self._ledger.draw(GaussianNoise(moved, scale), ground, noisy, exact.shape)

    def values(
        self, wanted: Sequence[tuple[str, Grid | Values]], scale: float, delta: float
    ) -> list[Published | NDArray[np.float64]]:
        """Return the noisy counts of grids, and which texts are frequent; charged.

        ``wanted`` has columns, each once, with what they are counted by; ``scale`` is that of the
        noise, ``delta`` what the threshold may cost.
        """
        names = [name for name, _ in wanted]
        if len({*names}) < len(names) or not {*names} <= {*self._columns}:
            raise ValueError("each of the room's columns is counted once")
        exact = self._counts.values(wanted)
        moved = values_sensitivity(len(self._columns), self._neighbours)
        tau = threshold(scale, len(self._columns), self._neighbours, delta)
        ground = Ground(__name__, "ValueCounts", moved, scale, "grids, and texts above tau")

        def packed() -> NDArray[np.uint8]:
            """Return noisy counts and texts as bytes, as a journal keeps a draw."""
            published = [self._published(each, scale, tau) for each in exact]
            return np.frombuffer(json.dumps(published).encode(), np.uint8)

        drawn = self._ledger.draw(ThresholdedCounts(moved, scale, delta), ground, packed, None)
        return [
            each if each and isinstance(each[0], str) else np.array(each, np.float64)
            for each in json.loads(drawn.tobytes())
        ]

    def _published(
        self, exact: NDArray[np.int64] | pl.DataFrame, scale: float, tau: float
    ) -> Published | list[float]:
        if not isinstance(exact, pl.DataFrame):
            noisy: list[float] = add_gaussian(exact, scale, self._randomness).tolist()
            return noisy
        exact = exact.sort("text")  # so that a seed draws the same noise for each
        noise = _thresholded(exact["rows"].to_numpy(), scale, tau, self._randomness, self._epsilon)
        shown = np.flatnonzero(noise >= tau)
        # The order of a hash would depend on what else occurs.
        return sorted(exact["text"].gather(shown).to_list())


class ItemRoom:
    """Counts the items of private rows, and gives out noisy counts of frequent ones; charged.

    Rows of more than ``most`` items, K, public, are cut to K. Neighbours differ in rows, not units.
    `BadInputError` if the rows cannot be read to the end.
    """

    def __init__(self, source: ItemSource, most: int, neighbours: Neighbours) -> None:
        self._most, self._neighbours, self._rows = most, neighbours, 0
        found, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        for rows in source.item_rows():
            self._rows += len(rows)
            if rows.items.max(initial=0) >= 1 << 31:
                raise BadInputError(f"{source.label}: items from 2^31 on cannot be learned")
            cut = truncate(BitRows(rows.indptr, rows.items.astype(np.int32)), most)
            weights = np.concatenate((counts, np.ones(len(cut.bits), np.int64)))
            found, places = np.unique(np.concatenate((found, cut.bits)), return_inverse=True)
            counts = np.bincount(places, weights, len(found)).astype(np.int64)
        self._items, self._counts = found, counts

    @property
    def protected(self) -> int | None:
        """The number of rows where that is public; else None."""
        return self._rows if self._neighbours.replaces else None

    def items(
        self, event: ThresholdedCounts, seed: int | None, journal: Journal, epsilon: float
    ) -> tuple[NDArray[np.int64], tuple[Ground | None, ...]]:
        """Return the frequent items, increasing, and why the charge covers that; charged.

        ``epsilon`` is that of the whole guarantee.
        """
        ledger = Ledger((event,), journal)
        source = randomness(None if seed is None else seed + 2**65)
        moved = values_sensitivity(self._most, self._neighbours)
        tau = threshold(event.scale, self._most, self._neighbours, event.delta)
        ground = Ground(__name__, "ItemCounts", moved, event.scale, "items above tau")

        def frequent() -> NDArray[np.int64]:
            noisy = _thresholded(self._counts, event.scale, tau, source, epsilon)
            return self._items[noisy >= tau]

        own = ThresholdedCounts(moved, event.scale, event.delta)
        return ledger.draw(own, ground, frequent, None), ledger.grounds


def _thresholded(
    counts: NDArray[np.int64], scale: float, tau: float, source: Randomness, epsilon: float
) -> NDArray[np.float64]:
    """Return noisy counts; of rare ones only which are above the threshold: infinite, else -inf."""
    from scipy.special import ndtr

    chance = ndtr((counts - tau) / scale)
    rare = chance <= _RARE * float(ndtr((1 - tau) / scale))
    rare &= epsilon <= LARGEST_EPSILON
    noisy = np.full(len(counts), -math.inf)
    noisy[~rare] = add_gaussian(counts[~rare], scale, source)
    lucky = np.flatnonzero(rare)[_uniform(int(rare.sum()), source) < chance[rare]]
    noisy[lucky] = math.inf
    return noisy


def _uniform(count: int, source: Randomness) -> NDArray[np.float64]:
    """Return uniform numbers in (0, 1), of 53 significant bits however small they are."""
    high, low = (source.words(2 * count) >> np.uint64(11)).reshape(2, count)
    return np.asarray(np.ldexp(high + np.ldexp(low + 0.5, -53), -53), np.float64)
