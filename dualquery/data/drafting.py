"""The schema that a careful person would draft for a table, with what of it came from the data.

`dualquery.data.draft` makes a schema for any table at once, so that a first release needs none.
This one is for a person to read, correct and declare: buckets suit the values, codes stay codes,
identifiers stay out, and every choice is explained.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from dualquery.data.buckets import BUCKETS, are_months, usual_range, year_edges
from dualquery.data.draft import name_of, plain_column
from dualquery.data.edges import fitting_edges
from dualquery.data.hints import (
    are_seconds,
    grouped_thousands,
    have_decimal_commas,
    names_counts,
    names_lists,
    names_rows,
    names_total,
    names_weights,
    number_with_signs,
    several_answers,
)
from dualquery.data.profile import FEW_ROWS, KEPT_TEXTS, MARKERS, Profile
from dualquery.data.readers.source import TableSource
from dualquery.data.schema.column_choice import ColumnChoice
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import CLOCKS, Dates, fitting_period
from dualquery.data.schema.table import TableSchema
from dualquery.data.seen_values import (
    FEWEST_NAMES,
    MISSING_VALUES,
    order_of_text,
    see_columns,
    starts_with_a_day,
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
    if marks := _marks(profiles.values()):
        profiles = see_columns(source, columns, partial(Profile, absent=marks))
    drafted = tuple(_with_total(_drafted(each), each) for each in profiles.values())
    kept = tuple(each.column for each in drafted if each.column is not None)
    if not kept:
        reasons = "; ".join(f"{each.name!r}: {each.remark}" for each in drafted)
        raise BadInputError(f"{source.label}: no column can be kept ({reasons})")
    markers = set().union(*(profile.markers for profile in profiles.values()))
    met = set().union(*(profile.met for profile in profiles.values()))
    schema = TableSchema(
        columns=kept,
        name=name_of(source),
        declared=False,
        missing_values=(
            *(text for text in MARKERS if text in {*MISSING_VALUES, *markers}),
            *sorted(met),
        ),
    )
    return Draft(schema, drafted)


def _marks(profiles: Iterable[Profile]) -> list[float]:
    """Return the numbers that stand for missing values in some column, and for no value in any.

    What is missing is said for all columns at once.
    """
    seen = tuple(profiles)
    marks = {mark for profile in seen for mark in profile.sure_marks}
    for profile in seen if marks else ():
        values = set(profile.numbers.tolist()) - {*profile.marks}
        if values - marks:  # else words alone are beside them
            marks -= values
    return sorted(marks)


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
        return DraftedColumn(profile.name, clock, "hours of the day" + _missing_remark(profile))
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
    return DraftedColumn(profile.name, column, remark + _missing_remark(profile))


def _reason_against(profile: Profile) -> str:
    """Return why a column should stay out; the empty text if it should not."""
    seen = profile.seen
    if seen.refused is not None and seen.refused.startswith("type "):
        return f"{seen.refused}"
    if not len(profile.counts) and not profile.uncounted:
        return "no value at all"
    written = number_with_signs(profile.counts["value"]) if seen.refused is not None else None
    if written is not None:
        commas = have_decimal_commas(profile.counts["value"])
        remedy = "; --csv decimal=, reads those of a CSV file" if commas else ""
        return f"numbers written such as {written!r}: write them without signs{remedy}"
    if profile.is_text and profile.uncounted:
        return f"more than {KEPT_TEXTS:,} different texts"
    if (
        profile.is_text
        and len(profile.counts) >= FEWEST_NAMES
        and profile.counts["count"].max() == 1
    ):
        return "every value is different, as in names of rows" + _unread_remark(profile)
    if not profile.is_text and seen.many and seen.whole and profile.numbers_rows:
        return "whole numbers that never repeat, as in names of rows" + _seconds_remark(profile)
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
        return (
            f"{len(profile.counts):,} different texts, of which the most frequent are in "
            f"{profile.part_listed:.0%} of the rows only: group them, by their first signs perhaps"
            + _several_remark(profile)
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
    remark += _grouped_remark(profile)
    if any("\n" in text for text in seen.texts):
        remark += "; a cell has several lines: is a quotation mark not closed where it should be?"
    if any(text != text.strip() for text in seen.texts):
        remark += "; some have spaces around them, which --csv spaces=trim leaves out of a CSV file"
    remark += _count_remark(profile) + _mark_remark(profile)
    if seen.words:
        remark += _rare_remark(profile) + _several_remark(profile)
    elif profile.rare:
        # Each number stays as it is: no more of them than buckets would be, and ranges and means
        # of them can be asked all the same.
        remark += (
            f"; {profile.rare} in fewer than {FEW_ROWS} rows: keep what everybody knows to exist, "
            "or, if they count or measure, put them into buckets (kind numeric)"
        )
    return DraftedColumn(profile.name, column, remark + _missing_remark(profile))


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
    else:
        remark = (
            f"the {len(listed)} most frequent of {len(profile.counts):,} {what} "
            f"({profile.part_listed:.0%})"
        )
    if not profile.is_text:
        remark += ", taken for codes since their order says nothing of how frequent they are"
    if profile.part_listed < _WELL_LISTED:
        remark += ": groups of them, by their first signs perhaps, would say more"
    remark += _rare_remark(profile) + _several_remark(profile)
    return DraftedColumn(profile.name, column, remark + _missing_remark(profile))


def _buckets(profile: Profile) -> DraftedColumn:
    """Propose buckets that suit how numbers lie."""
    seen, values = profile.seen, profile.sample
    low, high = usual_range(values, seen.low, seen.high)
    if seen.integer and are_months(values):
        edges = year_edges(seen.low, seen.high, BUCKETS)
    else:
        edges = fitting_edges(values.clip(low, high), low, high, BUCKETS, whole=seen.integer)
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
    remark += _grouped_remark(profile)
    remark += _count_remark(profile) + _mark_remark(profile) + _seconds_remark(profile)
    if seen.words:
        shown = ", ".join(map(repr, sorted(seen.words)[:3]))
        remark += f"; texts such as {shown} count as missing"
    if not seen.repeats and seen.whole and seen.rows >= FEWEST_NAMES:
        remark += "; no value comes twice: leave it out if it names rows"
    elif profile.repeats_like_names:
        remark += "; values come again as names do: leave it out if it names persons or things"
    return DraftedColumn(profile.name, column, remark + _missing_remark(profile))


def _count_remark(profile: Profile) -> str:
    """Return a remark on a column that may say how much each row counts."""
    if profile.seen.words:
        return ""
    if names_counts(profile.name) and profile.seen.whole:
        return "; if each row stands for so many, repeat the rows and leave it out"
    if names_weights(profile.name):
        return "; if each row counts by it, leave it out and give --weight and --max-weight"
    return ""


def _grouped_remark(profile: Profile) -> str:
    """Return a remark on numbers whose points may separate thousands."""
    shown = grouped_thousands(profile.counts["value"])
    if shown is None:
        return ""
    return f"; if {shown} is {shown.replace('.', '')}, --csv decimal=, reads it so in a CSV file"


def _rare_remark(profile: Profile) -> str:
    """Return a remark on categories that may be known from the table alone."""
    if not profile.rare:
        return ""
    return f"; {profile.rare} in fewer than {FEW_ROWS} rows: keep what everybody knows to exist"


def _unread_remark(profile: Profile) -> str:
    """Return a remark on dates that are written in a way that is not known."""
    shown = profile.counts["value"].min()
    if not starts_with_a_day(profile.counts["value"]):
        return ""
    return f"; if {shown!r} is a time, write it as 2024-01-31 18:05"


def _several_remark(profile: Profile) -> str:
    """Return a remark on cells that may hold several answers."""
    shown = several_answers(profile.counts["value"])
    if shown is None:
        return ""
    return f"; if cells such as {shown!r} hold several answers, make each answer a column"


def _seconds_remark(profile: Profile) -> str:
    """Return a remark on numbers that may be times."""
    if not profile.seen.whole or not are_seconds(profile.seen.low, profile.seen.high):
        return ""
    return "; if they are seconds since 1970, write them as dates"


def _mark_remark(profile: Profile) -> str:
    """Return a remark on numbers that may stand for missing values."""
    if not profile.marks:
        return ""
    *others, last = (f"{mark:g}" for mark in profile.marks)
    marks = f"{', '.join(others)} and {last}" if others else last
    return (
        f"; {marks}, apart from all others, may stand for missing values: then empty these cells, "
        "or name the number under missing_values, which holds for all columns"
    )


def _missing_remark(profile: Profile) -> str:
    """Return a remark on texts that are taken for missing values."""
    remark = ""
    if markers := sorted(profile.markers - set(MISSING_VALUES)):
        remark = "; " + ", ".join(map(repr, markers)) + " as missing"
    if profile.met:
        far = ", far from all other numbers," if len(profile.numbers) else ""
        remark += f"; {', '.join(sorted(profile.met))}{far} as missing"
    return remark


def _with_total(drafted: DraftedColumn, profile: Profile) -> DraftedColumn:
    """Add a remark on a row below the table, as sheets have one."""
    shown = names_total(profile.counts["value"])
    if shown is None:
        return drafted
    remark = f"{drafted.remark}; if the row of {shown!r} sums up others, delete it"
    return replace(drafted, remark=remark)
