"""Intervals of MWEM cover as often as they say, and hold the answers that are given."""

import numpy as np
import pytest

import dualquery
from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals
from mwem.intervals import measured, table_intervals
from mwem.spending import Spending
from tests.mwem.test_family_releases import ROWS, SCHEMA, TABLE

N, SCALE, DRAWS = 1_000, 20.0, 600
WORKLOAD: Workload = all_marginals(Domain.binary(3), 1)


def single(share: float) -> tuple[np.ndarray, np.ndarray]:
    spending = Spending(True, 1.0, SCALE, None, 1, 1.0, 1.0, 1.0, 1.0)
    noise = np.random.default_rng(0).normal(0, SCALE / N, DRAWS)
    found = [
        measured([{"query": 0, "measured": share + each}], WORKLOAD, 1, N, spending)[1]
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


@pytest.mark.parametrize("options", [{}, {"cuboids": True}, {"average": True}])
def test_no_answer_lies_outside_its_interval(options) -> None:
    """At epsilon 50 the fit was up to 150 half lengths from what had been measured."""
    made = dualquery.release(
        TABLE, schema=SCHEMA, marginals="all", way=2, mechanism="mwem", epsilon=50.0, seed=1,
        threads=1, options={"iterations": 4, **options},
    )  # fmt: skip
    found = made.answer_table.select("query", "answer", "interval_low", "interval_high")
    known = found.drop_nulls()
    assert len(known) >= 4
    assert np.isnan(made.measurements.absent).all() == ("cuboids" in options)
    assert known["answer"].is_between(known["interval_low"], known["interval_high"]).all()
    truth = made.workload.answers_on(ROWS)
    answered = dualquery.answer_queries(made, found["query"].to_list())
    with_limits = [place for place, line in enumerate(answered) if line["low"] is not None]
    assert len(with_limits) >= len(known)
    for place in with_limits:
        line = answered[place]
        assert line["low"] <= line["answer"] <= line["high"]
        further = line["high"] - line["low"] + 1e-9
        assert line["low"] - further <= truth[place] <= line["high"] + further
