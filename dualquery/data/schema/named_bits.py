"""Which bit of a column a value in a query's text means."""

from __future__ import annotations

import itertools

import numpy as np

from dualquery.data.schema.checks import MISSING_LABEL, OTHER_LABEL
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.numbers import NUMBER_RANGE, finite_number, in_another_style
from dualquery.runtime.errors import BadInputError, suggest


def find_bit(column: Column, value: str) -> tuple[int, bool]:
    """Return the local bit that a value of a query's text means, and whether it is negated."""
    if isinstance(column, Binary):
        codes = {"0": 0, "1": 1, **column.codes}
        if value in codes:
            return 0, codes[value] == 0
    elif value in column.labels:
        return column.labels.index(value), False
    else:
        if isinstance(column, Categorical):
            bit = _category(column, value)
        elif isinstance(column, Dates):
            low, high = column.places_of_text(value) or (-1, -1)
            bit = low if low == high and 0 <= low < column.buckets else None
        else:
            bit = _bucket(column, value)
        if bit is not None:
            return bit, False
    known, others = list(column.labels), ""
    if isinstance(column, Binary | Categorical):
        added = [label for label in (OTHER_LABEL, MISSING_LABEL) if label in known]
        known = [*column.codes, *added]
        others = f"; what the schema does not list is {OTHER_LABEL!r}" * (OTHER_LABEL in added)
    if "|" in value and "=" in value:
        others += "; between alternatives write 'or', not '|'"
    raise BadInputError(
        f"query: column {column.name!r} has no value {value!r}; {suggest(value, known)}{others}"
    )


def _category(column: Categorical, value: str) -> int | None:
    """Return the bit of a text, or of the only category that is the same number."""
    if value in column.codes:
        return column.codes[value]
    number = finite_number(value)
    if number is None:
        return None
    same = {bit for text, bit in column.codes.items() if finite_number(text) == number}
    return same.pop() if len(same) == 1 else None


def _bucket(column: Numeric, value: str) -> int | None:
    """Return the bucket that holds a number or has the ends, or None if the column has none."""
    if ends := NUMBER_RANGE.fullmatch(value):
        low, high = float(ends[1]), float(ends[2])
        # Each end as the schema has it or as labels show it.
        meant = zip(column.edges, map(float, column.edge_texts), strict=True)
        buckets = enumerate(itertools.pairwise(meant))
        return next((i for i, (lower, upper) in buckets if low in lower and high in upper), None)
    number = finite_number(value)
    if number is None or in_another_style(value, whole=column.integer):
        return None
    inside = column.edges[0] <= number <= column.bounds[-1][1]
    if not inside or (column.integer and not number.is_integer()):
        return None
    return min(int(np.searchsorted(column.edges, number, side="right")), column.buckets) - 1
