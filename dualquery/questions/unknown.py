"""Values that a question gets wrong: why there is none, and what to write."""

from __future__ import annotations

from collections.abc import Sequence

from dualquery.data.schema.checks import MISSING_LABEL
from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.missing import avoided_by
from dualquery.data.schema.named_bits import find_bit
from dualquery.data.schema.numbers import finite_number, in_another_style
from dualquery.questions.syntax import Among, Between, Comparison, Literals, quoted
from dualquery.runtime.errors import BadInputError


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
        places = column.places_of_text(value)
        return None if places is None else _beyond(column, value, places, ordered)
    if not isinstance(column, Numeric):
        return None
    # A range may begin or end anywhere.
    other = in_another_style(value, whole=column.integer)
    return other or (None if ordered else _number(column, value))


def _is_missing(column: Column, value: str, missing_values: Sequence[str]) -> bool:
    import polars as pl

    from dualquery.data.encoding.encode import MISSING, local_codes

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
