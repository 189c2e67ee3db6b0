"""The main job in one call: a table goes in, a private release comes out."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.mechanisms.protocol import Task
from dualquery.mechanisms.registry import configure, with_records
from dualquery.privacy.events import Neighbours
from dualquery.releases.identity import keep_questions, keep_request
from dualquery.releases.making import Terms, declarations, make_release
from dualquery.releases.payment import Payment
from dualquery.releases.polish import check_polish
from dualquery.requests import BudgetRequest
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.randomness import check_seed
from dualquery.room.row_count import COUNT_SHARE, RowCount
from dualquery.rules.reading import rules_of, without_absent
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS, Progress
from dualquery.runtime.resources import check_memory, thread_count

if TYPE_CHECKING:
    from dualquery.budgets.budget_file import BudgetFile
    from dualquery.checkpoints.checkpoint import Checkpoint
    from dualquery.data.schema.protocol import Schema
    from dualquery.estimates.expected import ExpectedError
    from dualquery.queries.family import Queries
    from dualquery.releases.folder import Release
    from dualquery.rows.engines import Engine


def release(
    table: Any = "adult",
    *,
    schema: Schema | Mapping[str, object] | str | Path | None = None,
    columns: Sequence[str | int] | str | None = None,
    max_ones_per_row: int | None = None,
    queries: int | str | Path | Sequence[str] | Queries | None = None,
    way: int = 3,
    signed: bool = True,
    workload_seed: int = 0,
    query_columns: Sequence[str | int] | str | None = None,
    marginals: int | str | None = None,
    max_cells: int | None = None,
    mechanism: str | None = None,
    options: Mapping[str, Any] | None = None,
    records: int | None = None,
    polish: float | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    neighbours: str = "replace-one",
    rows: int | None = None,
    accountant: str = "auto",
    budget: str | Path | BudgetFile | None = None,
    seed: int | None = None,
    engine: Engine | str = "auto",
    threads: int | None = None,
    checkpoint: Checkpoint | None = None,
    show_private_errors: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Release:
    """Answer a workload about a private table, and make synthetic records, under privacy.

    Parameters
    ----------
    table
        A built-in name, a path, ``FORMAT:PATH``, or a Polars, pandas, NumPy or SciPy table.
    schema
        The declared columns: a schema, a built-in name, a path, or what a schema file holds as a
        dict. Without one, categories and
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
    records
        Number of synthetic records; None for one a row, up to limits that the release states. A
        mechanism that fits no distribution repeats its own records.
    polish
        Seconds for which the records are brought nearer to the released answers, of conjunctions of
        at most 3 literals (`dualquery.releases.polish`); None for not at all. How far it gets
        depends on the machine, so a seed does not repeat the records then.
    epsilon, delta, neighbours, accountant
        The budget. ``delta`` defaults to 1/n^2 (0 for mechanisms of pure epsilon).
    rows
        With ``neighbours="add-remove"``, where the number of rows is private: a public number to
        use instead. None buys a noisy one with a twenty-fifth of epsilon, and needs ``delta``.
    budget
        A budget file (`dualquery.BudgetFile`, or its path), which is charged before anything is
        drawn; a release that is not private is refused then. None charges none: the guarantee adds
        up with those of other releases about the same rows.
    seed
        For experiments only: makes the run reproducible and the release not private.
    engine
        How private rows are read, or the name of one of `dualquery.rows.engines.ENGINES`: ``auto``
        takes ``stream`` for files that do not fit into memory. Results do not depend on it.
    threads
        Threads for all parts; None for one a core. Results do not depend on it.
    checkpoint
        Keeps what is drawn, or has it from an interrupted run that this one goes on with (see
        `dualquery.releases.reservation`). A run with a seed needs none: it can be made again.
    show_private_errors
        True to log the true errors of the answers, for yourself only. What you choose after seeing
        them is not covered by the guarantee, and the release says that they were shown.
    progress
        Listens to phases and rounds.

    Returns
    -------
    Release

    Raises
    ------
    BadInputError
        If anything asked for cannot be, or the budget file has no room for it; nothing private has
        been drawn then, but for the noisy number of rows.

    Examples
    --------
    >>> import dualquery
    >>> released = dualquery.release("adult", queries=1000, epsilon=1.0)  # doctest: +SKIP
    >>> released.save("my-release")  # doctest: +SKIP
    """
    from dualquery.queries.family import Queries
    from dualquery.requests import WorkloadRequest
    from dualquery.rows.engines import Engine

    # What is wrong whatever the table must fail before it is read.
    wanted = BudgetRequest(
        epsilon=epsilon, delta=delta, accountant=accountant, neighbours=neighbours, rows=rows
    )
    configured = with_records(configure(mechanism, options or {}), records, polish=polish)
    wanted.require_delta(configured)
    if mechanism is None and options:
        progress.note(
            f"mechanism {configured.name}, because options were given without a mechanism"
        )
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
    relation = Neighbours.parse(neighbours)
    journal: Journal = NO_JOURNAL
    if checkpoint is not None and seed is None:
        checkpoint.start()
        asked = {
            "records": records,
            "polish": polish,
            "show_private_errors": show_private_errors,
        }
        keep_request(checkpoint, configured, wanted, request, table, asked)
        journal = checkpoint
    payment = Payment.begin(
        budget, table, relation, configured.name, seed, None if seed is not None else checkpoint
    )
    progress.phase("reading the table")
    with reading.open(table, schema, columns, max_ones_per_row) as data:
        payment.require_declared(data.schema.declared)
        settled, remarks = without_absent(data.schema)
        data, rules = replace(data, schema=settled), rules_of(settled)
        whole = (epsilon, delta or 0.0)  # given, or 0 of a pure mechanism, if rows are bought
        count = wanted.count_rows(
            data.records, seed, lambda event: payment.pay_first(event, *whole), journal
        )
        if records is not None:
            check_memory(
                2 * records * data.schema.domain.bits,
                f"{records:,} records of {data.schema.domain.bits:,} bits",
                "release fewer; dualquery sample draws any number from the release afterwards",
            )
        with count.cost_told():
            share, notes = wanted.resolve(configured, count)
            notes = (*notes, *remarks)
            progress.phase("making the workload")
            if isinstance(queries, Queries):
                workload = _own_workload(queries, data.schema)
            else:
                workload = request.build(data.schema, count.n)
            if polish is not None:
                check_polish(workload, polish)
            statistics = configured.statistics(workload)
            declared = declarations(workload, statistics)
            keep_questions(journal, data.schema, workload)
        task = Task(workload, count.n, rules)
        terms = Terms(
            share, count, statistics, declared, asked_epsilon=epsilon, stated_rows=rows, seed=seed,
            records=records, polish=polish, show_private_errors=show_private_errors,
            payment=payment, journal=journal,
        )  # fmt: skip
        return make_release(data, task, configured, terms, notes, cores, progress, created)


def _own_workload(workload: Queries, schema: Schema) -> Queries:
    """Check that a user's queries are about the columns of the schema."""
    from dualquery.queries.family import over_domain

    if not np.array_equal(workload.domain.offsets, schema.domain.offsets):
        raise BadInputError(
            f"the workload is about {workload.domain.columns} columns of {workload.domain.bits} "
            f"bits, but schema {schema.name!r} has {schema.domain.columns} of "
            f"{schema.domain.bits}: make it for the schema's own domain"
        )
    return over_domain(workload, schema.domain)


def expected_error(
    queries: Queries,
    n: int,
    *,
    mechanism: str | None = None,
    options: Mapping[str, Any] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    neighbours: str = "replace-one",
    accountant: str = "auto",
) -> ExpectedError | None:
    """Say what error to expect of a release. Looks at no data and spends nothing.

    Parameters
    ----------
    queries
        The workload: a `Workload`, or another family of queries.
    n
        Number of rows of the table, public (or what stands in for it); >= 2.
    mechanism, options, epsilon, delta, neighbours, accountant
        As for `dualquery.release`.

    Returns
    -------
    None for a mechanism without a model of its error.

    Raises
    ------
    BadInputError
        If an option or the budget cannot be.
    """
    configured = configure(mechanism, options or {})
    wanted = BudgetRequest(
        epsilon=epsilon, delta=delta, accountant=accountant, neighbours=neighbours
    )
    relation = Neighbours.parse(neighbours)
    bought = COUNT_SHARE * epsilon if relation is Neighbours.ADD_REMOVE else 0.0
    budget, _ = wanted.resolve(configured, RowCount(n, relation, bought))
    task = Task(queries, n)
    return configured.expected_error(task, configured.plan(task, budget))
