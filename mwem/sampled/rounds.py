"""One round after another: select a query, measure its table, fit."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload
from dualquery.queries.counting import CountingPass
from dualquery.room.curator import Curator
from dualquery.room.draws.exponential import Exponential
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.scores import WorstQuery
from dualquery.room.statistics import QueryTable
from mwem.sampled.family import SampledFamily
from mwem.sampled.fitting import fit
from mwem.sampled.measurements import Measurements
from mwem.spending import Spending

_NOISE = 4.0
"""Standard deviations of the noise that the largest of hundreds of residuals may well have."""

_STEPS = 2  # steps of a round's fit; the next round goes on from there
_LAST_SIZE = 5  # times by which the population grows in the end: its answers are sums over records
_LAST_SWEEPS = 2  # sweeps in which the copies of a record become different
_LAST_STEPS = 3  # populations, one sweep after another, whose answers are averaged


def play(
    curator: Curator,
    workload: Workload,
    family: SampledFamily,
    measurements: Measurements,
    spending: Spending,
    held: int,
    progress: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    """Run all rounds; return the trace, one JSON-able line a round, all of it public.

    The room's ``held`` queries are the workload's, then others (`sampled_mechanism`). Model and
    measurements are updated; ``progress`` is called after every round.
    """
    counting = CountingPass(workload.literals)
    bits = np.where(workload.literals >= 0, workload.literals >> 1, np.int32(-1))
    allowed = np.zeros(held, np.bool_)
    allowed[: len(workload)] = True
    model = np.zeros(len(allowed))
    n = measurements.n
    trace = []
    for number in range(1, spending.iterations + 1):
        if curator.cut_short(draws=2):
            break
        select, scale = spending.of_round(number)
        model[: len(workload)] = family.raked_answers(counting)
        query = curator.select(WorstQuery(model), Exponential(select), allowed)
        if curator.cut_short():
            break
        measured = curator.measure(QueryTable(query), Gaussian(scale)).astype(np.float64)
        started = time.perf_counter()
        # Queries about the same bits have the same table.
        allowed[: len(workload)] &= (bits != bits[query]).any(axis=1)
        measurements.add_table(bits[query], measured, scale)
        family.add(bits[query])
        family.aim(*measurements.tables(), n)
        residual, steps = fit(family, _STEPS, _NOISE * scale / n)
        trace.append(
            {
                "round": number,
                "query": query,
                "answer_before": float(model[query]),
                "measured": measured.tolist(),
                "residual": residual,
                "steps": steps,
                "seconds": time.perf_counter() - started,
            }
        )
        progress(number, spending.iterations)
    return trace


def refine(workload: Workload, family: SampledFamily) -> tuple[NDArray[np.float64], float]:
    """Enlarge the population and sweep on; return averaged answers, and the last residual."""
    counting = CountingPass(workload.literals)
    family.enlarge(_LAST_SIZE)
    for _ in range(_LAST_SWEEPS):
        family.sweep()
    answers = np.zeros(len(workload))
    for _ in range(_LAST_STEPS):
        residual, _ = fit(family, 1, 0.0)
        answers += family.raked_answers(counting)
    return answers / _LAST_STEPS, residual
