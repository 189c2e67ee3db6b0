"""What ranges cut, and what lies beyond the edges of a column that clips: pieces and remarks.

What lies beyond the edges is counted in the outermost buckets, in an unknown part of their rows. A
range that ends at an outermost edge, or beyond it, tells it apart: it becomes *pieces* of the
bucket, likely empty and at most all of it, and the limits of an answer allow for that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

import numpy as np

from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.dates import CYCLES, Dates
from dualquery.data.schema.named_bits import find_bit
from dualquery.data.schema.numbers import finite_number
from dualquery.questions.columns import Allowed, Pieces, pieces_of
from dualquery.questions.syntax import Among, Between, Comparison, Literals, quoted

OF_INTERVAL = "the interval allows for any values in these buckets"
"""Said of an interval where ranges cut a bucket, or tell apart numbers or dates beyond all."""

_MOST_EDGES = 4
"""Edges that are proposed, at most."""


def on_whole_buckets(literals: Iterable[tuple[Literals, Column]]) -> str:
    """Return a remark on numbers and dates that stand for all of their bucket; empty if none do."""
    told = dict.fromkeys(
        f"{text} for all of {quoted(column.name)}={label}"
        for literal, column in literals
        for text, label in _stand_for(column, literal)
    )
    return f"the answer takes {', '.join(told)}" if told else ""


def _stand_for(column: Column, literal: Literals) -> Iterator[tuple[str, str]]:
    """Yield the texts of a literal that mean more than they say, each with what it means."""
    texts: tuple[str, ...] = ()
    match literal:
        case Comparison(_, relation, value):
            # Of numbers, a range begins and ends where it says.
            texts = (value,) if isinstance(column, Dates) or relation in ("=", "!=") else ()
        case Among(_, values):
            texts = values
        case Between(_, low, high) if isinstance(column, Dates):
            texts = (low, high)
    for text in texts:
        if isinstance(column, Dates):
            place, last = column.places_of_text(text) or (-1, -1)
            if place < last or not 0 <= place < column.buckets or text == column.labels[place]:
                continue
            if column.by != "day" or not column.says_day(text):
                yield text, column.labels[place]
        elif isinstance(column, Numeric) and finite_number(text) is not None:
            bit, _ = find_bit(column, text)
            low_end, high_end = column.bounds[bit]
            if low_end < high_end:
                yield text, column.labels[bit]


def on_cuts(column: Column, literals: Iterable[Allowed]) -> str:
    """Return a remark on the buckets that ranges cut; empty if they cut none."""
    if not isinstance(column, Numeric):
        return ""
    parts = np.bincount(pieces_of(column, literals).value)
    cut = np.flatnonzero(parts > 1).tolist()
    if not cut:
        return ""
    labels = ", ".join(column.labels[bucket] for bucket in cut)
    inner = {edge for bucket in cut for edge in (bucket, bucket + 1)} & {*range(1, column.buckets)}
    uncut = [column.edge_texts[at] for at in sorted(inner)[:_MOST_EDGES]]
    edges = " or ".join(filter(None, (", ".join(uncut[:-1]), *uncut[-1:])))
    advice = f"; with >= or < at {edges} nothing is cut" if uncut else ""
    even = all(column.rules[bucket] == "uniform" for bucket in cut)
    return (
        f"{column.name} is cut within {labels}, as if its numbers lay "
        f"{'evenly' if even else 'as the schema says'} there{advice}"
    )


def on_what_lies_beyond(column: Column, literals: Iterable[Allowed]) -> str:
    """Return a remark on what lies beyond the edges, if ranges tell it apart; else empty."""
    below, above = beyond_edges(column, literals)
    if not below and not above:
        return ""
    assert isinstance(column, Numeric | Dates)
    first, last = column.labels[0], column.labels[column.buckets - 1]
    if isinstance(column, Dates):
        kind, sides = "dates", [f"before {first}", f"after {last}"]
    else:
        kind = "numbers"
        sides = [f"below {column.edges[0]:g}", f"above {column.bounds[-1][1]:g}"]
    told = [
        f"{side} are counted in {label}"
        for there, side, label in zip((below, above), sides, (first, last), strict=True)
        if there
    ]
    whole = "these" if below and above else "it"
    return f"{kind} of {column.name} {' and those '.join(told)}; they may be any part of {whole}"


def on_clipped_numbers(column: Column) -> str:
    """Return what numbers beyond the edges count as in a mean; empty if none can be there."""
    if not isinstance(column, Numeric) or column.outside != "clip":
        return ""
    return (
        f"numbers of {column.name} below {column.edges[0]:g} count as {column.edges[0]:g}, those "
        f"above {column.bounds[-1][1]:g} as {column.bounds[-1][1]:g}"
    )


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
    numbers = pieces.part_of(slice(behind))
    return Pieces.joined(
        (
            _empty(0, float(numbers.low[0]), below),
            numbers,
            _empty(column.buckets - 1, float(numbers.high[-1]), above),
            pieces.part_of(slice(behind, None)),
        )
    )


def _clips(column: Column) -> TypeGuard[Numeric | Dates]:
    """Return whether something may lie beyond the edges of a column."""
    if isinstance(column, Dates):
        return column.outside == "clip" and column.by not in CYCLES
    return isinstance(column, Numeric) and column.outside == "clip"


def _empty(value: int, edge: float, begins: Sequence[float]) -> Pieces:
    """Return pieces of a value beyond an edge, which are likely empty."""
    count = len(begins)
    at_edge = np.full(count, edge)
    values = np.full(count, value)
    return Pieces(values, np.zeros(count), at_edge, at_edge, at_edge, np.array(begins, np.float64))
