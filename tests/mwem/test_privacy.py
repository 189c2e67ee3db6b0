"""MWEM on a tiny universe: everything it can show, on every pair of neighbours, exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dualquery.mechanisms.protocol import Budget, Task
from dualquery.queries.conjunctions import Workload
from dualquery.queries.products import Products
from dualquery.room import scores
from dualquery.room.draws import noisy_max
from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.scores import GRID, error_scores
from mwem import Mwem
from mwem.algorithm import clip_to_range
from mwem.representations import Histogram
from tests.cases import MEMORY, all_records, domain_of, records_of
from tests.room.test_noisy_max import probabilities

DOMAIN = domain_of(1, 1)
WORKLOAD = Workload(np.array([[0, -1], [2, -1], [0, 2], [1, 2]], np.int32), DOMAIN)
QUERIES = Products.of_conjunctions(WORKLOAD)
N = 3
EPSILON = 2.0


def plan(select: str = "exponential"):
    mechanism = Mwem(iterations=2, repetitions=2, select=select)
    return mechanism.plan(Task(WORKLOAD, N), Budget(EPSILON, 0.0))


SPENDING = plan().details.spending


def log_report(counts, model, allowed) -> np.ndarray:
    """Return the exact log-probability of reporting each query by noisy max."""
    logs = np.full(len(counts), -math.inf)
    chances = probabilities(error_scores(counts, model, N)[allowed], SPENDING.select)
    logs[allowed] = np.log(chances)
    return logs


def log_selection(counts, model, allowed) -> np.ndarray:
    """Return the exact log-probability of selecting each query, from the integer weights."""
    errors = error_scores(counts, model, N)
    largest = int(errors[allowed].max())
    unit = SPENDING.select / (2 * GRID)
    weights = []
    for score in errors:
        high, low = kernels.weight(int(score), largest, unit)
        weights.append((int(high) << kernels.LOW_BITS) + int(low))
    total = sum(w for w, a in zip(weights, allowed, strict=True) if a)
    return np.array(
        [
            math.log(w) - math.log(total) if a else -math.inf
            for w, a in zip(weights, allowed, strict=True)
        ]
    )


def log_noise(value: int, count: int) -> float:
    """Return the log-probability of a discrete Laplace measurement, up to a constant."""
    return -abs(value - count) / SPENDING.measure_scale


def transcripts():
    """Yield every first selection and measurement, with the model and the queries left after it.

    A measurement is brought into 0 .. n before it is used, so values more than a row further out
    lead to the same model, and have the log-ratio of the nearest one.
    """
    for query, value in itertools.product(range(len(QUERIES)), range(-1, N + 2)):
        model = Histogram(QUERIES, MEMORY)
        model.update(query, clip_to_range(value / N, QUERIES, query))
        model.repeat(1)
        yield query, value, model.answers(), np.arange(len(QUERIES)) != query


def data_sets() -> dict[tuple[int, ...], np.ndarray]:
    """Return the counts of every data set of N records, by its sorted cells."""
    rows = all_records(DOMAIN)
    return {
        cells: WORKLOAD.counts(records_of(rows[list(cells)]), threads=1)
        for cells in itertools.combinations_with_replacement(range(4), N)
    }


@pytest.mark.parametrize("select", ["exponential", "noisy-max"])
def test_no_outcome_is_more_than_e_to_the_epsilon_times_as_likely(monkeypatch, select) -> None:
    spent = plan(select).details.spending
    assert (spent.select, spent.measure_scale) == pytest.approx(
        (SPENDING.select, SPENDING.measure_scale), rel=1e-9
    )
    log_selected = log_selection
    if select == "noisy-max":
        log_selected = log_report
        for module in (scores, noisy_max):
            monkeypatch.setattr(module, "GRID", 8)  # a coarse grid is quick to enumerate
    counts = data_sets()
    uniform = Histogram(QUERIES, MEMORY).answers()
    every = np.ones(len(QUERIES), bool)
    after = list(transcripts())
    log_of: dict[tuple[int, ...], np.ndarray] = {}
    for cells, count in counts.items():
        first = log_selected(count, uniform, every)
        outcomes = []
        for query, value, model, left in after:
            start = first[query] + log_noise(value, count[query])
            second = log_selected(count, model, left)
            for other in np.flatnonzero(left):
                for again in range(-1, N + 2):
                    outcomes.append(start + second[other] + log_noise(again, count[other]))
        log_of[cells] = np.array(outcomes)
    worst = 0.0
    for one, other in itertools.permutations(counts, 2):
        shared = sum(min(one.count(c), other.count(c)) for c in range(4))
        if shared == N - 1:
            worst = max(worst, float((log_of[one] - log_of[other]).max()))
    assert worst <= EPSILON
    assert worst > 0.5 * EPSILON  # the test looks at what matters


def test_the_schedule_adds_up_to_the_budget() -> None:
    for select in ("exponential", "noisy-max"):
        total = sum(
            event.range if hasattr(event, "range") else event.epsilon
            for event in plan(select).schedule
        )
        assert EPSILON * (1 - 1e-6) < total <= EPSILON
