"""One release of a table, compared with the exact answers, which are counted once a workload.

Not private: it reads the exact answers. The tables of the experiments are public.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.protocol import Mechanism, Outcome, Plan, Task
from dualquery.mechanisms.registry import configure
from dualquery.queries.conjunctions import Workload
from dualquery.releases.compare.evaluation import Errors
from dualquery.releases.make.making import run as run_mechanism
from dualquery.requests import BudgetRequest, WorkloadRequest
from dualquery.room.row_count import RowCount
from dualquery.rows.cached import CachedRows
from dualquery.rows.engines import Dataset, load
from dualquery.rules.reading import rules_of
from experiments.contenders import Contender
from experiments.harness.recipe import Row, Run

_AT_LIMIT = 0.9
"""A best response that took this share of its time limit counts as stopped by it."""


@dataclass(frozen=True, eq=False)
class Question:
    """A data set, what is asked about it, and the exact answers."""

    data: Dataset[Any]  # the table
    task: Task  # the public facts
    truth: NDArray[np.float64]  # float64, shape ``(m,)``: exact answers, shares of the rows
    evaluation_s: float  # seconds that counting them took
    _plans: dict[Any, Plan[Any]] = field(default_factory=dict, repr=False)

    @property
    def workload(self) -> Workload:
        """The queries."""
        return self.task.workload

    def plan(self, mechanism: Mechanism[Any], wanted: BudgetRequest) -> Plan[Any]:
        """Return a mechanism's plan, made once for all seeds."""
        key = (mechanism, wanted)
        if key not in self._plans:
            budget, _ = wanted.resolve(mechanism, RowCount(self.data.n))
            self._plans[key] = mechanism.plan(self.task, budget)
        return self._plans[key]


@lru_cache(maxsize=1)
def table(source: str, schema: str | None, columns: str | None) -> Dataset[CachedRows]:
    """Return a data set; the last one is kept."""
    data = load(source, schema, columns)
    return Dataset(CachedRows(data.records), data.schema, data.source, data.notes)


@lru_cache(maxsize=1)
def question(
    source: str, schema: str | None, columns: str | None, request: WorkloadRequest, threads: int = 1
) -> Question:
    """Read a data set, make a workload and count its answers; the last result is kept."""
    data = table(source, schema, columns)
    return question_about(data, request.build(data.schema, data.n), threads)


def question_about(data: Dataset[Any], queries: Any, threads: int = 1) -> Question:
    """Count the exact answers of queries of any family about a data set."""
    start = time.perf_counter()
    counts = queries.counts(data.records, threads)
    seconds = time.perf_counter() - start
    truth = np.asarray(counts / data.n, dtype=np.float64)
    return Question(data, Task(queries, data.n, rules=rules_of(data.schema)), truth, seconds)


def question_of(run: Run, threads: int) -> Question:
    """Return the question of a run: the parameters of a `DataSet`, and what is asked of it.

    That is ``queries`` or ``marginals``; ``signed`` and ``query_columns`` if not all kinds are.
    """
    asked = {name: run[name] for name in ("queries", "marginals", "signed") if name in run}
    request = WorkloadRequest(**asked, columns=run.get("query_columns"))
    return question(run["source"], run["schema"], run["columns"], request, threads)


@dataclass(frozen=True, eq=False)
class Release:
    """A release for an experiment, and how far it is from the truth."""

    plan: Plan[Any]  # what the mechanism had planned
    outcome: Outcome  # what it gave back
    errors: Errors  # of its answers
    seconds: float
    """Of planning (0 if it was known) and running, with the exact answers known before."""
    cpu_seconds: float  # the same, of the processor

    @property
    def rounds_at_limit(self) -> int:
        """Number of rounds whose best response took the time limit, and was not proven optimal."""
        limit = _AT_LIMIT * self.plan.parameters.get("solver_timeout", 0.0)
        return sum(
            line.get("status", "optimal") != "optimal" and line["seconds"] >= limit
            for line in self.outcome.trace
        )

    def row(self) -> dict[str, Any]:
        """Return errors, the game's parameters and rounds, and seconds, as columns."""
        chosen = self.plan.parameters
        return {
            "max_error": self.errors.max_error,
            "mean_error": self.errors.mean_error,
            "rmse": self.errors.rmse,
            **{name: chosen.get(name) for name in ("rounds", "samples", "eta")},
            "rounds_at_limit": self.rounds_at_limit,
            "rounds_proven": self.outcome.solver.get("rounds", {}).get("optimal", 0),
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
        }


def release(
    asked: Question,
    contender: Contender,
    seed: int,
    *,
    epsilon: float,
    delta: float | None,
    threads: int = 1,
) -> Release:
    """Run a mechanism on a question and compare its answers with the truth.

    The budget is for replace-one neighbours; delta None is the default for the mechanism.

    Raises
    ------
    BadInputError
        If the mechanism cannot do this.
    """
    configured = configure(contender.mechanism, contender.options)
    # Counting is not the mechanism's own work: it must be over before the clock starts.
    configured.statistics(asked.task.queries).counts(asked.data.records, threads=threads)
    start = time.perf_counter()
    cpu_start = time.process_time()
    wanted = BudgetRequest(epsilon=epsilon, delta=delta, accountant=contender.accountant)
    plan = asked.plan(configured, wanted)
    outcome = run_mechanism(asked.data, asked.task, configured, plan, seed, threads)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    errors = Errors.between(outcome.answers, asked.truth)
    return Release(plan, outcome, errors, seconds, cpu_seconds)


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Release with each contender of a run at each of its epsilons.

    A run has the parameters of `question_of`, ``contenders`` (of `contenders.specified`),
    ``epsilons``, ``delta`` and ``seed``.
    """
    asked = question_of(run, threads)
    rows = []
    for label, contender in run["contenders"].items():
        for epsilon in run["epsilons"]:
            found = release(
                asked,
                Contender(**contender),
                run["seed"],
                epsilon=epsilon,
                delta=run["delta"],
                threads=threads,
            )
            row = {"contender": label, "epsilon": epsilon, **found.row()}
            if "marginals" in run:
                row["mean_l1"] = mean_l1(
                    asked.workload, np.abs(found.outcome.answers - asked.truth)
                )
            rows.append({**row, "evaluation_s": asked.evaluation_s})
    return rows


def mean_l1(workload: Workload, off: NDArray[np.float64]) -> float:
    """Return the mean over whole marginals of the summed errors of their cells.

    ``off`` is float64, shape ``(m,)``: the absolute error of each cell.
    """
    from dualquery.queries.derived_queries import Cuboids

    marginals = Cuboids.of(workload)
    return float(np.mean(np.add.reduceat(off[marginals.members], marginals.indptr[:-1])))
