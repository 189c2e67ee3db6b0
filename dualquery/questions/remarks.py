"""What is said of ranges of numbers: buckets that they cut, and what lies beyond all buckets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.questions.beyond import beyond_edges
from dualquery.questions.columns import Allowed, pieces_of


def on_cuts(column: Column, literals: Iterable[Allowed]) -> str:
    """Return a remark on the buckets that ranges cut; empty if they cut none."""
    if not isinstance(column, Numeric):
        return ""
    parts = np.bincount(pieces_of(column, literals).value)
    cut = np.flatnonzero(parts > 1).tolist()
    if not cut:
        return ""
    labels = ", ".join(column.labels[bucket] for bucket in cut)
    even = all(column.rules[bucket] == "uniform" for bucket in cut)
    return (
        f"{column.name} is cut within {labels}, as if its numbers lay "
        f"{'evenly' if even else 'as the schema says'} there; the interval allows for any numbers "
        "there"
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
        sides = [f"below {column.edges[0]:g}", f"above {column.edges[-1]:g}"]
    told = [
        f"{side} are counted in {label}"
        for there, side, label in zip((below, above), sides, (first, last), strict=True)
        if there
    ]
    return (
        f"{kind} of {column.name} {' and those '.join(told)}; they may be any part of it, and the "
        "interval allows for that"
    )


def on_clipped_numbers(column: Column) -> str:
    """Return what numbers beyond the edges count as in a mean; empty if none can be there."""
    if not isinstance(column, Numeric) or column.outside != "clip":
        return ""
    return (
        f"numbers of {column.name} below {column.edges[0]:g} count as {column.edges[0]:g}, those "
        f"above {column.edges[-1]:g} as {column.edges[-1]:g}"
    )
