"""What is said of ranges of numbers: buckets that they cut, and what lies beyond all buckets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dualquery.data.schema.columns import Column, Numeric
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
    """Return a remark on numbers beyond the edges, if ranges tell them apart; else empty."""
    below, above = beyond_edges(column, literals)
    if not below and not above:
        return ""
    assert isinstance(column, Numeric)
    sides = []
    if below:
        sides.append(f"below {column.edges[0]:g} are counted in {column.labels[0]}")
    if above:
        label = column.labels[column.buckets - 1]
        sides.append(f"above {column.edges[-1]:g} are counted in {label}")
    return (
        f"numbers of {column.name} {' and those '.join(sides)}; they may be any part of it, and "
        "the interval allows for that"
    )


def on_clipped_numbers(column: Column) -> str:
    """Return what numbers beyond the edges count as in a mean; empty if none can be there."""
    if not isinstance(column, Numeric) or column.outside != "clip":
        return ""
    return (
        f"numbers of {column.name} below {column.edges[0]:g} count as {column.edges[0]:g}, those "
        f"above {column.edges[-1]:g} as {column.edges[-1]:g}"
    )
