"""The schema that a careful person would draft for a table, with what of it came from the data.

`dualquery.data.draft` makes a schema for any table at once, so that a first release needs none.
This one is for a person to read, correct and declare: buckets suit the values, codes stay codes,
identifiers stay out, and every choice is explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dualquery.data.buckets import BUCKETS, are_months, covering, usual_range, year_edges
from dualquery.data.draft import name_of, plain_column
from dualquery.data.draft_remarks import (
    on_counts,
    on_marks,
    on_missing,
    on_rare,
    on_seconds,
    on_several_answers,
    on_thousands,
    on_totals,
    on_twins,
    on_unread_dates,
)
from dualquery.data.edges import fitting_edges
from dualquery.data.hints import (
    have_decimal_commas,
    names_lists,
    names_rows,
    number_with_signs,
)
from dualquery.data.profile import FEW_ROWS, KEPT_TEXTS, MARKERS, Profile
from dualquery.data.readers.source import TableSource
from dualquery.data.schema.column_choice import ColumnChoice
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates, fitting_period
from dualquery.data.schema.moments import CLOCKS
from dualquery.data.schema.table import TableSchema
from dualquery.data.seen_values import (
    FEWEST_NAMES,
    MISSING_VALUES,
    order_of_text,
    see_columns,
)
from dualquery.data.spreads import spread, with_decimals
from dualquery.runtime.errors import BadInputError

_OPPOSITES = (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("off", "on"))

_LEAST_LISTED = 0.25
"""Categories are not worth their places where they name a smaller part of the rows than this."""

_LAST_REAL_YEAR = 2199
"""Later dates, such as 9999-12-31, usually say that something has no end."""

_WELL_LISTED = 0.5
"""Where they name a smaller part than this, groups of them would say more."""


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
    """Draft a schema for a person to check, in a pass over a table: two where numbers of it stand
    for missing values.

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
    profiles = see_columns(source, columns, Profile)
    if marks := _marks(profiles):
        profiles = see_columns(source, columns, lambda name: Profile(name, absent=marks[name]))
    drafted = tuple(_completed(_drafted(each), each) for each in profiles.values())
    kept = tuple(each.column for each in drafted if each.column is not None)
    twins = on_twins({column.name: profiles[column.name] for column in kept})
    drafted = tuple(
        replace(each, remark=each.remark + twins.get(each.name, "")) for each in drafted
    )
    if not kept:
        reasons = "; ".join(f"{each.name!r}: {each.remark}" for each in drafted)
        raise BadInputError(f"{source.label}: no column can be kept ({reasons})")
    markers = set().union(*(profile.markers for profile in profiles.values()))
    schema = TableSchema(
        columns=kept,
        name=name_of(source),
        declared=False,
        missing_values=tuple(text for text in MARKERS if text in {*MISSING_VALUES, *markers}),
    )
    return Draft(schema, drafted)


def _marks(profiles: Mapping[str, Profile]) -> dict[str, list[float]]:
    """Return for each column the numbers that stand for missing values in it.

    Such a number is sure to be none of the values of some column. It is missing in others, too,
    where it lies apart from their numbers, or only words are beside it.
    """
    sure = {mark for profile in profiles.values() for mark in profile.sure_marks}
    found: dict[str, list[float]] = {}
    for name, profile in profiles.items() if sure else ():
        apart = {*profile.marks}
        words_alone = {*profile.numbers.tolist()} - apart <= sure
        found[name] = sorted(sure if words_alone else sure & apart)
    return found


def _completed(drafted: DraftedColumn, profile: Profile) -> DraftedColumn:
    """Return a proposal that lists the missing values met in the column, and asks about totals."""
    column = drafted.column
    if column is not None and profile.met:
        column = replace(column, missing_values=tuple(sorted(profile.met)))
    return replace(drafted, column=column, remark=drafted.remark + on_totals(profile))


def _drafted(profile: Profile) -> DraftedColumn:
    """Return what a column's values suggest."""
    dates = _dates(profile)
    if dates is not None:
        return dates
    reason = _reason_against(profile)
    if reason:
        return DraftedColumn(profile.name, None, reason)
    if not profile.many and not profile.is_amount:
        return _few(profile)
    return _listed(profile) if profile.is_text or profile.lists_codes else _buckets(profile)


def _dates(profile: Profile) -> DraftedColumn | None:
    """Propose years, months or days, whichever are about as many as buckets of numbers."""
    found = profile.moments.found()
    if found is None:
        return None
    pattern, first, last = found
    slips = profile.moments.slips
    missing: Literal["error", "category"] = "category" if profile.seen.missing or slips else "error"
    unparsable: Literal["error", "missing"] = "missing" if slips else "error"
    if pattern in CLOCKS:
        clock = Dates(
            profile.name, "hour of day", format=pattern, missing=missing, unparsable=unparsable
        )
        return DraftedColumn(profile.name, clock, "hours of the day" + on_missing(profile))
    low, high = first.date(), last.date()
    by = fitting_period((high - low).days)
    remark = f"its first and last {by}"
    if pattern is not None and profile.moments.several:
        remark += f", read as {pattern}: the day and the month may be the other way round"
    if low == high:
        return DraftedColumn(profile.name, None, "one date only")
    column = Dates(
        profile.name,
        by,
        first=low.isoformat(),
        last=high.isoformat(),
        format=pattern,
        missing=missing,
        outside="clip",
        unparsable=unparsable,
    ).with_whole_periods()
    if high.year > _LAST_REAL_YEAR:
        remark += (
            f"; {high.isoformat()} may stand for no end: name the latest real date as last, and "
            "it falls in the last bucket"
        )
    if slips:
        remark += f"; texts such as {', '.join(map(repr, slips))} count as missing"
    return DraftedColumn(profile.name, column, remark + on_missing(profile))


def _reason_against(profile: Profile) -> str:
    """Return why a column should stay out; the empty text if it should not."""
    seen = profile.seen
    if seen.refused is not None and seen.refused.startswith("type "):
        return f"{seen.refused}"
    if not len(profile.counts) and not profile.uncounted:
        return "no value at all"
    written = number_with_signs(profile.counts["value"]) if seen.refused is not None else None
    if written is not None:
        if have_decimal_commas(profile.counts["value"]):
            return (
                f"numbers with decimal commas, such as {written!r}: --csv decimal=, reads those of "
                "a CSV file"
            )
        return f"numbers written such as {written!r}: write them without signs"
    if profile.is_text and profile.uncounted:
        return f"more than {KEPT_TEXTS:,} different texts"
    if (
        profile.is_text
        and len(profile.counts) >= FEWEST_NAMES
        and profile.counts["count"].max() == 1
    ):
        return "every value is different, as in names of rows" + on_unread_dates(profile)
    if not profile.is_text and seen.many and seen.whole and profile.numbers_rows:
        return "whole numbers that never repeat, as in names of rows" + on_seconds(profile)
    if seen.many and seen.low == seen.high:
        return "many texts for one number"
    if profile.many and names_rows(profile.name) and (profile.is_text or seen.whole):
        reason = (
            "many values, as in names of persons or households, by what it is called: --unit keeps "
            "their rows together"
        )
        if names_lists(profile.name):
            reason += "; if a row is one item of a list, make each list a row"
        return reason
    if profile.is_text and profile.part_listed < _LEAST_LISTED:
        how_rare = f"of which the most frequent are in {profile.part_listed:.0%} of the rows only"
        if not len(profile.listed):
            how_rare = f"each in fewer than {FEW_ROWS} rows"
        return (
            f"{len(profile.counts):,} different texts, {how_rare}: group them, by their first "
            "signs perhaps" + on_several_answers(profile)
        )
    return ""


def _few(profile: Profile) -> DraftedColumn:
    """Propose a category for each of a few values, or one bit for two opposite ones."""
    seen = profile.seen
    texts = {text.lower(): text for text in seen.texts}
    if not seen.missing and not seen.boolean and len(seen.texts) == len(texts) == 2:
        for zero, one in _OPPOSITES:
            if texts.keys() == {zero, one}:
                named = Binary(profile.name, zero=texts[zero], one=texts[one])
                return DraftedColumn(profile.name, named, "its two values")
    column = plain_column(replace(seen, many=False))
    if isinstance(column, Binary):
        return DraftedColumn(profile.name, column, "its two values")
    remark = f"its {len(seen.texts)} values"
    if isinstance(column, Categorical) and len(texts) < len(seen.texts):
        column = _spellings_joined(column)
        remark += ", those that differ by large and small letters taken as one"
    if len(seen.texts) < 2:
        remark = "one value only: leave it out if it cannot differ"
    if have_decimal_commas(seen.texts):
        remark += "; if they are numbers, --csv decimal=, reads those of a CSV file"
    remark += on_thousands(profile)
    if any("\n" in text for text in seen.texts):
        remark += "; a cell has several lines: is a quotation mark not closed where it should be?"
    if any(text != text.strip() for text in seen.texts):
        remark += "; some have spaces around them, which --csv spaces=trim leaves out of a CSV file"
    remark += on_counts(profile) + on_marks(profile)
    if seen.words:
        remark += on_rare(profile) + on_several_answers(profile)
    elif profile.rare:
        # Each number stays as it is: no more of them than buckets would be, and ranges and means
        # of them can be asked all the same.
        remark += (
            f"; {profile.rare} in fewer than {FEW_ROWS} rows: keep what everybody knows to exist, "
            "or, if they count or measure, put them into buckets (kind numeric)"
        )
    return DraftedColumn(profile.name, column, remark + on_missing(profile))


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


def _listed(profile: Profile) -> DraftedColumn:
    """Propose texts or codes as categories; of too many the most frequent, and one for others."""
    listed = profile.listed
    column = Categorical(
        profile.name,
        values=tuple((text,) for text in sorted(listed["value"], key=order_of_text)),
        missing="category" if profile.seen.missing else "error",
        outside="error" if len(listed) == len(profile.counts) else "other",
    )
    what = "texts" if profile.is_text else "numbers"
    if len(listed) == len(profile.counts):
        remark = f"its {len(listed)} {what}"
    elif profile.all_frequent_listed:
        remark = (
            f"the {len(listed)} of {len(profile.counts):,} {what} that are in {FEW_ROWS} rows or "
            f"more ({profile.part_listed:.0%})"
        )
    else:
        remark = (
            f"the {len(listed)} most frequent of {len(profile.counts):,} {what} "
            f"({profile.part_listed:.0%})"
        )
    if not profile.is_text:
        remark += ", taken for codes since their order says nothing of how frequent they are"
    if profile.part_listed < _WELL_LISTED:
        remark += ": groups of them, by their first signs perhaps, would say more"
    remark += on_rare(profile) + on_several_answers(profile)
    return DraftedColumn(profile.name, column, remark + on_missing(profile))


def _buckets(profile: Profile) -> DraftedColumn:
    """Propose buckets that suit how numbers lie."""
    seen, values = profile.seen, profile.sample
    low, high = usual_range(values, seen.low, seen.high)
    if seen.integer and are_months(values):
        edges = year_edges(seen.low, seen.high, BUCKETS)
    else:
        edges = fitting_edges(values.clip(low, high), low, high, BUCKETS, whole=seen.integer)
        edges = covering(edges, high, whole=seen.integer)
    column = Numeric(
        profile.name,
        edges=edges,
        integer=seen.integer,
        missing="category" if seen.missing or seen.words else "error",
        outside="clip",
        unparsable="missing" if seen.words else "error",
        within=spread(values, edges, whole=seen.integer),
    )
    column = with_decimals(column, values)
    equal = len(set(np.diff(edges).tolist())) == 1
    remark = "its range" if equal else "its range and how its values lie"
    if column.within != "uniform":
        remark += "; how they lie in some buckets (within)"
    if column.decimals is not None:
        remark += "; the decimals of its numbers (decimals)"
    if (low, high) != (seen.low, seen.high):
        remark += "; a few numbers that lie far beyond are clipped"
    if profile.may_be_codes:
        remark += "; if they are codes, list them as categories"
    remark += on_thousands(profile)
    remark += on_counts(profile) + on_marks(profile) + on_seconds(profile)
    if seen.words:
        shown = ", ".join(map(repr, sorted(seen.words)[:3]))
        remark += f"; texts such as {shown} count as missing"
    if not seen.repeats and seen.whole and seen.rows >= FEWEST_NAMES:
        remark += "; no value comes twice: leave it out if it names rows"
    elif profile.repeats_like_names:
        remark += "; values come again as names do: leave it out if it names persons or things"
    return DraftedColumn(profile.name, column, remark + on_missing(profile))
