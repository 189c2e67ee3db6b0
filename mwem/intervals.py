"""What a run measured: the numbers as a release keeps them, and intervals from their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dualquery.estimates.intervals import Intervals
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.queries.family import Queries
from mwem.spending import Spending

_BASIS = (
    "from the noise of the query's own measurement, each on its own; the released answer is fitted "
    "to all measurements and may lie outside; a query that was not measured has no interval"
)


def kept_measurements(
    trace: Sequence[Mapping[str, Any]], queries: Queries, n: int, spending: Spending
) -> Measurements:
    """Return what a trace measured, of all queries; parameters as of `measured_intervals`.

    Cells of a whole marginal were brought to add up to the public n. Together with that rule they
    say as much as before, so their noise is stated as it was drawn, independent. There are none
    where an interruption cost all iterations.
    """
    places, values = [np.zeros(0, np.int64)], [np.zeros(0)]
    for line in trace:
        places.append(np.atleast_1d(line.get("queries", line.get("query"))))
        values.append(np.atleast_1d(line["measured"]))
    noise = spending.noise(spending.measure_scale)
    absent = _absent_row_answer(trace)
    kept = Measurements.of_queries(
        queries,
        np.concatenate(places),
        np.concatenate(values).astype(np.float64),
        noise.deviation * queries.step / n,
        noise.kind,
        math.nan if absent is None else absent,
    )
    return replace(kept, note=CHOSEN)


def _absent_row_answer(trace: Sequence[Mapping[str, Any]]) -> float | None:
    """Return what a row that is not there counts; what cells are shifted by is not a count's."""
    return None if any("queries" in line for line in trace) else 0.0


def measured_intervals(
    trace: Sequence[Mapping[str, Any]], queries: Queries, asked: int, n: int, spending: Spending
) -> Intervals:
    """Return the intervals of the queries in a trace, as far as they are the workload's.

    Which queries these are depends on earlier draws and on selections, but none is measured twice,
    and the noise of a measurement does not depend on why it was made: an interval covers as often
    as it says, given that its query was chosen.

    Parameters
    ----------
    trace
        Lines of `mwem.questions.Questions.describe`.
    queries
        The room's queries.
    asked
        How many of them, from the first on, are the workload's.
    n
        Number of private rows (public).
    spending
        The noise of a measurement.
    """
    measured = np.full(len(queries), np.nan)
    for line in reversed(trace):
        measured[line["queries"] if "queries" in line else line["query"]] = line["measured"]
    return spending.noise(spending.measure_scale).intervals(
        measured[:asked],
        queries.step / n,
        queries.low,
        queries.high,
        _BASIS,
        _absent_row_answer(trace),
    )
