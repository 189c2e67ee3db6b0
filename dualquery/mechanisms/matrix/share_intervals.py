"""Intervals of conjunctions from those of the columns' shares, by Frechet's bounds."""

from __future__ import annotations

import numpy as np

from dualquery.estimates.intervals import LEVEL, Intervals, gaussian_half_width
from dualquery.mechanisms.matrix.expansion import literals_of
from dualquery.mechanisms.matrix.looks import Shares
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload


def share_intervals(
    workload: Workload, first: Shares, second: Shares, neighbours: Neighbours, *, chosen: bool
) -> Intervals:
    """Return intervals of all queries.

    A conjunction holds on no more rows than each of its literals, and fails on no more than all of
    them together. Each share has an interval from each look that measured it. One of the first
    look misses with the chance of its noise, whatever is chosen afterwards; one of the second
    look misses with that of its own noise, whatever the first look chose. The chances of all
    that a query rests on add up to 1 - `LEVEL`.

    Where the first look chose the queries as well (``chosen``), it did so by large shares: an upper
    end misses no more often among those that it chose, for what makes it miss, noise that is far
    below 0, makes it less likely to be chosen. A lower end may miss more often, so there is none
    but from the second look.
    """
    bits, negated, possible = literals_of(workload)
    miss = (1.0 - LEVEL) / (2 * workload.way)
    half = gaussian_half_width(1.0, miss)
    low, high = np.zeros(workload.domain.bits), np.ones(workload.domain.bits)
    for stage in (first, second):
        at = stage.bits
        shares = np.clip(stage.values, 0.0, 1.0)  # never a single point: see `Intervals.around`
        if stage is second or not chosen:
            low[at] = np.maximum(low[at], shares - half * stage.deviations)
        high[at] = np.minimum(high[at], shares + half * stage.deviations)
    present = bits >= 0
    fails = np.where(present, np.where(negated, high[bits], 1.0 - low[bits]), 0.0)
    holds = np.where(present, np.where(negated, 1.0 - low[bits], high[bits]), 1.0)
    lower = np.where(possible, 1.0 - fails.sum(axis=1), 0.0)
    upper = np.where(possible, holds.min(axis=1), 0.0)
    if not neighbours.rows_public:
        # A noisy number of rows moves every share by half its error, the sum of three by more than
        # `Intervals.for_rows` allows for.
        lower = np.where(present.sum(axis=1) > 2, 0.0, lower)
    return Intervals(
        np.clip(lower, 0.0, 1.0),
        np.clip(upper, 0.0, 1.0),
        "from the noise of the columns' shares: a query holds on no more rows than its rarest "
        "literal",
    )
