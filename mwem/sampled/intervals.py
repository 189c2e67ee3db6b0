"""What a run measured: the tables as a release keeps them, and intervals from their noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import Intervals
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.queries.conjunctions import Workload, table_cells
from mwem.spending import Spending

_BASIS = (
    "from the noise of the query's cell in the one measurement of its bits, each on its own; the "
    "released answer is fitted to all measurements and may lie outside; a query whose bits were "
    "not measured together has no interval"
)


def kept_measurements(
    bits: NDArray[np.int32],
    counts: NDArray[np.float64],
    trace: Sequence[Mapping[str, Any]],
    workload: Workload,
    n: int,
    spending: Spending,
) -> Measurements:
    """Return the single bits' noisy shares, and the cells of all tables in a trace.

    Parameters
    ----------
    bits, counts
        The bits measured at the start, and their noisy counts.
    trace, workload, n, spending
        As of `table_intervals`.
    """
    assert spending.start_scale is not None
    start = spending.start_scale / n
    tables = [Measurements.of_literals(2 * bits[:, None], counts / n, start)]
    for line in trace:
        _, scale = spending.of_round(line["round"])
        cells = table_cells(workload, line["query"])
        shares = np.asarray(line["measured"]) / n
        tables.append(Measurements.of_literals(cells, shares, scale / n, note=CHOSEN))
    return Measurements.joined(tables)


def table_intervals(
    trace: Sequence[Mapping[str, Any]], workload: Workload, n: int, spending: Spending
) -> Intervals:
    """Return the intervals of all queries about the bits of a measured table.

    They cover as often as they say given that the table was chosen, as those of `mwem.intervals`.

    Parameters
    ----------
    trace
        Lines of `mwem.sampled.rounds.play`; no two are about the same bits.
    workload
        The queries.
    n
        Number of private rows (public).
    spending
        The noise of every round.
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
    return Intervals.of_gaussian(measured, deviations, 0.0, 1.0, _BASIS, absent_row_answer=0.0)
