"""The main job in one call: a table goes in, a private release comes out."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.arguments import spec_of, told_in_python
from dualquery.mechanisms.protocol import Task
from dualquery.mechanisms.registry import configure
from dualquery.privacy.budget import weak_epsilon
from dualquery.privacy.events import pure_epsilon
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Queries
from dualquery.releases.learning import learned_for
from dualquery.releases.making import (
    keep_questions,
    keep_request,
    make_release,
    plan_release,
    require_possible,
)
from dualquery.releases.payment import Payment
from dualquery.requests import (
    BudgetRequest,
    Guarantee,
    ReleaseSpec,
    Run,
    SyntheticRecords,
    WorkloadRequest,
)
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.row_count import COUNT_SHARE, RowCount
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.figures import some
from dualquery.runtime.progress import listener
from dualquery.runtime.warned import privacy_log

if TYPE_CHECKING:
    from dualquery.budgets.budget_file import BudgetFile
    from dualquery.data.schema.protocol import Schema
    from dualquery.estimates.expected import ExpectedError
    from dualquery.privacy.events import Event
    from dualquery.releases.folder import Release

REPLACE_ONE = Neighbours.REPLACE_ONE.value
AS_USUAL = Run()


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
    given = {
        "table": table, "schema": schema, "queries": queries, "mechanism": mechanism,
        "options": options, "records": records, "epsilon": epsilon, "delta": delta,
        "guarantee": guarantee, "budget": budget, "seed": seed, "run": run,
    }  # fmt: skip
    return release_of(spec_of(given, keywords))


def release_of(spec: ReleaseSpec) -> Release:
    """Make the release that is asked for.

    Raises
    ------
    BadInputError
        As `release`.
    """
    configured = spec.configured
    weak = weak_epsilon(spec.budget.epsilon)
    for warning in weak:
        privacy_log.warning(warning)
    progress = listener(spec.run.progress)
    if spec.mechanism.name is None and configured.name != "auto":
        progress.note(f"mechanism {configured.name}, because it has the options that were given")
    # The clock is read before the table is: how long a pass over private rows took stays unsaid.
    created = datetime.datetime.now(datetime.UTC)
    source, engine, budget = spec.table.named, spec.run.reading, spec.budget
    journal: Journal = NO_JOURNAL
    if spec.checkpoint is not None:
        spec.checkpoint.start()
        keep_request(spec, spec.checkpoint)
        journal = spec.checkpoint
    payment = Payment.begin(
        spec.budget_file, source, budget.relation, configured.name, spec.seed, spec.checkpoint
    )
    progress.phase("reading the table")
    learned = learned_for(spec, payment, journal)
    schema = spec.schema if learned is None else learned.schema
    charged = None if learned is None or learned.price is None else learned
    columns = spec.table.columns if learned is None else None
    read = (schema, columns, spec.table.max_ones_per_row, budget.unit)
    with engine.open(source, *read, budget.weight, sums=spec.workload.means) as data:
        if data.left_out:
            progress.note(f"left out, as the schema does not describe them: {some(data.left_out)}")
        payment.require_declared(data.schema.declared)

        def pay_first(event: Event) -> None:
            in_all = budget.delta_of(configured, data.units or 0)  # which is public, if it is used
            events: tuple[Event, ...] = (event,)
            own = (pure_epsilon(event), 0.0)
            if charged is not None and charged.price is not None:
                events = (*charged.events, event)
                own = (own[0] + charged.price.own(in_all)[0], in_all)
            payment.pay_first(events, own, (budget.epsilon, in_all))

        require_possible(spec, data.schema, data.units)
        count = budget.count_rows(data.records, spec.seed, pay_first, journal, data.units)
        with count.cost_told():
            planned = plan_release(spec, data.schema, count, progress, charged)
        for warning in planned.warnings:
            if warning not in weak:
                privacy_log.warning(warning)
        keep_questions(journal, planned.schema, planned.task.queries)
        data = replace(data, schema=planned.schema)
        return make_release(planned, data, payment, progress, created)


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
    if not isinstance(queries, Queries):
        raise BadInputError(
            f"queries is {queries!r}; a workload is needed, such as random_conjunctions(domain, m, "
            "k) makes one, since no table says which columns there are"
        )
    configured = configure(mechanism, options or {})
    wanted = BudgetRequest(
        epsilon=epsilon, delta=delta, accountant=accountant, neighbours=neighbours
    )
    bought = 0.0 if wanted.relation.rows_public else COUNT_SHARE * epsilon
    budget, _ = wanted.resolve(configured, RowCount(n, wanted.relation, bought))
    task = Task(queries, n)
    return configured.expected_error(task, configured.plan(task, budget))
