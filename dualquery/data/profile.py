"""What a pass over a table shows of one column, for a draft: how often each text comes, how numbers
lie, whether they may be dates, codes or names of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.buckets import BUCKETS
from dualquery.data.encode import can_become_bits, missing_mask, to_numbers
from dualquery.data.hints import (
    are_codes,
    marks_missing,
    names_codes,
    names_rows,
    order_says_nothing,
    repeat_like_names,
    surely_missing,
)
from dualquery.data.seen_dates import SeenMoments
from dualquery.data.seen_values import MAX_CATEGORIES, MISSING_VALUES, SeenValues, texts_of

MARKERS = (
    *MISSING_VALUES,
    *("?", ".", "NA", "N/A", "n/a", "na", "N.A.", "n.a.", "NaN", "nan", "NULL", "null", "<NA>"),
    *("#N/A", "#NA", "#NV", "#N/D", "#NULL!"),  # of spreadsheets
    *("k.A.", "k. A.", "k.a.", "K.A.", "s/d", "S/D"),  # keine Angabe, sin datos
)
"""Texts that usually stand for a missing value. Not ``ND`` or ``n.d.``, which may be North Dakota
or "not detected", nor words such as ``None``."""

KEPT_TEXTS = 50_000
"""Distinct texts of a column that are counted; one with more is no column of categories."""

SAMPLE = 65_536
"""Numbers of a column that are kept, evenly over the rows, to place edges by."""

_MOST_LISTED = MAX_CATEGORIES * 3 // 2
"""Texts that are all listed: to call a few of them (other) would lose more than it saves."""

_FEW_NUMBERS = BUCKETS * 3 // 2
"""Different numbers that are no more than the buckets they would be put in stay as they are."""

_NUMBERS_A_WORD = 20
"""Numbers beside each word of a column whose words stand for no number; codes have more words."""

_LONGEST_LIST = 256
"""Whole numbers that may well be a list of codes; more are amounts."""

_LEADING_ZERO = r"^0[0-9]+$"

FEW_ROWS = 5
"""That a category exists, which so few rows have, may be known from the table alone."""

_UNLIKELY_PAIRS = 5.0
"""Random numbers would repeat so often; if they never do, the chance of that is exp(-5)."""


class Profile:
    """One column: its few values, or how its many numbers lie.

    Parameters
    ----------
    name
        The column's name.
    absent
        Numbers that stand for missing values.

    Attributes
    ----------
    met
        The texts in it that are one of these numbers.
    seen
        Its few values, its range, and whether any repeats.
    moments
        Its dates.
    markers
        The texts in it that usually stand for a missing value.
    counts
        ``value`` and ``count``: each text and how often it comes; empty if there are too many.
    uncounted
        Whether there are too many texts to count.
    """

    def __init__(self, name: str, absent: Sequence[float] = ()) -> None:
        self.name = name
        self.met: set[str] = set()
        self._absent = list(absent)
        self.seen = SeenValues(name, missing_values=MARKERS)
        self.moments = SeenMoments()
        self.markers: set[str] = set()
        self.counts = pl.DataFrame(schema={"value": pl.String, "count": pl.Int64})
        self.uncounted = False
        self._sample: list[NDArray[np.float64]] = []
        self._stride = 1
        self._zeros_lead = False
        self._rising = True
        self._last = -np.inf

    def add(self, values: pl.Series) -> None:
        """Take in the values of a block."""
        if self._absent and can_become_bits(values):
            values = self._without_absent(values)
        self.seen.add(values)
        if not can_become_bits(values):
            return
        present = values.filter(pl.Series(~missing_mask(values, MARKERS)))
        self.moments.add(present)
        if values.dtype == pl.String:
            self.markers.update(values.filter(values.is_in(MARKERS)).unique().to_list())
            self._zeros_lead |= bool(present.str.contains(_LEADING_ZERO).any())
        self._count(texts_of(present))
        numbers = to_numbers(present)
        numbers = numbers[np.isfinite(numbers)]
        self._follow(numbers)
        self._keep(numbers)

    @property
    def is_text(self) -> bool:
        """Whether the values, if they are many, are names or codes, not numbers."""
        return self.seen.refused is not None or self._zeros_lead or names_codes(self.name)

    @property
    def many(self) -> bool:
        """Whether there are more values than a column of categories has."""
        return self.uncounted or len(self.counts) > MAX_CATEGORIES

    @property
    def is_amount(self) -> bool:
        """Whether a few numbers are amounts, which buckets suit better than categories.

        Words beside them, such as ``-`` or ``refused``, are few.
        """
        numbers = self._numbers
        numbers = numbers[np.isfinite(numbers)]
        words = len(self.counts) - len(numbers)
        if self.is_text or len(numbers) <= max(_FEW_NUMBERS, _NUMBERS_A_WORD * words):
            return False
        return not are_codes(numbers.tolist())

    @property
    def may_be_codes(self) -> bool:
        """Whether whole numbers that get buckets may be a list of codes all the same."""
        counted = 0 < len(self.counts) <= _LONGEST_LIST
        if not counted or not self.seen.whole or self.seen.words:
            return False
        return not self.seen.many or are_codes(self._numbers.tolist())

    @property
    def lists_codes(self) -> bool:
        """Whether many numbers are a list of codes, by how often each comes."""
        if not self.may_be_codes or not self.seen.many:
            return False  # a few numbers with gaps are amounts
        numbers = self._numbers
        order = np.argsort(numbers)
        return order_says_nothing(numbers[order], self.counts["count"].to_numpy()[order])

    @property
    def listed(self) -> pl.DataFrame:
        """The texts that become categories: all, or the most frequent of too many.

        Of too many, those in fewer than `FEW_ROWS` rows are others too: notes and telephone numbers
        would be known from the table alone.
        """
        if len(self.counts) + self.seen.missing <= _MOST_LISTED:
            return self.counts
        kept = self._frequent.sort("count", "value", descending=[True, False])
        return kept.head(MAX_CATEGORIES - 1 - self.seen.missing)

    @property
    def all_frequent_listed(self) -> bool:
        """Whether the categories are the texts that come in `FEW_ROWS` rows or more."""
        return len(self.listed) == len(self._frequent)

    @property
    def part_listed(self) -> float:
        """In which part of the rows these texts are."""
        return int(self.listed["count"].sum()) / max(int(self.counts["count"].sum()), 1)

    @property
    def numbers_rows(self) -> bool:
        """Whether whole numbers that never repeat name the rows, rather than measure them.

        They do if the column is called so, if they rise from row to row, or if as many numbers at
        random from their range would have repeated.
        """
        seen = self.seen
        if seen.repeats:
            return False
        pairs = seen.rows * (seen.rows - 1) / 2 / (seen.high - seen.low + 1)
        return names_rows(self.name) or self._rising or pairs > _UNLIKELY_PAIRS

    @property
    def repeats_like_names(self) -> bool:
        """Whether whole numbers that get buckets come again as names of persons or things do."""
        if self.uncounted or not self.seen.integer or len(self.counts) <= _LONGEST_LIST:
            return False
        return repeat_like_names(self._numbers, self.counts["count"].to_numpy())

    @property
    def rare(self) -> int:
        """How many of the texts that become categories come in fewer than `FEW_ROWS` rows."""
        return int((self.listed["count"] < FEW_ROWS).sum())

    @property
    def marks(self) -> list[float]:
        """Numbers such as 999 or -9 that may stand for a missing value."""
        if self.seen.refused is not None or self.seen.words:
            return []
        if self.uncounted:
            return marks_missing(*np.unique(self.sample, return_counts=True))
        return marks_missing(self._numbers, self.counts["count"].to_numpy())

    @property
    def sure_marks(self) -> list[float]:
        """Those of them that no value can be meant by, where numbers get buckets.

        A category of its own loses nothing.
        """
        if not self.many and not self.is_amount:
            return []
        return surely_missing(self.numbers, self.marks)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The different numbers, or those of a sample of very many: float64, finite."""
        numbers = self.sample if self.uncounted else self._numbers
        return np.unique(numbers[np.isfinite(numbers)])

    @property
    def sample(self) -> NDArray[np.float64]:
        """Numbers of the column, evenly over the rows: float64, finite."""
        return np.concatenate(self._sample)

    @property
    def _frequent(self) -> pl.DataFrame:
        return self.counts.filter(pl.col("count") >= FEW_ROWS)

    @property
    def _numbers(self) -> NDArray[np.float64]:
        return to_numbers(self.counts["value"])

    def _without_absent(self, values: pl.Series) -> pl.Series:
        """Return the values without the numbers that stand for missing ones; note these."""
        absent = pl.Series(np.isin(to_numbers(values), self._absent))
        self.met.update(texts_of(values.filter(absent)).unique())
        return pl.select(pl.when(~absent).then(values)).to_series().alias(values.name)

    def _count(self, texts: pl.Series) -> None:
        """Add to the number of each text; forget all of them once there are too many."""
        if self.uncounted:
            return
        found = texts.alias("value").value_counts().cast({"count": pl.Int64})
        joined = pl.concat([self.counts, found])
        self.counts = joined.group_by("value").agg(pl.col("count").sum())
        if len(self.counts) > KEPT_TEXTS:
            self.uncounted = True
            self.counts = self.counts.clear()

    def _follow(self, numbers: NDArray[np.float64]) -> None:
        """Note whether the numbers rise from row to row."""
        if self._rising and len(numbers):
            steps = np.diff(numbers, prepend=self._last)
            self._rising = bool(np.all(steps > 0))
            self._last = float(numbers[-1])

    def _keep(self, numbers: NDArray[np.float64]) -> None:
        """Keep every ``stride``-th number; where too many are kept, every second of them."""
        self._sample.append(numbers[:: self._stride])
        while sum(map(len, self._sample)) > SAMPLE:
            self._sample = [np.concatenate(self._sample)[::2]]
            self._stride *= 2
