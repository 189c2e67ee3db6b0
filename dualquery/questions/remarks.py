"""What ranges cut, what lies beyond the edges of a column, and what it does not have: remarks.

What lies beyond the edges is counted in the outermost buckets, in an unknown part of their rows. A
range that ends at an outermost edge, or beyond it, tells it apart: it becomes *pieces* of the
bucket, likely empty and at most all of it, and the limits of an answer allow for that.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import MISSING_LABEL, OTHER_LABEL, Column
from dualquery.data.schema.dates import CYCLES, Dates
from dualquery.data.schema.numbers import finite_number, in_another_style
from dualquery.data.schema.numeric import Numeric
from dualquery.questions.allowed_values import Allowed, Pieces, pieces_of
from dualquery.questions.syntax_tree import Literals, compared, quoted

OF_INTERVAL = "the interval allows for any values in these buckets"
"""Said of an interval where ranges cut a bucket, or tell apart numbers or dates beyond all."""


def on_cuts(column: Column, literals: Iterable[Allowed]) -> str:
    """Return a remark on the buckets that ranges cut; empty if they cut none."""
    if not isinstance(column, Numeric):
        return ""
    cut = np.flatnonzero(np.bincount(pieces_of(column, literals).value) > 1).tolist()
    if not cut:
        return ""
    labels = ", ".join(column.labels[bucket] for bucket in cut)
    even = all(column.rules[bucket] == "uniform" for bucket in cut)
    return (
        f"{column.name} is cut within {labels}, as if its numbers lay "
        f"{'evenly' if even else 'as the schema says'} there"
    )


def on_what_lies_beyond(column: Column, literals: Iterable[Allowed]) -> str:
    """Return a remark on what lies beyond the edges, if ranges tell it apart; else empty."""
    if not any(beyond_edges(column, literals)):
        return ""
    assert isinstance(column, Numeric | Dates)
    kind = "dates" if isinstance(column, Dates) else "numbers"
    first, last = column.labels[0], column.labels[column.buckets - 1]
    return (
        f"{kind} of {column.name} beyond {first} and {last} are counted in these; they may be any "
        "part of them"
    )


def on_clipped_numbers(column: Column) -> str:
    """Return what numbers beyond the edges count as in a mean; empty if none can be there."""
    if not isinstance(column, Numeric) or column.outside != "clip":
        return ""
    return (
        f"numbers of {column.name} below {column.edges[0]:g} count as {column.edges[0]:g}, those "
        f"above {column.bounds[-1][1]:g} as {column.bounds[-1][1]:g}"
    )


def on_unlisted(column: Column) -> str:
    """Return what texts that are not listed count as among numbers; empty if none can be there."""
    if OTHER_LABEL not in column.labels:
        return ""
    return f"what {column.name} does not list, {OTHER_LABEL}, counts as no number"


def beyond_edges(
    column: Column, literals: Iterable[Allowed]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return where the parts begin that ranges tell apart, below all buckets and above them."""
    if not _clips(column):
        return (), ()
    spans = [span for each in literals if isinstance(each, tuple) for span in each]
    ends = {end for span in spans for end in (span.low, span.high) if math.isfinite(end)}
    if isinstance(column, Numeric):
        (least, _), (_, most), whole = column.bounds[0], column.bounds[-1], column.integer
    else:
        least, most, whole = 0.0, column.buckets - 1.0, True
    first = most + 1.0 if whole else math.nextafter(most, math.inf)
    below: set[float] = set()
    above: set[float] = set()
    if any(end <= least for end in ends):
        below = {-math.inf, *(end for end in ends if end < least)}
    # Whole numbers that end at the last edge stop at the next number, others at the edge itself.
    if any(end >= (first if whole else most) for end in ends):
        above = {first, *(end for end in ends if end > first)}
    return tuple(sorted(below)), tuple(sorted(above))


def opened(pieces: Pieces, column: Column, literals: Iterable[Allowed]) -> Pieces:
    """Return the pieces of a column, and those beyond its edges that literals tell apart."""
    below, above = beyond_edges(column, literals)
    if not below and not above:
        return pieces
    assert isinstance(column, Numeric | Dates)
    behind = int(np.searchsorted(pieces.value, column.buckets))
    first = _empty(0, float(pieces.low[0]), below)
    last = _empty(column.buckets - 1, float(pieces.high[behind - 1]), above)
    parts = zip(first, vars(pieces).values(), last, strict=True)
    return Pieces(*(np.concatenate((a, b[:behind], c, b[behind:])) for a, b, c in parts))


def _clips(column: Column) -> TypeGuard[Numeric | Dates]:
    """Return whether something may lie beyond the edges of a column."""
    if isinstance(column, Dates):
        return column.outside == "clip" and column.by not in CYCLES
    return isinstance(column, Numeric) and column.outside == "clip"


def _empty(
    value: int, edge: float, begins: Sequence[float]
) -> tuple[NDArray[np.int64] | NDArray[np.float64], ...]:
    """Return pieces of a value beyond an edge, which are likely empty."""
    at_edge = np.full(len(begins), edge)
    values = np.full(len(begins), value)
    return values, np.zeros(len(begins)), at_edge, at_edge, at_edge, np.array(begins, np.float64)


def why_not(
    literal: Literals, column: Column, missing_values: Sequence[str], *, refused: bool
) -> str | None:
    """Return what is special about a value that a column does not have; None if nothing is.

    A literal that was not ``refused`` is only asked whether it takes one of the ``missing_values``,
    texts of the schema, for a number or date.
    """
    said = [*compared(literal)]
    values = [text for _, text in said]
    ordered = any(relation[0] in "<>" for relation, _ in said)
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
        avoided = {*column.avoided(missing_values)}
        missing |= bool(avoided.intersection(column.avoided((value,))))
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
