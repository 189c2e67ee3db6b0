"""The best-response problems of a real game."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dualquery.requests import WorkloadRequest
from experiments.contenders import AS_PUBLISHED

if TYPE_CHECKING:
    from solvers import BestResponse

EPSILON, DELTA = 1.0, 0.001


@lru_cache(maxsize=1)
def game_problems(
    source: str,
    schema: str | None,
    columns: str | None,
    queries: int,
    samples: int,
    rounds: tuple[int, ...],
) -> dict[int, BestResponse]:
    """Return the problems of some rounds of a game by local search.

    Round 1 is that of the paper, a uniform sample of the queries and their complements; our game
    needs none.
    """
    from dualquery.capture import captured_rounds
    from dualquery.mechanisms.dualquery.best_response import Problems
    from dualquery.rows.dataset import load

    data = load(source, schema, columns)
    workload = WorkloadRequest(queries=queries).build(data.schema, data.n)
    generator = np.random.default_rng(1)
    drawn = generator.integers(len(workload), size=samples)
    signs = generator.choice(np.array([-1, 1], np.int8), samples)
    first = Problems(workload.disjunctions()).of(drawn, signs)
    later = captured_rounds(
        source,
        [number for number in rounds if number > 1],
        options={**AS_PUBLISHED, "rounds": max(*rounds, 2), "samples": samples},
        schema=schema,
        columns=columns,
        queries=queries,
        epsilon=EPSILON,
        delta=DELTA,
        seed=1,
        threads=1,
    )
    return {number: first if number == 1 else later.problems[number] for number in rounds}
