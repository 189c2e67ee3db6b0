"""Names and values that a question gets wrong: why there is none, and what to write."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Sequence

from dualquery.data.schema.checks import MISSING_LABEL
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.missing import avoided_by
from dualquery.data.schema.named_bits import find_bit
from dualquery.data.schema.numbers import finite_number, in_another_style
from dualquery.questions.syntax import (
    Among,
    Between,
    Comparison,
    Literals,
    Question,
    literals_of,
    print_question,
    quoted,
)
from dualquery.runtime.errors import BadInputError

_SIGNS = {"%Y": r"(?P<Y>\d{4})", "%m": r"(?P<m>\d{1,2})", "%d": r"(?P<d>\d{1,2})"}


def why_not(literal: Literals, column: Column, missing_values: Sequence[str]) -> str | None:
    """Return why a literal that cannot be cannot; None if there is nothing special about it.

    Parameters
    ----------
    literal, column
        The literal, and the column that it names.
    missing_values
        The texts that the schema takes as missing values of the column.
    """
    values: tuple[str, ...]
    match literal:
        case Comparison(_, relation, value):
            values, ordered = (value,), relation not in ("=", "!=")
        case Among(_, values):
            ordered = False
        case Between(_, low, high):
            values, ordered = (low, high), True
        case _:
            return None
    for value in values:
        why = None if _known(column, value) else _why(column, value, missing_values, ordered)
        if why is not None:
            return f"column {column.name!r}: {why}"
    return None


def named_missing(literal: Literals, column: Column, missing_values: Sequence[str]) -> str | None:
    """Return that a literal asks for a missing value as for what its bucket holds; else None.

    Parameters
    ----------
    literal, column, missing_values
        As for `why_not`; the column has the literal's values.
    """
    match literal:
        case Comparison(_, "=" | "!=", value):
            values: tuple[str, ...] = (value,)
        case Among(_, values):
            pass
        case _:
            return None
    if not isinstance(column, Numeric | Dates) or not any(missing_values):
        return None
    avoided = {*avoided_by(column, missing_values)}
    for value in values:
        if value not in column.labels and avoided.intersection(avoided_by(column, (value,))):
            return f"column {column.name!r}: {_missing(column, value)}"
    return None


def in_quotation_marks(text: str, names: Sequence[str]) -> str:
    """Return a question with names of columns in quotation marks, where these need them."""
    in_need = [name for name in names if name in text and quoted(name) != name]
    if not in_need:
        return text
    longest_first = "|".join(re.escape(name) for name in sorted(in_need, key=len, reverse=True))
    found = rf'"(?:[^"]|"")*"|(?<!\w)(?P<name>{longest_first})(?!\w)'
    return re.sub(found, lambda at: quoted(at["name"]) if at["name"] else at[0], text)


def value_in_need(question: Question, columns: Sequence[Column]) -> str | None:
    """Return that a value needs quotation marks if it was read in pieces without; else None.

    Parameters
    ----------
    question
        The question, which names what there is not.
    columns
        Those whose values may be meant.
    """
    text = print_question(question)
    literals = (*literals_of(question.condition), *literals_of(question.given))
    whole = {each.value for each in literals if isinstance(each, Comparison)}
    for column in columns:
        for value in column.codes if isinstance(column, Binary | Categorical) else ():
            if quoted(value) == value or value in whole:
                continue
            if not re.search(rf'(?<![\w"]){re.escape(value)}', text):
                continue
            marked = '"' + value.replace('"', '""') + '"'
            return (
                f"column {column.name!r}: signs or words in the value {value!r} mean something "
                f"else in a question; put it in double quotation marks: {quoted(column.name)}="
                f"{marked}"
            )
    return None


def _known(column: Column, value: str) -> bool:
    try:
        find_bit(column, value)
    except BadInputError:
        return False
    return True


def _why(column: Column, value: str, missing_values: Sequence[str], ordered: bool) -> str | None:
    if _is_missing(column, value, missing_values):
        return _missing(column, value)
    if isinstance(column, Dates):
        return _date(column, value, ordered)
    if not isinstance(column, Numeric):
        return None
    # A range may begin or end anywhere.
    other = in_another_style(value, whole=column.integer)
    return other or (None if ordered else _number(column, value))


def _is_missing(column: Column, value: str, missing_values: Sequence[str]) -> bool:
    import polars as pl

    from dualquery.data.encode import MISSING, local_codes

    cell = pl.Series([value], dtype=pl.String)
    return bool(local_codes(column, cell, missing_values, "")[0] == MISSING)


def _missing(column: Column, value: str) -> str:
    listed = f"the schema lists {value!r} as a missing value"
    if MISSING_LABEL in column.labels:
        return f"{listed}; ask for {quoted(column.name)}={MISSING_LABEL}"
    return f"{listed}, and missing values are no value of this column"


def _number(column: Numeric, value: str) -> str | None:
    number, low, high = finite_number(value), column.edges[0], column.bounds[-1][1]
    if number is None or low <= number <= high:
        return None
    beyond = f"{value} lies outside of its numbers, {low:g} to {high:g}"
    if column.outside != "clip":
        return beyond
    nearest = column.labels[0 if number < low else column.buckets - 1]
    return f"{beyond}; such numbers count in the nearest bucket, {quoted(column.name)}={nearest}"


def _date(column: Dates, value: str, ordered: bool) -> str | None:
    places = column.places_of_text(value)
    if places is not None:
        return _beyond(column, value, places, ordered)
    for pattern in column.texts_of_dates:
        parts = _parts(pattern, value)
        if parts is None:
            continue
        try:
            datetime.date(*parts)
        except ValueError:
            return f"there is no date {value}{_last_day(*parts)}"
    return None


def _last_day(year: int, month: int, day: int) -> str:  # noqa: ARG001
    if not (1 <= month <= 12 and year):
        return ""
    last = calendar.monthrange(year, month)[1]
    return f": {calendar.month_name[month]} {year} has {last} days"


def _beyond(column: Dates, value: str, places: tuple[int, int], ordered: bool) -> str | None:
    """Return why a column does not have a date or period that lies beyond its own."""
    if places[0] < column.buckets and places[1] >= 0:
        return None
    first, last = column.labels[0], column.labels[column.buckets - 1]
    beyond = f"{value} lies outside of its dates, {first} to {last}"
    if column.outside != "clip":
        return beyond
    if ordered:
        return None
    nearest = first if places[1] < 0 else last
    return f"{beyond}; such dates count in the nearest period, {quoted(column.name)}={nearest}"


def _parts(pattern: str, value: str) -> tuple[int, int, int] | None:
    """Return year, month and day of a text that is written as a date, whether there is one."""
    if any(pattern.count(sign) != 1 for sign in _SIGNS):
        return None
    shape = re.escape(pattern)
    for sign, part in _SIGNS.items():
        shape = shape.replace(sign, part)
    found = re.fullmatch(shape, value.strip(), re.ASCII)
    return None if found is None else (int(found["Y"]), int(found["m"]), int(found["d"]))
