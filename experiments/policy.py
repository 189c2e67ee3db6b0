"""How far the practical policy of DualQuery is from the best parameters of a grid.

The policy fixes rounds, samples and step from epsilon, delta, n, the number of queries and the
schema. Here its neighbours are tried as well: draws and steps by factors of `FACTORS` away. The
best of the grid is found by looking at the private error, which a release may not: it is what the
policy is measured against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dualquery.api import run as play
from dualquery.engines import Engine
from dualquery.errors import BadInputError
from dualquery.evaluation import WARNING
from dualquery.game.dualquery import DualQuery
from dualquery.mechanism import Budget, Task
from dualquery.queries.request import WorkloadRequest

EPSILON, DELTA = 1.0, 0.001
FACTORS = ((1.0, 1.0), (0.5, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 2.0), (0.5, 0.5))
"""Rounds and samples a round of the grid, in units of the policy's; the first is the policy."""
WITHIN = 1.15


def run(tables: Sequence[str], runs: int, *, quick: bool) -> dict[str, Any]:
    """Play the policy and its neighbours on every table; print a table of the errors' ratios.

    Parameters
    ----------
    tables
        Data as `dualquery.release` takes them; ``adult`` is read with the schema ``adult-paper``.
    runs
        Seeds 1 to this.
    quick
        5,000 queries instead of 100,000, and three of the grid.

    Raises
    ------
    BadInputError
        If a table cannot be read, or none is given.
    """
    if not tables:
        raise BadInputError("--data names no table")
    grid = FACTORS[:3] if quick else FACTORS
    request = WorkloadRequest(queries=5_000 if quick else 100_000)
    budget = Budget(EPSILON, DELTA, "zcdp")
    lines = []
    for table in tables:
        with Engine(name="memory").open(table, "adult-paper" if table == "adult" else None) as data:
            task = Task(request.build(data.schema, data.n), data.n)
            counts = task.workload.counts(data.records, threads=1)
            chosen = DualQuery().plan(task, budget).parameters
            for rounds_factor, samples_factor in grid:
                mechanism = DualQuery(
                    rounds=max(2, round(chosen["rounds"] * rounds_factor)),
                    samples=max(1, round(chosen["samples"] * samples_factor)),
                )
                plan = mechanism.plan(task, budget)
                errors = []
                for seed in range(1, runs + 1):
                    answers = play(data, task, mechanism, plan, seed, 1).answers
                    off = np.abs(answers - counts / data.n)
                    errors.append((float(off.max()), float(off.mean())))
                largest, mean = np.mean(errors, axis=0)
                lines.append(
                    {
                        "data": table,
                        "rounds_factor": rounds_factor,
                        "samples_factor": samples_factor,
                        **{key: plan.parameters[key] for key in ("rounds", "samples", "eta")},
                        "max_error": float(largest),
                        "mean_error": float(mean),
                    }
                )
    ratios = {table: ratios_to_best([x for x in lines if x["data"] == table]) for table in tables}
    _show(lines, ratios, f"{len(task.workload):,} queries, {runs} seeds")
    return {
        "warning": WARNING,
        "epsilon": EPSILON,
        "delta": DELTA,
        "neighbours": "replace-one",
        "runs": runs,
        "lines": lines,
        "policy_over_best": ratios,
        "within": WITHIN,
    }


def ratios_to_best(lines: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the first line's errors over the smallest of all lines, for each kind of error."""
    return {
        kind: lines[0][kind] / min(line[kind] for line in lines)
        for kind in ("max_error", "mean_error")
    }


def _show(lines: Sequence[dict[str, Any]], ratios: dict[str, dict[str, float]], what: str) -> None:
    console = Console()
    console.print(WARNING, style="bold white on red")
    table = Table(
        "data", "rounds", "samples", "eta", "max error", "mean error",
        title=f"DualQuery's policy (first line of each) and its neighbours; {what}",
    )  # fmt: skip
    for line in lines:
        table.add_row(
            line["data"],
            str(line["rounds"]),
            str(line["samples"]),
            f"{line['eta']:.2f}",
            f"{line['max_error']:.4f}",
            f"{line['mean_error']:.5f}",
        )
    console.print(table)
    for name, found in ratios.items():
        console.print(
            f"{name}: the policy's error over the best of the grid: max "
            f"{found['max_error']:.2f}, mean {found['mean_error']:.2f}"
        )
