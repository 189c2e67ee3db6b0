"""The schema that a careful person would draft for a table, with what of it came from the data.

`dualquery.data.draft` makes a schema for any table at once, so that a first release needs none.
This one is for a person to read, correct and declare: buckets suit the values, codes stay codes,
identifiers stay out, and every choice is explained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.buckets import BUCKETS, are_months, fitting_edges, usual_range, year_edges
from dualquery.data.draft import name_of, plain_column
from dualquery.data.encode import missing_mask, to_numbers
from dualquery.data.hints import (
    are_codes,
    names_codes,
    names_counts,
    names_rows,
    numbers_with_signs,
    order_says_nothing,
)
from dualquery.data.readers.source import TableSource
from dualquery.data.schema.column_choice import ColumnChoice
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import CLOCKS, Dates, fitting_period
from dualquery.data.schema.table import TableSchema
from dualquery.data.seen_dates import SeenMoments
from dualquery.data.seen_values import (
    FEWEST_NAMES,
    MAX_CATEGORIES,
    MISSING_VALUES,
    SeenValues,
    order_of_text,
    see_columns,
    texts_of,
)
from dualquery.data.spreads import spread
from dualquery.runtime.errors import BadInputError

MARKERS = (*MISSING_VALUES, "?", "NA", "N/A", "n/a", "#N/A", "na", "NaN", "nan", "NULL", "null")
"""Texts that usually stand for a missing value."""

KEPT_TEXTS = 50_000
"""Distinct texts of a column that are counted; one with more is no column of categories."""

SAMPLE = 65_536
"""Numbers of a column that are kept, evenly over the rows, to place edges by."""

_OPPOSITES = (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("off", "on"))
_FEW_NUMBERS = BUCKETS * 3 // 2
"""Different numbers that are no more than the buckets they would be put in stay as they are."""

_LONGEST_LIST = 256
"""Whole numbers that may well be a list of codes; more are amounts."""

_LEAST_NAMED = 0.25
"""Categories are not worth their places where they name a smaller part of the rows than this."""

_LEADING_ZERO = r"^0[0-9]+$"

_UNLIKELY_PAIRS = 5.0
"""Random numbers would repeat so often; if they never do, the chance of that is exp(-5)."""


@dataclass(frozen=True)
class DraftedColumn:
    """What is proposed for one column of a table.

    Parameters
    ----------
    name
        The column's name.
    column
        The proposal; None to leave the column out.
    remark
        What of it was taken from the data, for the user to check; or why it is left out.
    """

    name: str
    column: Column | None
    remark: str


@dataclass(frozen=True)
class Draft:
    """A schema to check, and a remark for each column of the table.

    Parameters
    ----------
    schema
        The columns that are kept; not declared.
    columns
        Every column that was looked at, in the table's order.
    """

    schema: TableSchema
    columns: tuple[DraftedColumn, ...]


def careful_draft(source: TableSource, columns: ColumnChoice | None = None) -> Draft:
    """Draft a schema for a person to check, in one pass over a table.

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
    seen = see_columns(source, columns, Profile)
    drafted = tuple(profile.draft() for profile in seen.values())
    kept = tuple(each.column for each in drafted if each.column is not None)
    if not kept:
        reasons = "; ".join(f"{each.name!r}: {each.remark}" for each in drafted)
        raise BadInputError(f"{source.label}: no column can be kept ({reasons})")
    markers = set().union(*(profile.markers for profile in seen.values()))
    schema = TableSchema(
        columns=kept,
        name=name_of(source),
        declared=False,
        missing_values=tuple(text for text in MARKERS if text in {*MISSING_VALUES, *markers}),
    )
    return Draft(schema, drafted)


def _spellings_joined(column: Categorical) -> Categorical:
    """Return the column with ``f`` beside ``F`` in one category."""
    joined: dict[str, list[str]] = {}
    for (text,) in column.values:
        joined.setdefault(text.lower(), []).append(text)
    return replace(
        column,
        values=tuple(tuple(each) for each in joined.values()),
        outside=column.outside if len(joined) > 1 else "other",
    )


class Profile:
    """What a pass shows of one column: its few values, or how its many numbers lie."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.markers: set[str] = set()
        self._seen = SeenValues(name, missing_values=MARKERS)
        self._counts = pl.DataFrame(schema={"value": pl.String, "count": pl.Int64})
        self._uncounted = False
        self._sample: list[NDArray[np.float64]] = []
        self._stride = 1
        self._codes = False
        self._moments = SeenMoments()
        self._rising = True
        self._last = -np.inf

    def add(self, values: pl.Series) -> None:
        """Take in the values of a block."""
        self._seen.add(values)
        if values.dtype.is_nested() or values.dtype in (pl.Object, pl.Binary, pl.Duration):
            return
        texts = values.dtype == pl.String
        present = values.filter(pl.Series(~missing_mask(values, MARKERS)))
        self._moments.add(present)
        if texts:
            found = values.filter(values.is_in(MARKERS)).unique().to_list()
            self.markers.update(found)
            self._codes |= bool(present.str.contains(_LEADING_ZERO).any())
        self._count(texts_of(present))
        numbers = to_numbers(present)
        self._follow(numbers)
        self._keep(numbers[np.isfinite(numbers)])

    def draft(self) -> DraftedColumn:
        """Return what the values suggest."""
        dates = self._dates()
        if dates is not None:
            return dates
        reason = self._left_out()
        if reason:
            return DraftedColumn(self.name, None, reason)
        if not self._uncounted and len(self._counts) <= MAX_CATEGORIES and not self._measures():
            return self._few()
        return self._frequent() if self._is_text() or self._lists_codes() else self._buckets()

    def _dates(self) -> DraftedColumn | None:
        """Propose years, months or days, whichever are about as many as buckets of numbers."""
        found = self._moments.found()
        if found is None:
            return None
        pattern, first, last = found
        slips = self._moments.slips
        missing: Literal["error", "category"] = (
            "category" if self._seen.missing or slips else "error"
        )
        if pattern in CLOCKS:
            clock = Dates(self.name, "hour of day", format=pattern, missing=missing)
            clock = replace(clock, unparsable="missing" if slips else "error")
            return DraftedColumn(self.name, clock, "hours of the day" + self._missing_remark())
        low, high = first.date(), last.date()
        by = fitting_period((high - low).days)
        remark = "its first and last date"
        if pattern is not None and self._moments.several:
            remark += f", read as {pattern}: the day and the month may be the other way round"
        if low == high:
            return DraftedColumn(self.name, None, "one date only")
        if by != "day":
            low = low.replace(day=1) if by == "month" else low.replace(month=1, day=1)
        column = Dates(
            self.name,
            by,
            first=low.isoformat(),
            last=high.isoformat(),
            format=pattern,
            missing=missing,
            outside="clip",
            unparsable="missing" if slips else "error",
        )
        if slips:
            remark += f"; texts such as {', '.join(map(repr, slips))} count as missing"
        return DraftedColumn(self.name, column, remark + self._missing_remark())

    def _is_text(self) -> bool:
        """Return whether the many values are names or codes, not numbers."""
        return self._seen.refused is not None or self._codes or names_codes(self.name)

    def _measures(self) -> bool:
        """Return whether a few numbers are amounts, which buckets suit better than categories."""
        seen = self._seen
        if self._is_text() or seen.words or len(self._counts) <= _FEW_NUMBERS:
            return False
        return not are_codes(to_numbers(self._counts["value"]).tolist())

    def _may_be_codes(self) -> bool:
        """Return whether numbers that get buckets may be a list of codes all the same."""
        counted = 0 < len(self._counts) <= _LONGEST_LIST
        if not counted or not self._seen.many:
            return counted
        return are_codes(to_numbers(self._counts["value"]).tolist())

    def _lists_codes(self) -> bool:
        """Return whether many numbers are a list of codes, by how often each comes."""
        if not self._seen.whole or self._seen.words or not self._may_be_codes():
            return False
        numbers = to_numbers(self._counts["value"])
        order = np.argsort(numbers)
        return order_says_nothing(numbers[order], self._counts["count"].to_numpy()[order])

    def _left_out(self) -> str:
        """Return why the column should stay out; the empty text if it should not."""
        seen = self._seen
        if seen.refused is not None and seen.refused.startswith("type "):
            return f"{seen.refused}"
        if not len(self._counts) and not self._uncounted:
            return "no value at all"
        if seen.refused is not None and numbers_with_signs(self._counts["value"].head(50)):
            return (
                f"numbers written such as {self._counts['value'].min()!r}: write them without "
                "signs, or say how they are written with --csv decimal=,"
            )
        if self._is_text() and self._uncounted:
            return f"more than {KEPT_TEXTS:,} different texts"
        if (
            self._is_text()
            and len(self._counts) >= FEWEST_NAMES
            and self._counts["count"].max() == 1
        ):
            return "every value is different, as in names of rows"
        if not self._is_text() and seen.many and seen.whole and self._numbers_rows():
            return "whole numbers that never repeat, as in names of rows"
        if seen.many and seen.low == seen.high:
            return "many texts for one number"
        many = self._uncounted or len(self._counts) > MAX_CATEGORIES
        if many and names_rows(self.name) and (self._is_text() or seen.whole):
            return "many values, as in names of persons or households, by what it is called"
        if self._is_text() and self._named() < _LEAST_NAMED:
            return (
                f"{len(self._counts):,} different texts, of which the most frequent are in "
                f"{self._named():.0%} of the rows only: group them, by their first signs perhaps"
            )
        return ""

    def _named(self) -> float:
        """Return in which part of the rows the texts are that would become categories."""
        counts = self._counts["count"]
        most = counts.top_k(min(MAX_CATEGORIES - 1 - self._seen.missing, len(counts)))
        return int(most.sum()) / int(counts.sum())

    def _numbers_rows(self) -> bool:
        """Return whether whole numbers that never repeat name the rows, rather than measure them.

        They do if the column is called so, if they rise from row to row, or if as many numbers at
        random from their range would have repeated.
        """
        seen = self._seen
        if seen.repeats:
            return False
        pairs = seen.rows * (seen.rows - 1) / 2 / (seen.high - seen.low + 1)
        return names_rows(self.name) or self._rising or pairs > _UNLIKELY_PAIRS

    def _few(self) -> DraftedColumn:
        seen = self._seen
        texts = {text.lower(): text for text in seen.texts}
        if not seen.missing and not seen.boolean and len(seen.texts) == len(texts) == 2:
            for zero, one in _OPPOSITES:
                if texts.keys() == {zero, one}:
                    named = Binary(self.name, zero=texts[zero], one=texts[one])
                    return DraftedColumn(self.name, named, "its two values")
        column = plain_column(replace(seen, many=False))
        if isinstance(column, Binary):
            return DraftedColumn(self.name, column, "its two values")
        remark = f"its {len(seen.texts)} values"
        if isinstance(column, Categorical) and len(texts) < len(seen.texts):
            column = _spellings_joined(column)
            remark += ", those that differ by large and small letters taken as one"
        if len(seen.texts) < 2:
            remark = "one value only: leave it out if it cannot differ"
        remark += self._count_remark() + self._missing_remark()
        return DraftedColumn(self.name, column, remark)

    def _frequent(self) -> DraftedColumn:
        """Propose the most frequent texts as categories, and one for all others."""
        seen = self._seen
        kept = self._counts.sort("count", "value", descending=[True, False])
        kept = kept.head(MAX_CATEGORIES - 1 - seen.missing)
        column = Categorical(
            self.name,
            values=tuple((text,) for text in sorted(kept["value"], key=order_of_text)),
            missing="category" if seen.missing else "error",
            outside="other",
        )
        remark = (
            f"the {len(kept)} most frequent of {len(self._counts):,} "
            f"{'texts' if self._is_text() else 'numbers'} ({self._named():.0%})"
        )
        if not self._is_text():
            remark += ", taken for codes since their order says nothing of how frequent they are"
        return DraftedColumn(self.name, column, remark + self._missing_remark())

    def _buckets(self) -> DraftedColumn:
        seen = self._seen
        values = np.concatenate(self._sample)
        low, high = usual_range(values, seen.low, seen.high)
        if seen.integer and are_months(values):
            edges = year_edges(seen.low, seen.high, BUCKETS)
        else:
            edges = fitting_edges(values.clip(low, high), low, high, BUCKETS, whole=seen.integer)
        column = Numeric(
            self.name,
            edges=edges,
            integer=seen.integer,
            missing="category" if seen.missing or seen.words else "error",
            outside="clip",
            unparsable="missing" if seen.words else "error",
            within=spread(values, edges, whole=seen.integer),
        )
        equal = len(set(np.diff(edges).tolist())) == 1
        remark = "its range" if equal else "its range and how its values lie"
        if column.within != "uniform":
            remark += "; how they lie in some buckets (within)"
        if (low, high) != (seen.low, seen.high):
            remark += "; a few numbers that lie far beyond are clipped"
        if seen.whole and not seen.words and self._may_be_codes():
            remark += "; if they are codes, list them as categories"
        remark += self._count_remark()
        if seen.words:
            shown = ", ".join(map(repr, sorted(seen.words)[:3]))
            remark += f"; texts such as {shown} count as missing"
        if not seen.repeats and seen.whole and seen.rows >= FEWEST_NAMES:
            remark += "; no value comes twice: leave it out if it names rows"
        return DraftedColumn(self.name, column, remark + self._missing_remark())

    def _count_remark(self) -> str:
        if names_counts(self.name) and self._seen.whole and not self._seen.words:
            return "; if each row stands for so many, repeat the rows and leave it out"
        return ""

    def _missing_remark(self) -> str:
        markers = sorted(self.markers - set(MISSING_VALUES))
        if not markers:
            return ""
        return "; " + ", ".join(map(repr, markers)) + " as missing"

    def _count(self, texts: pl.Series) -> None:
        """Add to the number of each text; forget all of them once there are too many."""
        if self._uncounted:
            return
        found = texts.alias("value").value_counts().cast({"count": pl.Int64})
        joined = pl.concat([self._counts, found])
        self._counts = joined.group_by("value").agg(pl.col("count").sum())
        if len(self._counts) > KEPT_TEXTS:
            self._uncounted = True
            self._counts = self._counts.clear()

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
