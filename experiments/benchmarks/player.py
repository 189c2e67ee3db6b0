"""A round of the query player: every query on the round's record, update, and exact draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dualquery.data.domain import Domain
from dualquery.queries.generate.random import random_conjunctions
from dualquery.room.randomness import randomness
from dualquery.room.weights import QueryWeights
from experiments.benchmarks.timing import fastest

ROWS, BITS, STEP = 480_189, 17_770, 0.05
DRAWS = 1_750
QUERIES = (100_000, 500_000, 2_000_000, 10_000_000)
_ROUNDS = 8


def run(console: Console, quick: bool) -> list[dict[str, Any]]:
    """Measure rounds at several numbers of queries, and print a table."""
    table = Table(
        "queries",
        "ms a round",
        "of it: evaluate",
        "update",
        "draw",
        "ns a query",
        title=f"one round, {DRAWS:,} exact draws, one thread",
    )
    lines = []
    for queries in QUERIES[:1] if quick else QUERIES:
        line = _round(queries)
        lines.append(line)
        total = line["seconds"]
        steps = (f"{1e3 * line[name]:.1f}" for name in ("evaluate_s", "update_s", "draw_s"))
        table.add_row(f"{queries:,}", f"{1e3 * total:.1f}", *steps, f"{1e9 * total / queries:.1f}")
    console.print(table)
    return lines


def _round(queries: int) -> dict[str, Any]:
    """Time the steps of the fastest round after some that spread the weights."""
    generator = np.random.default_rng(queries)
    workload = random_conjunctions(Domain.binary(BITS), queries, seed=1)
    counts = generator.integers(0, ROWS, queries)
    weights = QueryWeights(counts, ROWS, STEP)
    source = randomness(1)
    seconds = {"evaluate_s": np.inf, "update_s": np.inf, "draw_s": np.inf}
    for _ in range(_ROUNDS):
        record = generator.integers(0, 2, BITS).astype(np.uint8)
        evaluated, truth = fastest(lambda r=record: workload.on_record(r), 1)  # type: ignore[misc]
        updated, _ = fastest(lambda t=truth: weights.update(t), 1)  # type: ignore[misc]
        drawn, _ = fastest(lambda: weights.sample(DRAWS, source), 1)
        for name, spent in zip(seconds, (evaluated, updated, drawn), strict=True):
            seconds[name] = min(seconds[name], spent)
    return {"queries": queries, "draws": DRAWS, **seconds, "seconds": sum(seconds.values())}
