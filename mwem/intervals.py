"""Intervals of the queries that a run measured, from the noise of their first measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dualquery.estimates.intervals import Intervals, gaussian_half_width, laplace_half_width
from dualquery.queries.family import Queries
from mwem.spending import Spending

_BASIS = (
    "from the noise of the query's own measurement, each on its own; the released answer is fitted "
    "to all measurements and may lie outside; a query that was not measured has no interval"
)


def measured_intervals(
    trace: Sequence[Mapping[str, Any]], queries: Queries, n: int, spending: Spending
) -> Intervals:
    """Return the intervals of the queries in a trace.

    Parameters
    ----------
    trace
        Lines of `mwem.questions.Questions.describe`.
    queries
        The workload.
    n
        Number of private rows (public).
    spending
        The noise of a measurement.
    """
    measured = np.full(len(queries), np.nan)
    for line in reversed(trace):
        measured[line["queries"] if "queries" in line else line["query"]] = line["measured"]
    # What cells of a whole marginal are shifted by is not a count's.
    absent_row_answer = None if any("queries" in line for line in trace) else 0.0
    half_width = gaussian_half_width if spending.gaussian else laplace_half_width
    steps = half_width(spending.measure_scale)
    return Intervals.around(
        measured, steps * queries.step / n, queries.low, queries.high, _BASIS, absent_row_answer
    )
