"""One round after another: select a query, measure its table, fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.curator import Curator
from dualquery.queries.counting import CountingPass
from dualquery.queries.workload import Workload
from mwem.sampled.family import SampledFamily
from mwem.sampled.fitting import Fit, Recipe, fit
from mwem.sampled.spending import Spending

_NOISE = 4.0
"""Standard deviations of the noise that the largest of hundreds of residuals may well have."""

_LAST_NOISE = 2.0
"""The same for the last fit: its larger population adds hardly any noise of its own."""

_LAST_SIZE = 5
"""Times by which the population grows in the end: its answers are sums over records."""

_LAST_SWEEPS = 2
"""Sweeps in which the copies of a record become different."""


def play(
    curator: Curator,
    workload: Workload,
    family: SampledFamily,
    n: int,
    spending: Spending,
    progress: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    """Run all rounds; return the trace, one JSON-able line a round, all of it public.

    Parameters
    ----------
    curator
        The private room: its queries are the workload's, then others (`mechanism`).
    workload
        The queries to be answered.
    family
        The model; updated.
    n
        Number of private rows.
    spending
        The noise of every draw.
    progress
        Told after every round.
    """
    counting = CountingPass(workload.literals)
    bits = np.where(workload.literals >= 0, workload.literals >> 1, np.int32(-1))
    allowed = np.zeros(len(workload) + len(family.layout.bits), np.bool_)
    allowed[: len(workload)] = True
    model = np.zeros(len(allowed))
    tolerance = _NOISE * spending.table_scale / n
    recipe = Recipe(steps=8, gain=0.4, decay=0.003, tolerance=tolerance)
    trace = []
    for number in range(1, spending.rounds + 1):
        model[: len(workload)] = family.answers(counting)
        query = curator.select_worst(model, spending.select, allowed)
        measured = curator.measure_table_gaussian(query, spending.table_scale)
        started = time.perf_counter()
        # Queries about the same bits have the same table.
        allowed[: len(workload)] &= (bits != bits[query]).any(axis=1)
        family.add(bits[query], measured, n, spending.table_scale)
        found = fit(family, recipe)
        trace.append(
            {
                "round": number,
                "query": query,
                "answer_before": float(model[query]),
                "measured": measured.tolist(),
                "residual": found.residual,
                "steps": found.steps,
                "seconds": time.perf_counter() - started,
            }
        )
        progress(number, spending.rounds)
    return trace


def refine(family: SampledFamily, n: int, spending: Spending) -> Fit:
    """Enlarge the population and fit it once more, so that answers are fine-grained."""
    family.enlarge(_LAST_SIZE)
    for _ in range(_LAST_SWEEPS):
        family.sweep()
    tolerance = _LAST_NOISE * spending.table_scale / n
    return fit(family, Recipe(steps=5, gain=0.2, decay=0.003, tolerance=tolerance))


def answers_of(workload: Workload, family: SampledFamily) -> NDArray[np.float64]:
    """Return the family's answers to a workload, float64, shape ``(m,)``."""
    return family.answers(CountingPass(workload.literals))
