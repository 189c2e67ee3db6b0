"""How a release is made: plan on public facts, price the plan, run it on the private room."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.estimates.means import BoughtMean
from dualquery.estimates.total import Total
from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.budget import weak_epsilon
from dualquery.privacy.events import Event, events_of, pure_epsilon
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.statement import PrivacyStatement
from dualquery.queries.family import Statistic
from dualquery.releases.answer.ruled import with_forced_answers
from dualquery.releases.answer.sampling import finished_records, unasked_note
from dualquery.releases.keep.folder import Release
from dualquery.releases.make.beside import Beside, with_beside, without_beside
from dualquery.releases.make.learning import learned_for
from dualquery.releases.make.needs import Memory, bytes_on_disk, memory_needed
from dualquery.releases.make.payment import Payment, mark_of
from dualquery.releases.make.proof import (
    NOISE_ALONE,
    Price,
    declarations,
    price,
    proof_record,
    statement,
)
from dualquery.room.curator import Curator
from dualquery.room.declared import Declaration
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.private_errors import SEEN
from dualquery.room.randomness import randomness
from dualquery.room.row_count import COUNT_SHARE, RowCount
from dualquery.rules.reading import rules_of, without_absent
from dualquery.rules.repair import repaired
from dualquery.runtime.errors import BadInputError, LackOfMemoryError, privacy_log
from dualquery.runtime.escaping import some
from dualquery.runtime.progress import NO_PROGRESS, Progress, listener
from dualquery.runtime.resources import check_memory, thread_count
from dualquery.runtime.versions import versions

if TYPE_CHECKING:
    from dualquery.data.schema.items import ItemSchema
    from dualquery.data.schema.protocol import Schema
    from dualquery.data.schema.table import TableSchema
    from dualquery.estimates.expected import ExpectedError
    from dualquery.queries.family import Queries
    from dualquery.releases.make.learning import LearnedSchema
    from dualquery.requests import ReleaseSpec
    from dualquery.rows.dataset import Dataset
    from dualquery.rows.protocol import Rows
    from dualquery.rules.forbidden import Forbidden

_LOST = (
    "{} private draws were begun and lost when the run was interrupted: they are charged, and the "
    "rest of the schedule went on without them."
)

FOUND = (
    "the queries are about items that noisy shares showed to be frequent: which items these are is "
    "part of what was released, within the same guarantee"
)

_BY_WEIGHT = (
    "records are as many as rows of the largest weight would make up the total weight, each of "
    "that weight; --records says another number"
)

_STAND_IN = 1_000_000
"""Rows to plan for before their number is bought: what fails for so many fails for fewer."""


@dataclass(frozen=True, eq=False)
class Planned:
    """All that is decided before anything private is looked at.

    Parameters
    ----------
    spec
        What was asked for.
    schema
        The columns, without rules about absent ones.
    count
        The public number of rows, and what it cost.
    budget
        What the mechanism and the means may spend together.
    task
        The public facts for the mechanism.
    statistics
        What the mechanism asks the room to hold: asked once, tried and held.
    declarations
        What families of queries declare that the room has not proven.
    own, plan
        The mechanism's plan, and the same after what is measured beside the workload.
    beside
        What that is; None for nothing.
    priced
        What the schedule costs.
    warnings, notes
        Of a budget that protects little; these and further remarks for readers.
    learned
        What the schema cost, if it was learned.
    """

    spec: ReleaseSpec
    schema: TableSchema | ItemSchema
    count: RowCount
    budget: Budget
    task: Task
    statistics: Statistic
    declarations: tuple[Declaration, ...]
    own: Plan[Any]
    plan: Plan[Any]
    beside: Beside | None
    priced: Price
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    learned: LearnedSchema | None = None

    @property
    def mechanism(self) -> Mechanism[Any]:
        """The mechanism that was asked for, with its options."""
        return self.spec.configured

    @property
    def expected(self) -> ExpectedError | None:
        """The errors to expect; None of a mechanism without a model of them."""
        return self.mechanism.expected_error(self.task, self.own)

    @property
    def memory(self) -> Memory:
        """About how many bytes of memory the release takes."""
        return memory_needed(self.task, self.mechanism, self.own)


def plan_release(
    spec: ReleaseSpec,
    schema: TableSchema | ItemSchema,
    count: RowCount,
    progress: Progress = NO_PROGRESS,
    learned: LearnedSchema | None = None,
) -> Planned:
    """Make the workload, plan the mechanism and price the plan, from public facts only.

    Whatever is known before the first draw is decided here, for releases and dry runs alike.

    Parameters
    ----------
    spec
        What is asked for.
    schema
        The columns; it carries the numbers whose means are bought.
    count
        The number of rows to go by.
    progress
        Told about the phases.
    learned
        What the schema cost, if it was learned.

    Raises
    ------
    BadInputError
        If the release cannot be.
    """
    mechanism = spec.configured
    rules: Forbidden | None = None
    remarks: tuple[str, ...] = ()
    if getattr(schema, "rules", ()) or getattr(schema, "left_out", ()):
        schema, remarks = without_absent(schema)
        rules = rules_of(schema)
    budget, warnings = spec.budget.resolve(mechanism, count)
    progress.phase("making the workload")
    frequent = spec.workload.frequent(schema, mechanism)
    if frequent is None:
        queries = spec.workload.over(schema, max(1, count.n // budget.neighbours.copies))
        remarks = (*remarks, *spec.workload.remarks(schema))
    else:
        queries = frequent.stand_in
    _check_records(spec, schema)
    statistics = mechanism.statistics(queries)
    declared = declarations(queries, statistics)
    task = Task(queries, count.n, budget.neighbours.copies, rules, frequent)
    progress.phase(
        f"planning {mechanism.name}: how {len(queries):,} queries are best asked at epsilon "
        f"{budget.epsilon:g}, delta {budget.delta:.3g}"
    )

    def planned(within: Budget) -> tuple[Plan[Any], Plan[Any], Beside | None]:
        if not schema.grids and not count.is_stated:
            own = mechanism.plan(task, within)
            return own, own, None
        own = mechanism.plan(task, without_beside(within, schema.grids, count))
        return own, *with_beside(own, schema.grids, count, queries, within)

    alone = mechanism.name in NOISE_ALONE
    rest, first = budget, () if learned is None else learned.events
    if learned is not None and learned.price is not None:
        remarks = (*remarks, *learned.notes)
        rest = learned.price.rest(budget, noise_alone=alone)
    own, plan, beside = planned(rest)
    count = replace(count, measured=beside is not None and beside.count_scale is not None)
    return Planned(
        spec, schema, count, budget, task, statistics, declared, own, plan, beside,
        price(plan, budget, first, noise_alone=alone), warnings, (*warnings, *remarks), learned,
    )  # fmt: skip


def require_possible(
    spec: ReleaseSpec, schema: TableSchema | ItemSchema, units: int | None
) -> None:
    """Refuse what no number of rows allows before one is bought: that must cost nothing.

    ``units`` is the number of units, where it is public.

    Raises
    ------
    BadInputError
        As `plan_release`, for very many rows.
    """
    if not spec.budget.buys_rows:
        return
    _check_records(spec, schema)
    count = RowCount(_STAND_IN, spec.budget.relation, COUNT_SHARE * spec.budget.epsilon, units)
    # How much memory is needed depends on the number of rows.
    with contextlib.suppress(LackOfMemoryError):
        plan_release(spec, schema, count)


def _check_records(spec: ReleaseSpec, schema: TableSchema | ItemSchema) -> None:
    """Refuse more records than the memory holds."""
    if spec.records.number is not None:
        check_memory(
            2 * spec.records.number * schema.domain.bits,
            f"{spec.records.number:,} records of {schema.domain.bits:,} bits",
            "release fewer; dualquery sample draws any number from the release afterwards",
        )


def keep_request(spec: ReleaseSpec, journal: Journal) -> None:
    """Keep versions, options and which table it is: a run that goes on must share them.

    A table in memory is known by its schema and its number of rows only.
    """
    mechanism, workload = spec.configured, spec.workload.described
    options: dict[str, Any] = asdict(mechanism)  # type: ignore[call-overload]  # a dataclass
    journal.same("program", versions())
    journal.same("mechanism", {"name": mechanism.name, **options})
    journal.same("budget request", asdict(spec.budget))
    journal.same("workload request", asdict(workload))
    others = {
        "records": spec.records.number,
        "show_private_errors": spec.run.show_private_errors,
    }
    journal.same("request", others)
    try:
        mark = mark_of(spec.table.source)
    except BadInputError:  # there is no folder to keep a key in
        mark = ""
    journal.same("table", {"keyed hash": mark})


def keep_questions(journal: Journal, schema: Schema, queries: Queries) -> None:
    """Keep the schema and the queries, by their digests."""
    import polars as pl

    described = json.dumps(schema.to_dict(), sort_keys=True).encode()
    journal.same("schema", {"sha256": hashlib.sha256(described).hexdigest()})
    digest = hashlib.sha256()
    columns = queries.to_columns()
    if columns:  # a family of the user's own may have none
        # The same from run to run of one version of Polars, and versions are compared.
        digest.update(pl.DataFrame(columns).hash_rows().to_numpy().tobytes())
    journal.same("workload", {"queries": len(queries), "sha256": digest.hexdigest()})


def release_of(spec: ReleaseSpec) -> Release:
    """Make the release that is asked for; raises as `dualquery.release`."""
    configured = spec.configured
    weak = weak_epsilon(spec.budget.epsilon)
    for warning in weak:
        privacy_log.warning(warning)
    progress = listener(spec.run.progress)
    if spec.mechanism.name is None and configured.name != "auto":
        progress.note(f"mechanism {configured.name}, because it has the options that were given")
    # The clock is read before the table is: how long a pass over private rows took stays unsaid.
    created = datetime.datetime.now(datetime.UTC)
    source, engine, budget = spec.table.source, spec.run.reading, spec.budget
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
            if charged is not None:
                events = (*charged.events, event)
                own = (own[0] + best(charged.events, in_all)[1], in_all)
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


def make_release(
    planned: Planned,
    data: Dataset[Rows],
    payment: Payment,
    progress: Progress,
    created: datetime.datetime,
) -> Release:
    """Pay for what is planned, run it on the curator, and put the result together."""
    spec, task, mechanism = planned.spec, planned.task, planned.mechanism
    journal: Journal = spec.checkpoint or NO_JOURNAL
    privacy = _stated(planned, data, payment, progress)
    _pay(planned, privacy, payment, journal)
    outcome = run(
        data, task, mechanism, planned.plan, spec.seed, thread_count(spec.run.threads), progress,
        planned.budget.neighbours, planned.statistics, journal, beside=planned.beside,
        count=planned.count, show_private_errors=spec.run.show_private_errors,
    )  # fmt: skip
    journal.finish()
    payment.finish()
    base = outcome.base or Total.of(planned.count)
    count, task = replace(planned.count, n=base.copies), replace(task, n=base.copies)
    notes = planned.notes
    if outcome.workload is not None:
        task, notes = replace(task, queries=outcome.workload), (*notes, FOUND)
    outcome, remarks = _with_intervals(outcome, base, data, planned), list(outcome.remarks)
    records, drawn = finished_records(outcome, spec.records.number, task.rows, spec.seed)
    remarks += drawn
    if task.rules is not None and task.rules.boxes:
        outcome, forced = with_forced_answers(outcome, task.queries, task.rules)
        remarks += forced
        if records is not None:
            records = repaired(records, task.rules, np.random.default_rng(spec.seed))
    return Release(
        mechanism=mechanism.name,
        parameters=planned.plan.parameters,
        options={
            "epsilon": spec.budget.epsilon,
            "delta": planned.budget.delta,
            "accountant": planned.budget.accountant,
            **planned.budget.neighbours.described(),
            "rows": spec.budget.rows,
            "seed": spec.seed,
            "records": spec.records.number,
            "csv": spec.table.csv,
            "budget_file": payment.record(),
            "mechanism": asdict(mechanism),  # type: ignore[call-overload]  # a frozen dataclass
        },
        privacy=privacy,
        schema=data.schema,
        base=base,
        workload=task.queries,
        answers=outcome.answers,
        records=records,
        trace=outcome.trace,
        solver=outcome.solver,
        intervals=outcome.intervals,
        measurements=outcome.measurements,
        model=outcome.model,
        means=outcome.means,
        notes=(
            *data.notes, *notes, *_remarks(planned, journal), *remarks,
            *unasked_note(data.schema, task.queries, outcome),
        ),
        versions=versions(),
        created=created.isoformat(timespec="seconds"),
        written_as=data.written_as,
        proof=proof_record(
            planned.plan.schedule, outcome.grounds, planned.priced, count, data.schema,
            privacy, *([] if (own := planned.learned) is None else [(own.events, own.grounds)]),
        ),
    )  # fmt: skip


def _stated(
    planned: Planned, data: Dataset[Rows], payment: Payment, progress: Progress
) -> PrivacyStatement:
    """Return the guarantee; tell what errors to expect."""
    privacy = statement(
        planned.plan, planned.budget, planned.priced, data, planned.count, planned.spec.seed,
        planned.declarations, () if planned.learned is None else planned.learned.events,
    )  # fmt: skip
    if privacy.private:
        privacy = replace(privacy, together=payment.together())
    if planned.plan.remark:
        progress.note(planned.plan.remark)
    if planned.expected is not None:
        progress.note(planned.expected.text())
    progress.note(planned.memory.text())
    return privacy


def _pay(planned: Planned, privacy: PrivacyStatement, payment: Payment, journal: Journal) -> None:
    """Charge what the plan costs; a run that goes on has to have the same plan."""
    events, count = events_of(planned.plan.schedule), planned.count
    first = () if planned.learned is None else planned.learned.events
    journal.same("plan", {"n": count.n, "schedule": _digest(events)})
    with count.cost_told():
        journal.make_room(bytes_on_disk(planned.task))
        payment.pay((*first, *count.events, *events), privacy)


def _with_intervals(
    outcome: Outcome, base: Total, data: Dataset[Rows], planned: Planned
) -> Outcome:
    """Return an outcome whose intervals are of the true answers, whatever rows were left out."""
    if outcome.intervals is None:
        return outcome
    queries = planned.task.queries
    intervals = outcome.intervals.for_total(base, queries.low, queries.high)
    unit = planned.budget.neighbours.unit
    return replace(outcome, intervals=intervals.for_cut(data.schema.max_ones_per_row, unit))


def _remarks(planned: Planned, journal: Journal) -> tuple[str, ...]:
    """Return what the release says of its terms, once the run is over."""
    remarks = [each.remark for each in planned.declarations]
    if planned.budget.neighbours.weight is not None and planned.spec.records.number is None:
        remarks.append(_BY_WEIGHT)
    if planned.spec.run.show_private_errors:
        remarks.append(SEEN)
    if journal.lost:
        remarks.append(_LOST.format(journal.lost))
    return tuple(remarks)


def run(
    data: Dataset[Rows],
    task: Task,
    mechanism: Mechanism[Any],
    plan: Plan[Any],
    seed: int | None,
    threads: int,
    progress: Progress = NO_PROGRESS,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
    statistics: Statistic | None = None,
    journal: Journal = NO_JOURNAL,
    *,
    beside: Beside | None = None,
    count: RowCount | None = None,
    show_private_errors: bool = False,
) -> Outcome:
    """Let the private room read the rows, and the mechanism run on it.

    The room holds ``statistics``; None for what the mechanism asks for. ``journal`` keeps what is
    drawn. What is measured ``beside`` the workload comes first, as the schedule has it; ``count``
    is the number of rows so far. The operator's log shows true errors on ``show_private_errors``.
    """
    if statistics is None:
        statistics = mechanism.statistics(task.queries)
    # Sensitivities depend on which records are legal, so on the schema's own columns.
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
        journal=journal,
        show_private_errors=show_private_errors,
        grids=data.schema.grids,
    )
    base: Total | None = None
    bought: tuple[BoughtMean, ...] = ()
    if beside is not None and count is not None:
        base, bought = beside.buy(curator, count)
        task = replace(task, n=base.copies)
    if plan.needs_answers:
        progress.phase("evaluating the queries")
        curator.evaluate()
    progress.phase(f"running {plan.mechanism or mechanism.name}")
    session = Session(
        threads=threads,
        public_seed=_public_seed(seed, journal),
        progress=progress.step,
        journal=journal,
    )
    outcome = mechanism.run(task, plan, curator, session)
    answered = task.queries if outcome.workload is None else outcome.workload
    curator.log_errors(outcome.answers, "the released answers", answered)
    return replace(outcome, grounds=curator.grounds(), means=bought, base=base)


def _public_seed(seed: int | None, journal: Journal) -> int:
    """Return the seed of public choices: a run that goes on makes the same ones."""

    def fresh() -> dict[str, int]:
        return {"seed": secrets.randbits(128) if seed is None else seed}

    return int(journal.recall("public seed", fresh, fresh)["seed"])


def _digest(events: tuple[Event, ...]) -> str:
    """Return the SHA-256 of a schedule's events."""
    return hashlib.sha256(repr(events).encode()).hexdigest()
