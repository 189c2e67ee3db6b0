"""Intervals of conjunctions, from those of the columns' shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dualquery.estimates.bounded import LEVEL, gaussian_half_width
from dualquery.estimates.intervals import Intervals
from dualquery.mechanisms.adaptive.evidence import Shares
from dualquery.mechanisms.adaptive.expansion import literals_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload


def share_intervals(
    workload: Workload,
    looks: Sequence[Shares],
    neighbours: Neighbours,
    *,
    chosen_by: Shares | None = None,
) -> Intervals:
    """Return intervals of all queries.

    A conjunction holds on no more rows than each of its literals, and fails on no more than all of
    them together. Each share has an interval from each look that measured it. One of the first
    look misses with the chance of its noise, whatever is chosen afterwards; one of a later look
    misses with that of its own noise, whatever earlier ones chose. The chances of all that a query
    rests on add up to 1 - `LEVEL`.

    Where a look chose the queries as well (``chosen_by``), it did so by large shares: an upper end
    misses no more often among those that it chose, for what makes it miss, noise that is far below
    0, makes it less likely to be chosen. A lower end may miss more often, so it gives none.

    Parameters
    ----------
    workload
        The queries.
    looks
        The shares as each look measured them. A look that decided whether its intervals are used at
        all is not among them.
    neighbours
        What neighbouring tables differ in.
    chosen_by
        The look that chose the queries.
    """
    domain = workload.domain
    bits, negated, possible = literals_of(workload)
    miss = (1.0 - LEVEL) / (len(looks) * workload.way)
    half = gaussian_half_width(1.0, miss)
    low, high = np.zeros(domain.bits), np.ones(domain.bits)
    for measured in looks:
        at = measured.bits
        shares = np.clip(measured.values, 0.0, 1.0)  # no interval is a single point
        if measured is not chosen_by:
            low[at] = np.maximum(low[at], shares - half * measured.deviations)
        high[at] = np.minimum(high[at], shares + half * measured.deviations)
    present = bits >= 0
    fails = np.where(present, np.where(negated, high[bits], 1.0 - low[bits]), 0.0)
    holds = np.where(present, np.where(negated, 1.0 - low[bits], high[bits]), 1.0)
    lower = np.where(possible, 1.0 - fails.sum(axis=1), 0.0)
    upper = np.where(possible, holds.min(axis=1), 0.0)
    if not neighbours.rows_public:
        # A noisy number of rows moves the share of a sign by half its error, one that was measured
        # itself by all of it, and `Intervals.for_total` allows for all of it once.
        halves = np.where(domain.has_two_values[bits], 1, 2)
        lower = np.where((present * halves).sum(axis=1) > 2, 0.0, lower)
    return Intervals(
        np.clip(lower, 0.0, 1.0),
        np.clip(upper, 0.0, 1.0),
        "from the noise of the columns' shares: a query holds on no more rows than its rarest "
        "literal",
    )
