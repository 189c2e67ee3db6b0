"""What is said of ranges of numbers: buckets that they cut, and what lies beyond all buckets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dualquery.data.schema.columns import Column, Numeric
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
    """Return a remark on numbers beyond the edges, if they are asked for and count; else empty."""
    if not isinstance(column, Numeric) or column.outside != "clip":
        return ""
    low, high = column.edges[0], column.edges[-1]
    spans = (span for each in literals if isinstance(each, tuple) for span in each)
    beyond = any(span.low > high or span.high < low for span in spans)
    if not beyond:
        return ""
    return (
        f"numbers of {column.name} below {low:g} and above {high:g} count as in the nearest bucket"
    )
