"""Values that a question gets wrong: why there is none, and what to write."""

from __future__ import annotations

from collections.abc import Sequence

from dualquery.data.schema.checks import MISSING_LABEL
from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.missing import avoided_by
from dualquery.data.schema.numbers import finite_number, in_another_style
from dualquery.questions.syntax import Among, Between, Comparison, Literals, quoted


def why_not(
    literal: Literals, column: Column, missing_values: Sequence[str], *, refused: bool
) -> str | None:
    """Return what is special about a value that a column does not have; None if nothing is.

    Parameters
    ----------
    literal, column
        The literal, and the column that it names.
    missing_values
        The texts that the schema takes as missing values of the column.
    refused
        Whether the literal was refused; otherwise it is asked only whether it takes a missing value
        for a number or date.
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
    if ordered and not refused:
        return None
    known = {*column.labels, *getattr(column, "codes", ())}
    for value in values:
        if value in known:
            continue
        why = _missing(column, value, missing_values)
        if refused and why is None:
            why = _beyond(column, value, ordered)
        if why is not None:
            return f"column {column.name!r}: {why}"
    return None


def _missing(column: Column, value: str, missing_values: Sequence[str]) -> str | None:
    missing = value in missing_values
    if isinstance(column, Numeric | Dates):
        avoided = {*avoided_by(column, missing_values)}
        missing |= bool(avoided.intersection(avoided_by(column, (value,))))
    if not missing:
        return None
    listed = f"the schema lists {value!r} as a missing value"
    if MISSING_LABEL in column.labels:
        return f"{listed}; ask for {quoted(column.name)}={MISSING_LABEL}"
    return f"{listed}, and missing values are no value of this column"


def _beyond(column: Column, value: str, ordered: bool) -> str | None:
    if isinstance(column, Dates):
        first, last = column.places_of_text(value) or (0, 0)
        below, above = last < 0, first >= column.buckets
        held = f"dates, {column.labels[0]} to {column.labels[column.buckets - 1]}"
    elif isinstance(column, Numeric) and not ordered:
        if other := in_another_style(value, whole=column.integer):
            return other
        low, high = column.edges[0], column.bounds[-1][1]
        number = finite_number(value)
        below, above = (False, False) if number is None else (number < low, number > high)
        held = f"numbers, {low:g} to {high:g}"
    else:
        return None
    if not (below or above):
        return None
    beyond = f"{value} lies outside of its {held}"
    if column.outside != "clip":
        return beyond
    nearest = column.labels[0 if below else column.buckets - 1]
    counted = f"what lies there counts in {quoted(column.name)}={nearest}"
    return None if ordered else f"{beyond}; {counted}"
