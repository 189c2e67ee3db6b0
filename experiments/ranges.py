"""MWEM's Figure 2: random range queries against the SVD lower bound.

Hardt, Ligett and McSherry (NIPS 2012), section 3.1: MWEM with T = 10 on random ranges of four
tables, the average squared error of a query as epsilon varies, means of 5 runs, beside the least
error of any matrix mechanism (Li and Miklau), at delta = 1 / n. MWEM spends pure epsilon here, as
in the paper; the bound holds for mechanisms that only keep the weaker (epsilon, delta).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.api import run as run_mechanism
from dualquery.data.domain import Domain
from dualquery.data.histogram import axis_sizes
from dualquery.mechanism import Budget, Task
from dualquery.privacy.events import Neighbours
from dualquery.queries.ranges import RangeQueries
from experiments.mwem_tables import NUMERIC, Study, numeric_table
from mwem import Mwem, svd_bound

EPSILONS = (0.0125, 0.025, 0.05, 0.1)
ITERATIONS = 10
QUERIES = 2_000
"""Random ranges; the paper says neither their number nor how they are drawn."""


def run_mwem(table: str, folder: str | None, epsilon: float, seed: int) -> dict[str, Any]:
    """Run MWEM once; return a line of the results."""
    study = numeric_table(table, folder)
    queries = random_ranges(study.data.schema.domain, QUERIES)
    mechanism = Mwem(iterations=ITERATIONS)
    task = Task(queries, study.data.n)
    plan = mechanism.plan(task, Budget(epsilon, 0.0))
    outcome = run_mechanism(study.data, task, mechanism, plan, seed, threads=1)
    off = outcome.answers * study.data.n - queries.counts(study.data.records, threads=1)
    return _line(study, "MWEM", epsilon, seed, float(np.mean(off**2)))


def bounds(table: str, folder: str | None) -> list[dict[str, Any]]:
    """Return the SVD bound at every epsilon, for both meanings of neighbours; no run is made."""
    study = numeric_table(table, folder)
    matrix = indicator_matrix(random_ranges(study.data.schema.domain, QUERIES))
    lines = []
    for neighbours in Neighbours:
        # The bound is proportional to 1 / epsilon^2: one decomposition serves all.
        total = svd_bound(matrix, epsilon=1.0, delta=1.0 / study.data.n, neighbours=neighbours)
        name = f"SVD lower bound, {neighbours.value}"
        lines += [_line(study, name, e, None, total / len(matrix) / e**2) for e in EPSILONS]
    return lines


def random_ranges(domain: Domain, count: int) -> RangeQueries:
    """Return boxes over all columns: each interval uniform over the intervals of its column.

    Parameters
    ----------
    domain
        The columns.
    count
        Number of boxes; one may come twice.
    """
    generator = np.random.default_rng(0)
    ends = []
    for size in axis_sizes(domain):
        first, last = np.triu_indices(size)
        drawn = generator.integers(len(first), size=count)
        ends.append((first[drawn], last[drawn]))
    first, last = (np.stack(side, axis=1).astype(np.int32) for side in zip(*ends, strict=True))
    columns = np.broadcast_to(np.arange(domain.columns, dtype=np.int32), first.shape)
    return RangeQueries.of_arrays(domain, np.ascontiguousarray(columns), first, last)


def indicator_matrix(queries: RangeQueries) -> NDArray[np.float64]:
    """Return the value of each box on each cell: float64, shape ``(m, cells)``, C order."""
    matrix = np.ones((len(queries), 1))
    for column, size in enumerate(axis_sizes(queries.domain)):
        value = np.arange(size)
        first, last = queries.first[:, column, None], queries.last[:, column, None]
        inside = ((first <= value) & (value <= last)).astype(np.float64)
        matrix = (matrix[:, :, None] * inside[:, None, :]).reshape(len(queries), -1)
    return matrix


def _line(
    study: Study, method: str, epsilon: float, seed: int | None, error: float
) -> dict[str, Any]:
    return {
        "table": study.title,
        "method": method,
        "epsilon": epsilon,
        "seed": seed,
        "squared_error": error,
    }
