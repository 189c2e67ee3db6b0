"""The main job in one call: a table goes in, a private release comes out."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.budget_request import BudgetRequest
from dualquery.errors import BadInputError
from dualquery.expected import planned_error
from dualquery.mechanism import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.accountants import best
from dualquery.privacy.curator import Curator, numerical_assumptions
from dualquery.privacy.events import Neighbours, events_of
from dualquery.privacy.randomness import check_seed, randomness
from dualquery.privacy.row_count import RowCount
from dualquery.privacy.statement import PrivacyStatement
from dualquery.progress import NO_PROGRESS, Progress
from dualquery.registry import configure
from dualquery.threads import thread_count
from dualquery.versions import versions

if TYPE_CHECKING:
    from dualquery.data.load import Dataset
    from dualquery.data.rows import Rows
    from dualquery.data.schema import Schema
    from dualquery.engines import Engine
    from dualquery.folder import Release
    from dualquery.queries.family import Queries

_UNSEEN = "The mechanism looks at no private row."


def release(
    table: Any = "adult",
    *,
    schema: Schema | str | Path | None = None,
    columns: Sequence[str | int] | str | None = None,
    max_ones_per_row: int | None = None,
    queries: int | str | Path | Sequence[str] | Queries | None = None,
    way: int = 3,
    signed: bool = True,
    workload_seed: int = 0,
    query_columns: Sequence[str | int] | str | None = None,
    marginals: int | None = None,
    max_cells: int | None = None,
    mechanism: str | None = None,
    options: Mapping[str, Any] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    neighbours: str = "replace-one",
    rows: int | None = None,
    accountant: str = "auto",
    seed: int | None = None,
    engine: Engine | str = "auto",
    threads: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> Release:
    """Answer a workload about a private table, and make synthetic records, under privacy.

    Parameters
    ----------
    table
        A built-in name, a path, ``FORMAT:PATH``, or a Polars, pandas, NumPy or SciPy table.
    schema
        The declared columns: a schema, a built-in name or a path. Without one, categories and
        buckets are taken from the data and the release states no guarantee.
    columns
        Names, positions or ranges of the columns to read.
    max_ones_per_row
        A public number: rows of binary columns with more 1s are cut to so many as they are read, so
        that one row moves fewer answers (see `dualquery.data.truncation`). None for no cut, or for
        what the schema says.
    queries, way, signed, workload_seed, query_columns, marginals, max_cells
        The workload: see `WorkloadRequest`. ``queries`` may be a `Workload` itself, or another
        family of queries (`dualquery.queries.family`).
    mechanism, options
        The mechanism's name, and values for the fields of its configuration. None for ``auto``,
        which chooses from public facts; with options, for the mechanism ``dualquery``.
    epsilon, delta, neighbours, accountant
        The budget. ``delta`` defaults to 1/n^2 (0 for mechanisms of pure epsilon).
    rows
        With ``neighbours="add-remove"``, where the number of rows is private: a number to go by
        instead. None buys a noisy one with a twenty-fifth of epsilon; ``delta`` is then needed.
    seed
        For experiments only: makes the run reproducible and the release not private.
    engine
        How private rows are read, or the name of one of `dualquery.engines.ENGINES`: ``auto`` takes
        ``stream`` for files that do not fit into memory. Results do not depend on it.
    threads
        Threads for all parts; None for one a core. Results do not depend on it.
    progress
        Told about phases and rounds.

    Returns
    -------
    Release

    Raises
    ------
    BadInputError
        If anything asked for cannot be; nothing private has been drawn then, but for the noisy
        number of rows.

    Examples
    --------
    >>> import dualquery
    >>> released = dualquery.release("adult", queries=1000, epsilon=1.0)  # doctest: +SKIP
    >>> released.save("my-release")  # doctest: +SKIP
    """
    from dualquery.engines import Engine
    from dualquery.queries.family import Queries
    from dualquery.queries.request import WorkloadRequest

    # What is wrong whatever the table must fail before it is read.
    wanted = BudgetRequest(
        epsilon=epsilon, delta=delta, accountant=accountant, neighbours=neighbours, rows=rows
    )
    configured = configure(mechanism, options or {})
    wanted.require_delta(configured)
    if mechanism is None and options:
        progress.note(f"mechanism {configured.name}: options were given, and no mechanism named")
    # The clock is read before the table is: how long a pass over private rows took stays unsaid.
    created = datetime.datetime.now(datetime.UTC)
    check_seed(seed)
    cores = thread_count(threads)
    request = WorkloadRequest(
        queries=1 if isinstance(queries, Queries) else queries,
        way=way,
        signed=signed,
        seed=workload_seed,
        columns=query_columns,
        marginals=marginals,
        max_cells=max_cells,
    )
    reading = engine if isinstance(engine, Engine) else Engine(name=engine)
    progress.phase("reading the table")
    with reading.open(table, schema, columns, max_ones_per_row) as data:
        count = wanted.count_rows(data.records, seed)
        with count.cost_told():
            budget, notes = wanted.resolve(configured, count)
            progress.phase("making the workload")
            if isinstance(queries, Queries):
                workload, remarks = _own_workload(queries, data.schema)
                notes = (*notes, *remarks)
            else:
                workload = request.build(data.schema, count.n)
        task = Task(workload, count.n)
        return _release(
            data, task, configured, wanted, budget, count, notes, seed, cores, progress, created
        )


def _own_workload(workload: Queries, schema: Schema) -> tuple[Queries, tuple[str, ...]]:
    """Check a user's queries against the schema and what they declare; return remarks, too."""
    from dualquery.queries.declared import check_declared
    from dualquery.queries.stored import BUILT_IN
    from dualquery.queries.workload import Workload

    if not np.array_equal(workload.domain.offsets, schema.domain.offsets):
        raise BadInputError(
            f"the workload is about {workload.domain.columns} columns of {workload.domain.bits} "
            f"bits, but schema {schema.name!r} has {schema.domain.columns} of "
            f"{schema.domain.bits}: make it for the schema's own domain"
        )
    if isinstance(workload, Workload):
        return replace(workload, domain=schema.domain, repeats=False), ()
    return workload, () if type(workload) in BUILT_IN else (check_declared(workload),)


def _release(
    data: Dataset[Rows],
    task: Task,
    mechanism: Mechanism,
    wanted: BudgetRequest,
    budget: Budget,
    count: RowCount,
    notes: tuple[str, ...],
    seed: int | None,
    threads: int,
    progress: Progress,
    created: datetime.datetime,
) -> Release:
    """Plan on public facts, run on the curator, and put the result together."""
    from dualquery.folder import Release

    progress.phase("planning")
    with count.cost_told():
        plan = mechanism.plan(task, budget)
    privacy = statement(plan, budget, data, seed, count)
    if plan.remark:
        progress.note(plan.remark)
    expected = planned_error(mechanism, task, plan)
    if expected is not None:
        progress.note(expected.text())
    outcome = run(data, task, mechanism, plan, seed, threads, progress, budget.neighbours)
    intervals = outcome.intervals
    if intervals is not None:
        intervals = intervals.for_rows(count, task.queries.low, task.queries.high)
        intervals = intervals.for_cut(data.schema.max_ones_per_row)
    return Release(
        mechanism=mechanism.name,
        parameters=plan.parameters,
        options={
            "epsilon": wanted.epsilon,
            "delta": budget.delta,
            "accountant": budget.accountant,
            "neighbours": budget.neighbours.value,
            "rows": wanted.rows,
            "seed": seed,
            "mechanism": asdict(mechanism),  # type: ignore[call-overload]  # a frozen dataclass
        },
        privacy=privacy,
        schema=data.schema,
        n=count.n,
        workload=task.queries,
        answers=outcome.answers,
        records=outcome.records,
        trace=outcome.trace,
        solver=outcome.solver,
        intervals=intervals,
        notes=(*data.notes, *notes),
        versions=versions(),
        created=created.isoformat(timespec="seconds"),
    )


def run(
    data: Dataset[Rows],
    task: Task,
    mechanism: Mechanism,
    plan: Plan,
    seed: int | None,
    threads: int,
    progress: Progress = NO_PROGRESS,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> Outcome:
    """Let the private room read the rows, and the mechanism run on it."""
    statistics = mechanism.statistics(task.queries)
    curator = None
    if statistics is not None:
        # Sensitivities rest on which records are legal, so on the schema's own columns.
        if not statistics.domain.covers(data.schema.domain):
            raise RuntimeError(f"{mechanism.name} asks about columns that are not the schema's")
        curator = Curator(
            data.records,
            statistics,
            plan.schedule,
            randomness(seed),
            threads=threads,
            neighbours=neighbours,
            public_rows=task.n,
        )
        if plan.needs_answers:
            progress.phase("evaluating the queries")
            curator.evaluate()
    progress.phase(f"running {plan.parameters.get('mechanism', mechanism.name)}")
    session = Session(threads=threads, public_seed=seed, progress=progress.step)
    return mechanism.run(task, plan, curator, session)


def statement(
    plan: Plan,
    budget: Budget,
    data: Dataset[Rows],
    seed: int | None,
    count: RowCount | None = None,
) -> PrivacyStatement:
    """Price the plan's schedule, and say what the release will guarantee or why it will not.

    To the budget comes what the number of rows cost (None: nothing, it is public).

    The plan is priced here again, whoever made it, so that no mechanism can state a guarantee
    that its schedule does not have.

    Raises
    ------
    RuntimeError
        If the schedule costs more than the budget: a fault of the mechanism.
    """
    accountant, cost = best(plan.schedule, budget.delta, plan.accountant)
    if cost > budget.epsilon:
        raise RuntimeError(
            f"the plan costs epsilon {cost:g} by {accountant.name}, above {budget.epsilon:g}"
        )
    reasons = []
    if seed is not None:
        reasons.append("a seed was given, so the noise can be undone")
    if not data.schema.declared:
        reasons.append(
            "the schema was taken from the data; draft a file (dualquery schema TABLE --out FILE), "
            'check it, set "declared": true in it and give it with --schema'
        )
    if reasons:
        return PrivacyStatement.not_private(*reasons)
    looked = bool(events_of(plan.schedule))
    rows = RowCount(data.n) if count is None else count
    return PrivacyStatement(
        private=True,
        epsilon=rows.epsilon + (budget.epsilon if looked else 0.0),
        delta=budget.delta if looked else 0.0,
        accountant=accountant.name,
        assumptions=(
            accountant.assumptions if looked else _UNSEEN,
            *rows.assumptions,
            *data.notes,
        ),
        numerical_assumptions=numerical_assumptions((*rows.events, *events_of(plan.schedule))),
        neighbours=rows.relation,
    )
