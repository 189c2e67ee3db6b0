"""How time grows with rows, attributes, queries and samples, one at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dualquery.data.domain import Domain
from dualquery.queries.generate.random import random_conjunctions
from dualquery.room.randomness import randomness
from dualquery.room.weights import QueryWeights
from dualquery.rows.generated.biased import Biased
from experiments.benchmarks.stored_records import stored_records
from experiments.benchmarks.timing import fastest

_REPETITIONS = 3


def run(console: Console, quick: bool) -> dict[str, Any]:
    """Measure four curves, and print a table."""
    small = 16 if quick else 1
    doublings = [2**step // small for step in (16, 17, 18, 19, 20)]
    curves: dict[str, tuple[Callable[[int], float], list[int]]] = {
        "rows": (lambda n: _evaluate(n, 396, 100_000 // small), doublings),
        "attributes": (
            lambda d: _evaluate(65_536 // small, d, 100_000 // small),
            [250, 1_000, 4_000, 16_000, 64_000],
        ),
        "queries": (lambda m: _evaluate(131_072 // small, 396, m), doublings),
        "samples": (
            lambda s: _draw(1_000_000 // small, s),
            [1_000, 4_000, 16_000, 64_000, 256_000],
        ),
    }
    table = Table(
        "grows", "from, to", "milliseconds", "exponent of the last step", title="growth curves"
    )
    found: dict[str, Any] = {}
    for name, (seconds_at, sizes) in curves.items():
        seconds = [seconds_at(size) for size in sizes]
        exponent = math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])
        found[name] = {"sizes": sizes, "seconds": seconds, "last_exponent": exponent}
        times = "  ".join(f"{1e3 * spent:.1f}" for spent in seconds)
        table.add_row(name, f"{sizes[0]:,} .. {sizes[-1]:,}", times, f"{exponent:.2f}")
    console.print(table)
    return found


def _evaluate(rows: int, bits: int, queries: int) -> float:
    """Return the seconds of counting random 3-way queries on stored random bits."""
    records = stored_records(Biased(rows, bits, seed=1))
    workload = random_conjunctions(Domain.binary(bits), queries, seed=1)
    return fastest(lambda: workload.counts(records, os.cpu_count() or 1), _REPETITIONS)[0]


def _draw(queries: int, samples: int) -> float:
    """Return the seconds of drawing samples from the weights of a round."""
    rows = 100_000
    generator = np.random.default_rng(1)
    weights = QueryWeights(generator.integers(0, rows, queries), rows, 0.05)
    for _ in range(5):
        weights.update(generator.integers(0, 2, queries).astype(np.uint8))
    source = randomness(1)
    return fastest(lambda: weights.sample(samples, source), _REPETITIONS)[0]
