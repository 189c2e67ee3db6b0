"""What a run measured: the numbers as a release keeps them, and intervals from their noise."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import Intervals, bounded_interval
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.queries.conjunctions import Workload, table_cells
from dualquery.queries.family import Queries
from mwem.spending import Spending

_BASIS = (
    "from the noise of the query's own measurement, each on its own; the released answer is the "
    "nearest one in it to the fit; a query that was not measured has no interval"
)


_TABLE_BASIS = (
    "from the noise of the query's cell in the one measurement of its bits, each on its own; the "
    "released answer is fitted to all measurements and may lie outside; a query whose bits were "
    "not measured together has no interval"
)


def measured(
    trace: Sequence[Mapping[str, Any]], queries: Queries, asked: int, n: int, spending: Spending
) -> tuple[Measurements, Intervals]:
    """Return what a trace measured, of all queries, and intervals of the first ``asked`` ones.

    Which queries these are depends on earlier draws and on selections, but none is measured twice,
    and the noise of a measurement does not depend on why it was made: an interval covers as often
    as it says, given that its query was chosen. Cells of a whole marginal were brought to add up to
    the public n. With that rule they say the same as before, so their noise is stated as it
    was drawn, independent. Lines of the trace are those of `mwem.questions.Questions.describe`;
    there are none where an interruption cost all iterations.
    """
    places, values = [np.zeros(0, np.int64)], [np.zeros(0)]
    for line in trace:
        places.append(np.atleast_1d(line.get("queries", line.get("query"))))
        values.append(np.atleast_1d(line["measured"]))
    place = np.concatenate(places)
    value = np.concatenate(values).astype(np.float64)
    noise = spending.noise(spending.measure_scale)
    # A row that is not there counts 0; but what cells are shifted by is no count.
    absent = None if any("queries" in line for line in trace) else 0.0
    kept = Measurements.of_queries(
        queries,
        place,
        value,
        noise.deviation * queries.step / n,
        noise.kind,
        math.nan if absent is None else absent,
    )
    answers = np.full(len(queries), np.nan)
    answers[place] = value
    intervals = noise.intervals(
        answers[:asked], queries.step / n, queries.low, queries.high, _BASIS, absent
    )
    return replace(kept, note=CHOSEN), intervals


def kept_tables(
    bits: NDArray[np.int32],
    counts: NDArray[np.float64],
    trace: Sequence[Mapping[str, Any]],
    workload: Workload,
    n: int,
    spending: Spending,
) -> Measurements:
    """Return the single bits' noisy shares, and the cells of all tables in a trace.

    ``bits`` were measured at the start, ``counts`` are their noisy counts.
    """
    assert spending.start_scale is not None
    start = spending.start_scale / n
    tables = [Measurements.of_codes(2 * bits[:, None], counts / n, start)]
    for line in trace:
        _, scale = spending.of_round(line["round"])
        cells = table_cells(workload, line["query"])
        shares = np.asarray(line["measured"]) / n
        tables.append(Measurements.of_codes(cells, shares, scale / n, note=CHOSEN))
    return Measurements.joined(tables)


def table_intervals(
    trace: Sequence[Mapping[str, Any]], workload: Workload, n: int, spending: Spending
) -> Intervals:
    """Return the intervals of all queries about the bits of a measured table.

    They cover as often as they say given that the table was chosen, as those of `measured`.
    Lines of the trace are those of `mwem.sampled.rounds.play`; no two are about the same bits.
    """
    literals = workload.literals
    present = literals >= 0
    bits = np.where(present, literals >> 1, np.int32(-1))
    positive = present & (literals & 1 == 0)
    cell = (positive << np.arange(literals.shape[1])).sum(axis=1)
    measured = np.full(len(workload), np.nan)
    deviations = np.full(len(workload), np.nan)
    for line in trace:
        same = (bits == bits[line["query"]]).all(axis=1)
        measured[same] = np.asarray(line["measured"])[cell[same]] / n
        _, scale = spending.of_round(line["round"])
        deviations[same] = scale / n
    ends = bounded_interval(measured, deviations, 0.0, 1.0)
    return Intervals(*ends, _TABLE_BASIS, absent_row_answer=0.0)
