"""The main job in one call: a table goes in, a private release comes out."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.arguments import (
    Guarantee,
    Run,
    SyntheticRecords,
    require_known,
    told_in_python,
    whole,
)
from dualquery.data.table import Table
from dualquery.mechanisms.protocol import Task
from dualquery.mechanisms.registry import configure, with_records
from dualquery.privacy.budget import weak_epsilon
from dualquery.privacy.events import pure_epsilon
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.identity import keep_questions, keep_request
from dualquery.releases.making import Terms, make_release, rehearse
from dualquery.releases.payment import Payment
from dualquery.releases.polish import check_polish
from dualquery.releases.pricing import declarations
from dualquery.requests import BudgetRequest, WorkloadRequest
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.randomness import check_seed
from dualquery.room.row_count import COUNT_SHARE, RowCount
from dualquery.rules.reading import rules_of, without_absent
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.figures import some
from dualquery.runtime.progress import listener
from dualquery.runtime.resources import check_memory, thread_count
from dualquery.runtime.warned import privacy_log

if TYPE_CHECKING:
    from dualquery.budgets.budget_file import BudgetFile
    from dualquery.data.schema.protocol import Schema
    from dualquery.estimates.expected import ExpectedError
    from dualquery.privacy.events import Event
    from dualquery.queries.family import Queries
    from dualquery.releases.folder import Release

REPLACE_ONE = Neighbours.REPLACE_ONE.value
AS_USUAL = Run()
_TRIAL_ROWS = 1_000_000
"""Number of rows to plan for before one is bought: what is refused then is refused for any."""


@told_in_python
def release(
    table: Any = "adult",
    *,
    schema: Schema | Mapping[str, object] | str | Path | None = None,
    queries: WorkloadRequest | int | str | Path | Sequence[str] | Queries | None = None,
    mechanism: str | None = None,
    options: Mapping[str, Any] | None = None,
    records: SyntheticRecords | int | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    guarantee: Guarantee | str = REPLACE_ONE,
    budget: str | Path | BudgetFile | None = None,
    seed: int | None = None,
    run: Run = AS_USUAL,
    **keywords: Any,
) -> Release:
    """Answer a workload about a private table, and make synthetic records, under privacy.

    Parameters
    ----------
    table
        A built-in name, a path, ``FORMAT:PATH``, or a Polars, pandas, Arrow, NumPy or SciPy table;
        or a `Table`, which says what of it is read.
    schema
        The declared columns: a schema, a built-in name, a path, or what a schema file holds as a
        dict. Without one, categories and buckets are taken from the data and the release states no
        guarantee.
    queries
        A number of random conjunctions, ``"all"``, a file or a list of queries; a
        `WorkloadRequest`, which can ask for more; or a `Workload` itself, or another family of
        queries (`dualquery.queries.family`).
    mechanism, options
        The mechanism's name, and values for the fields of its configuration. None for ``auto``,
        which chooses from public facts, and passes options on to what it chooses (see
        `dualquery.mechanisms.registry.implied_mechanism`).
    records
        Number of synthetic records, or `SyntheticRecords`; None for one a row, up to limits that
        the release states.
    epsilon, delta
        The budget. ``delta`` defaults to 1/n^2 (0 for mechanisms of pure epsilon), n being the
        number of rows, or of units where these are protected.
    guarantee
        What epsilon and delta are about: ``replace-one``, ``add-remove`` or a `Guarantee`.
    budget
        A budget file (`dualquery.BudgetFile`, or its path), which is charged before anything is
        drawn; a release that is not private is refused then. None charges none: the guarantee adds
        up with those of other releases about the same rows.
    seed
        For experiments only: makes the run reproducible and the release not private.
    run
        Engine, threads, checkpoint, progress, private errors: a `Run`.
    keywords
        Any field of these objects by its own name, such as ``way=2``, ``neighbours="add-remove"``
        or ``threads=1`` (`dualquery.arguments.KEYWORDS` lists them).

    Returns
    -------
    Release

    Raises
    ------
    BadInputError
        If anything asked for cannot be, or the budget file has no room for it; nothing private has
        been drawn then, but for the noisy number of rows. The message names options as the command
        line does; a note behind it says which keywords these are.
    TypeError
        If there is no such keyword.

    Examples
    --------
    >>> import dualquery
    >>> released = dualquery.release("adult", queries=1000, epsilon=1.0)  # doctest: +SKIP
    >>> released.save("my-release")  # doctest: +SKIP
    """
    from dualquery.queries.family import Queries

    # What is wrong whatever the table must fail before it is read.
    read = whole(Table, table, keywords)
    own_queries = queries if isinstance(queries, Queries) else None
    request = whole(WorkloadRequest, queries if own_queries is None else 1, keywords)
    made = whole(SyntheticRecords, records, keywords)
    guarantee = whole(Guarantee, guarantee, keywords)
    run = whole(Run, run, keywords)
    require_known(keywords, [*inspect.signature(release).parameters])
    wanted = BudgetRequest(epsilon=epsilon, delta=delta, **vars(guarantee))
    configured = with_records(configure(mechanism, options or {}), made.number, polish=made.polish)
    wanted.require_delta(configured)
    told = weak_epsilon(epsilon)
    for warning in told:
        privacy_log.warning(warning)
    progress = listener(run.progress)
    if mechanism is None and configured.name != "auto":
        progress.note(f"mechanism {configured.name}, because it has the options that were given")
    # The clock is read before the table is: how long a pass over private rows took stays unsaid.
    created = datetime.datetime.now(datetime.UTC)
    check_seed(seed)
    cores = thread_count(run.threads)
    source, engine = read.named, run.reading
    checkpoint = run.checkpoint if seed is None else None
    journal: Journal = NO_JOURNAL
    if checkpoint is not None:
        checkpoint.start()
        others = {
            "records": made.number,
            "polish": made.polish,
            "show_private_errors": run.show_private_errors,
        }
        keep_request(checkpoint, configured, wanted, request, source, others)
        journal = checkpoint
    payment = Payment.begin(budget, source, wanted.relation, configured.name, seed, checkpoint)
    progress.phase("reading the table")
    cuts = (read.max_ones_per_row, guarantee.unit, guarantee.weight)
    with engine.open(source, schema, read.columns, *cuts, sums=request.means) as data:
        if data.left_out:
            progress.note(f"left out, as the schema does not describe them: {some(data.left_out)}")
        payment.require_declared(data.schema.declared)
        settled, remarks = without_absent(data.schema)
        data, rules = replace(data, schema=settled), rules_of(settled)

        if own_queries is None:
            request.require_marginals(settled)
        frequent = request.frequent(settled, configured)

        def pay_first(event: Event) -> None:
            trial = RowCount(_TRIAL_ROWS, wanted.relation, pure_epsilon(event), data.units)
            rehearse(
                data.schema,
                request.trial(data.schema)
                if own_queries is None
                else _own_workload(own_queries, data.schema),
                configured,
                wanted.resolve(configured, trial)[0],
                trial.n,
            )
            in_all = wanted.delta_of(configured, data.units or 0)  # which is public, if it is used
            payment.pay_first(event, epsilon, in_all)

        count = wanted.count_rows(data.records, seed, pay_first, journal, data.units)
        if made.number is not None:
            check_memory(
                2 * made.number * data.schema.domain.bits,
                f"{made.number:,} records of {data.schema.domain.bits:,} bits",
                "release fewer; dualquery sample draws any number from the release afterwards",
            )
        with count.cost_told():
            share, notes = wanted.resolve(configured, count)
            for warning in notes:
                if warning not in told:
                    privacy_log.warning(warning)
            notes = (*notes, *remarks)
            progress.phase("making the workload")
            if own_queries is not None:
                workload = _own_workload(own_queries, data.schema)
            elif frequent is not None:
                workload = frequent.stand_in
            else:
                workload = request.build(data.schema, max(1, count.n // wanted.relation.copies))
            if made.polish is not None:
                check_polish(workload, made.polish)
            statistics = configured.statistics(workload)
            declared = declarations(workload, statistics)
            keep_questions(journal, data.schema, workload)
        task = Task(workload, count.n, wanted.relation.copies, rules, frequent)
        terms = Terms(
            share, count, statistics, declared, asked_epsilon=epsilon, stated_rows=guarantee.rows,
            seed=seed, records=made.number, polish=made.polish, csv=read.csv,
            show_private_errors=run.show_private_errors, payment=payment, journal=journal,
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
    bought = 0.0 if relation.rows_public else COUNT_SHARE * epsilon
    budget, _ = wanted.resolve(configured, RowCount(n, relation, bought))
    task = Task(queries, n)
    return configured.expected_error(task, configured.plan(task, budget))
