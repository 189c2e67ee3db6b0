"""Intervals of both of MWEM's kinds cover as often as they say, at the ends of the range, too."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.marginals import all_marginals
from mwem.intervals import measured_intervals, table_intervals
from mwem.spending import Spending

N, SCALE, DRAWS = 1_000, 20.0, 5_000
WORKLOAD: Workload = all_marginals(Domain.binary(3), 1)


def single(share: float) -> tuple[np.ndarray, np.ndarray]:
    spending = Spending(True, 1.0, SCALE, None, 1, 1.0, 1.0, 1.0, 1.0)
    noise = np.random.default_rng(0).normal(0, SCALE / N, DRAWS)
    found = [
        measured_intervals([{"query": 0, "measured": share + each}], WORKLOAD, 1, N, spending)
        for each in noise
    ]
    return np.array([(each.lower[0], each.upper[0]) for each in found]).T


def table(share: float) -> tuple[np.ndarray, np.ndarray]:
    spending = Spending(True, 1.0, SCALE, SCALE, 1, 1.0, 1.0, 1.0, 1.0)
    noise = np.random.default_rng(0).normal(0, SCALE, DRAWS)
    place = int(WORKLOAD.literals[0, 0] & 1 == 0)
    found = []
    for each in noise:
        cells = np.full(2, N / 2)
        cells[place] = N * share + each
        trace = [{"round": 1, "query": 0, "measured": cells}]
        found.append(table_intervals(trace, WORKLOAD, N, spending))
    assert np.isnan(found[0].lower).sum() == 4  # the other two bits
    return np.array([(each.lower[0], each.upper[0]) for each in found]).T


@pytest.mark.parametrize("intervals", [single, table])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_intervals_cover_as_often_as_they_say(intervals, share: float) -> None:
    lower, upper = intervals(share)
    held = ((lower <= share) & (share <= upper)).mean()
    assert abs(held - 0.95) < 4 * np.sqrt(0.95 * 0.05 / DRAWS)
    assert (upper > lower).all()
