"""Missing values that a schema lists: for all columns, and a column's own besides these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualquery.data.schema.checks import OTHER_LABEL
from dualquery.data.schema.columns import Categorical, Column, Numeric
from dualquery.data.schema.dates import CYCLES, Dates
from dualquery.data.schema.numbers import numbers_among
from dualquery.data.schema.within import Sample, listed
from dualquery.runtime.errors import BadInputError


def avoided_by(column: Column, texts: Sequence[str]) -> list[float]:
    """Return the numbers among missing values, of dates the days from 1970: records have none."""
    return column.days_among(texts) if isinstance(column, Dates) else numbers_among(texts)


def check_missing_values(
    where: str, column: Column, everywhere: Sequence[str], avoided: Sequence[float]
) -> None:
    """Refuse missing values that a column lists twice or has as values."""
    own, of_all = column.missing_values, {*everywhere}
    for place, text in enumerate(own):
        if text in of_all:
            raise BadInputError(
                f"{where}: missing_values lists {text!r}, which stands for a missing value in all "
                "columns already; leave it out here, or take it out of the list for all columns"
            )
        if text in own[:place]:
            raise BadInputError(f"{where}: missing_values lists {text!r} twice; list it once")
    values = {*getattr(column, "codes", ())}
    if isinstance(column, Categorical) and column.other_bit is not None:
        values.add(OTHER_LABEL)
    if isinstance(column, Dates):
        values |= {*column.labels[: column.buckets]}
    for text in sorted(values & {*of_all, *own}):
        raise BadInputError(
            f"{where}: {text!r} is declared as a value and also stands for a missing value; drop "
            "one of the two"
        )
    if avoided and isinstance(column, Numeric | Dates):
        _check_buckets(where, column, avoided)


def _check_buckets(where: str, column: Numeric | Dates, avoided: Sequence[float]) -> None:
    """Refuse a bucket of which all values stand for missing ones."""
    rules = column.rules if isinstance(column, Numeric) else ()
    for rule, label in zip(rules, column.labels, strict=False):
        values = None if isinstance(rule, Sample) else listed(rule)
        if values and {*values} <= {*avoided}:
            raise BadInputError(
                f"{where}: all numbers that within lists for {label} stand for missing values; "
                "list another, or take them out of missing_values"
            )
    if not column.integer if isinstance(column, Numeric) else column.by in CYCLES:
        return
    firsts, lasts = np.array(column.bounds).T if isinstance(column, Numeric) else column.bounds
    numbers = np.unique(np.array(avoided, np.float64))
    numbers = numbers[numbers == np.floor(numbers)]
    taken = np.searchsorted(numbers, lasts, "right") - np.searchsorted(numbers, firsts, "left")
    for bucket in np.flatnonzero(taken > lasts - firsts).tolist():
        raise BadInputError(
            f"{where}: all that {column.labels[bucket]} holds stands for missing values; take it "
            "out of the edges or dates of the buckets, or out of missing_values"
        )
