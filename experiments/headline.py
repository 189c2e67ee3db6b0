"""What a release is worth: DualQuery under two accountants, sampled MWEM, and the baselines.

The setting of the paper's Section 6 (signed random 3-way conjunctions, epsilon 1, delta 0.001) on
the paper's own bits, with the policy's parameters: nothing is tuned to the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import dualquery
from dualquery.errors import BadInputError
from dualquery.evaluation import WARNING

EPSILON, DELTA = 1.0, 0.001
CONTENDERS = {
    "DualQuery": ("dualquery", "auto"),
    "DualQuery, the paper's accounting": ("dualquery", "paper"),
    "MWEM on a sampled distribution": ("mwem-sampled", "zcdp"),
}
SETTINGS = {"adult": ("adult-paper", 100_000), "kdd99": ("kdd99", 500_000)}


def run(data: str, runs: int, *, quick: bool) -> dict[str, Any]:
    """Release and evaluate once a seed and accountant; print a table of means.

    Parameters
    ----------
    data
        ``adult`` or ``kdd99:PATH``.
    runs
        Seeds 1 to this.
    quick
        10,000 queries instead of the full workload.

    Raises
    ------
    BadInputError
        If the data are others, or cannot be read.
    """
    source = data.partition(":")[0]
    if source not in SETTINGS:
        raise BadInputError(f"--data is {data!r}; this experiment takes adult or kdd99:PATH")
    schema, queries = SETTINGS[source]
    queries = 10_000 if quick else queries
    lines: dict[str, list[tuple[float, float]]] = {}
    parameters: dict[str, Any] = {}
    for name, (mechanism, accountant) in CONTENDERS.items():
        for seed in range(1, runs + 1):
            release = dualquery.release(
                data,
                schema=schema,
                queries=queries,
                epsilon=EPSILON,
                delta=DELTA,
                mechanism=mechanism,
                accountant=accountant,
                seed=seed,
            )
            parameters[name] = dict(release.parameters)
            found = dualquery.evaluate(release, data, seed=seed)
            lines.setdefault(name, []).append((found["max_error"], found["mean_error"]))
            if name == next(iter(CONTENDERS)):
                for baseline, errors in found["baselines"].items():
                    pair = (errors["max_error"], errors["mean_error"])
                    lines.setdefault(f"baseline: {baseline}", []).append(pair)

    seeds = f"mean of {runs} seeds" if runs > 1 else "one seed"
    console = Console()
    console.print(WARNING, style="bold white on red")
    table = Table(
        "answers from",
        "max error",
        "mean error",
        "max error of each seed",
        title=f"{source}, {queries:,} signed 3-way conjunctions, "
        f"epsilon {EPSILON:g}, delta {DELTA:g}, {seeds}",
    )
    for name, pairs in lines.items():
        largest, mean = np.mean(pairs, axis=0)
        each = " ".join(f"{pair[0]:.4f}" for pair in pairs)
        table.add_row(name, f"{largest:.4f}", f"{mean:.5f}", each)
    console.print(table)
    return {
        "warning": WARNING,
        "data": source,
        "queries": queries,
        "epsilon": EPSILON,
        "delta": DELTA,
        "neighbours": "replace-one",
        "parameters": parameters,
        "errors": {
            name: [{"max_error": a, "mean_error": b} for a, b in pairs]
            for name, pairs in lines.items()
        },
    }
