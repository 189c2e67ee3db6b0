"""How a release is made: plan on public facts, price the plan, run it on the private room."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import secrets
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.data.readers.source import rows_at_once
from dualquery.estimates.intervals import Total, of_cut
from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.composition import Cost
from dualquery.privacy.events import Event, events_of, pure_epsilon
from dualquery.privacy.guarantee import weak_epsilon
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.answer.ruled import with_forced_answers
from dualquery.releases.answer.sampling import finished_records, unasked_bits, unasked_note
from dualquery.releases.keep.folder import Release
from dualquery.releases.make import proof
from dualquery.releases.make.beside import Beside, with_beside, without_beside
from dualquery.releases.make.payment import Payment, keep_questions, keep_request
from dualquery.releases.make.schema_learning import GIVEN, STAND_IN, LearnedSchema, learned_for
from dualquery.room.curator import Curator
from dualquery.room.declared import Declaration
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.private_errors import SEEN
from dualquery.room.randomness import randomness
from dualquery.room.row_count import COUNT_SHARE, RowCount
from dualquery.rows.row_sums import BLOCK_ROWS
from dualquery.rules.reading import rules_of, without_absent
from dualquery.rules.repair import repaired
from dualquery.runtime.errors import LackOfMemoryError, privacy_log
from dualquery.runtime.escaping import some
from dualquery.runtime.progress import NO_PROGRESS, Progress, listener
from dualquery.runtime.resources import check_memory, mebibytes, thread_count, versions

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.estimates.expected import ExpectedError
    from dualquery.privacy.guarantee import PrivacyStatement
    from dualquery.queries.family import Queries, Statistic
    from dualquery.requests import ReleaseSpec
    from dualquery.rows.engines import Dataset
    from dualquery.rows.row_sums import Rows
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

_LIBRARIES = 480 << 20  # bytes that a release loads
_BYTES_PER_QUERY, _BYTES_READ = 300, 16  # with answer and text; of a cell being read, 3 to 18
_BYTES_PER_CELL, _BYTES_PER_BINARY = 6, 2  # of records in the user's columns: 1 to 17, 1 to 2
_BYTES_PER_ONE, _BYTES_PER_LIST = 2, 6  # of a listed row's bit, and of a bit of a block

_USUAL_ONES = 128  # of a row with thousands of binary columns, about: few baskets have more

_START, _PER_CELL, _PER_BIT, _PER_QUERY = 2.0, 1.5e-7, 1.5e-8, 1e-4
"""Seconds to load the libraries, to read a cell of a table, to draw and write a bit of a record,
and to plan, measure and fit a query: on two cores of a common server of 2023, with CSV files."""
_FITTED = 250_000  # records that take as long as a fit does of the same values of columns

_STORED_BYTES_PER_QUERY = 128
_MOST_RECORD_BYTES = 1 << 28  # more than that is not held beforehand for records


@dataclass(frozen=True, eq=False)
class Planned:
    """All that is decided before anything private is looked at."""

    spec: ReleaseSpec
    schema: Schema  # without rules about absent columns
    queries: Queries  # as they are answered
    count: RowCount  # the public number of rows
    budget: Budget  # of the mechanism and of what is measured beside it, together
    task: Task
    statistics: Statistic  # what the mechanism asks the room to hold
    declarations: tuple[Declaration, ...]  # what queries declare and the room has not proven
    own: Plan[Any]  # the mechanism's
    plan: Plan[Any]  # the same after what is measured beside the workload
    beside: Beside | None  # None if nothing is
    priced: proof.Price  # of the schedule
    warnings: tuple[str, ...]  # of a budget that protects little
    notes: tuple[str, ...]  # these, and further remarks for readers
    learned: LearnedSchema = GIVEN

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
    schema: Schema,
    count: RowCount,
    progress: Progress = NO_PROGRESS,
    learned: LearnedSchema = GIVEN,
) -> Planned:
    """Make the workload, plan the mechanism and price the plan, from public facts only.

    Whatever is known before the first draw is decided here, for releases and dry runs alike.
    ``schema`` carries the numbers whose means are bought; ``learned`` says what it cost.
    `BadInputError` if the release cannot be.
    """
    mechanism = spec.configured
    rules: Forbidden | None = None
    remarks: tuple[str, ...] = ()
    if getattr(schema, "rules", ()) or getattr(schema, "left_out", ()):
        schema, remarks = without_absent(schema)
        rules = rules_of(schema)
    budget, warnings = spec.budget.resolve(mechanism, count)
    progress.phase("making the workload")
    if (frequent := spec.workload.frequent(schema, mechanism)) is None:
        queries = spec.workload.over(schema, max(1, count.n // budget.neighbours.copies))
        remarks = (*remarks, *spec.workload.remarks(schema))
    else:
        queries = frequent.stand_in
    _check_records(spec, schema)
    asked = Task.without_implied(queries, rules if mechanism.shortens else None)
    statistics = mechanism.statistics(asked)
    declared = proof.declarations(asked, statistics)
    task = Task(asked, count.n, budget.neighbours.copies, rules, frequent, schema.scores)
    progress.phase(
        f"planning {mechanism.name}: how {len(queries):,} queries are best asked at epsilon "
        f"{budget.epsilon:g}, delta {budget.delta:.3g}"
    )

    alone, paid = mechanism.name in proof.NOISE_ALONE, learned.price
    rest = budget if paid is None else paid.rest(budget, noise_alone=alone)
    beside = None
    if schema.grids or count.is_stated:
        own = mechanism.plan(task, without_beside(rest, schema.grids, count))
        plan, beside = with_beside(own, schema.grids, count, queries, rest)
        count = replace(count, measured=beside.count_scale is not None)
    else:
        own = plan = mechanism.plan(task, rest)
    return Planned(
        spec, schema, queries, count, budget, task,
        statistics, declared, own, plan, beside,
        proof.price(plan, budget, learned.events, noise_alone=alone),
        warnings, (*warnings, *remarks, *learned.notes), learned,
    )  # fmt: skip


def require_possible(
    spec: ReleaseSpec, schema: Schema, units: int | None, learned: LearnedSchema
) -> tuple[Event, ...]:
    """Refuse what no number of rows allows before one is bought; return a trial plan's events."""
    if not spec.budget.buys_rows:
        return ()
    _check_records(spec, schema)
    count = RowCount(STAND_IN, spec.budget.relation, COUNT_SHARE * spec.budget.epsilon, units)
    # How much memory is needed depends on the number of rows.
    with contextlib.suppress(LackOfMemoryError):
        return events_of(plan_release(spec, schema, count, learned=learned).plan.schedule)
    return ()


def _check_records(spec: ReleaseSpec, schema: Schema) -> None:
    """Refuse more records than the memory holds."""
    if number := spec.records.number or getattr(spec.configured, "records", None):
        check_memory(
            2 * number * schema.domain.bits,
            f"{number:,} records of {schema.domain.bits:,} bits",
            "release fewer; dualquery sample draws any number from the release afterwards",
        )


def release_of(spec: ReleaseSpec) -> Release:
    """Make the release that is asked for; raises as `dualquery.release`."""
    configured, budget = spec.configured, spec.budget
    source, engine = spec.table.source, spec.run.reading
    draws = configured.name == "randomized-response"
    engine.check_source(source, budget.unit, budget.weight, draws=draws)
    weak = weak_epsilon(budget.epsilon)
    for warning in weak:
        privacy_log.warning(warning)
    progress = listener(spec.run.progress)
    if spec.mechanism.name is None and configured.name != "auto":
        progress.note(f"mechanism {configured.name}, because it has the options that were given")
    # The clock is read before the table is: how long a pass over private rows took stays unsaid.
    created = datetime.datetime.now(datetime.UTC)
    journal: Journal = spec.checkpoint or NO_JOURNAL
    if spec.checkpoint is not None:
        spec.checkpoint.start()
        keep_request(spec, spec.checkpoint)
    payment = Payment.begin(
        spec.budget_file, source, budget.relation, configured.name, spec.seed, spec.checkpoint
    )
    progress.phase("reading the table")
    learned = learned_for(spec, payment, journal)
    schema, columns = spec.schema, spec.table.columns
    if learned.schema is not None:
        schema, columns = learned.schema, None
        spec = replace(spec, workload=learned.asked or spec.workload)
    read = (schema, columns, spec.table.max_ones_per_row, budget.unit, budget.weight)
    with engine.open(source, *read, sums=spec.workload.means) as data:
        if data.left_out:
            progress.note(f"left out, not chosen or not described: {some(data.left_out)}")
        payment.require_declared(data.schema.declared)

        def pay_first(event: Event) -> None:
            in_all = budget.delta_of(configured, data.units or 0)  # which is public, if it is used
            events, own = (*learned.events, event), (bought := pure_epsilon(event), 0.0)
            if learned.events:  # its price is one with that of what follows
                own = (bought + RowCount(2, epsilon=bought).rest(budget.epsilon), in_all)
            payment.pay_first(events, own, Cost.of((*events, *rest), budget.epsilon, in_all))

        units = data.units if budget.relation.replaces else None  # where it is public
        with RowCount(STAND_IN).cost_told(learned=bool(learned.events)):
            rest = require_possible(spec, data.schema, units, learned)
            count = budget.count_rows(data.records, spec.seed, pay_first, journal, data.units)
        with count.cost_told(learned=bool(learned.events)):
            planned = plan_release(spec, data.schema, count, progress, learned)
        for warning in (each for each in planned.warnings if each not in weak):
            privacy_log.warning(warning)
        keep_questions(journal, planned.schema, planned.queries)
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
    spec, task, mechanism, plan = planned.spec, planned.task, planned.mechanism, planned.plan
    budget, threads = planned.budget, thread_count(spec.run.threads)
    journal: Journal = spec.checkpoint or NO_JOURNAL
    privacy = proof.statement(
        plan, budget, planned.priced, data, planned.count, spec.seed, planned.declarations,
        planned.learned.events,
    )  # fmt: skip
    if privacy.private:
        privacy = replace(privacy, together=payment.together())
    expected = "" if planned.expected is None else planned.expected.text()
    for remark in filter(None, (plan.remark, expected, planned.memory.text())):
        progress.note(remark)
    _pay(planned, privacy, payment, journal)
    room = _room(
        data, planned.statistics, plan, spec.seed, threads=threads, neighbours=budget.neighbours,
        public_rows=task.n, journal=journal, show_private_errors=spec.run.show_private_errors,
    )  # fmt: skip
    base, means = (
        planned.beside.buy(room, planned.count) if planned.beside else (Total.of(planned.count), ())
    )
    count, task = replace(planned.count, n=base.copies), replace(task, n=base.copies)
    session = Session(threads, progress=progress.step, journal=journal)
    outcome, seed = _outcome(room, task, mechanism, plan, spec.seed, session, progress)
    journal.finish()
    payment.finish()
    notes, queries, intervals = planned.notes, planned.queries, outcome.intervals
    if outcome.workload is not None:
        notes, queries = (*notes, FOUND), outcome.workload
    cut = of_cut(data.schema.max_ones_per_row, budget.neighbours)
    if intervals is not None:
        intervals = intervals.for_total(base, queries.low, queries.high)
        intervals = replace(intervals, basis=intervals.basis + cut)
    if (kept := outcome.measurements) is not None:
        kept = replace(kept, note=(kept.note + cut).removeprefix("; "))
    outcome = replace(outcome, intervals=intervals, means=means, measurements=kept)
    remarks = [*_remarks(planned, journal), *outcome.remarks]
    records, drawn = finished_records(outcome, spec.records.number, task.rows, seed)
    remarks += drawn
    if task.rules is not None and task.rules.boxes:
        outcome, forced = with_forced_answers(outcome, queries, task.rules)
        remarks += forced
        if records is not None:
            free = unasked_bits(queries, outcome)
            records = repaired(records, task.rules, np.random.default_rng(seed), free)
    room.log_errors(outcome.answers, "the released answers", queries)
    before = (planned.learned.events, planned.learned.grounds)
    return Release(
        mechanism=mechanism.name,
        parameters=plan.parameters,
        options={
            "epsilon": spec.budget.epsilon,
            "delta": budget.delta,
            "accountant": budget.accountant,
            **budget.neighbours.described(),
            "rows": spec.budget.rows,
            "seed": spec.seed,
            "records": spec.records.number,
            "csv": spec.table.csv,
            "budget_file": payment.record(),
            "mechanism": asdict(mechanism),  # type: ignore[call-overload]  # a frozen dataclass
        },
        privacy=privacy,
        schema=replace(data.schema, **planned.learned.said or {}),
        base=base,
        workload=queries,
        answers=outcome.answers,
        records=records,
        trace=outcome.trace,
        solver=outcome.solver,
        intervals=outcome.intervals,
        measurements=outcome.measurements,
        model=outcome.model,
        means=means,
        notes=(*data.notes, *notes, *remarks, *unasked_note(data.schema, queries, outcome)),
        versions=versions(),
        created=created.isoformat(timespec="seconds"),
        proof=proof.proof_record(
            plan.schedule, room.grounds(), planned.priced, count, data.schema, privacy, before
        ),
    )


def _pay(planned: Planned, privacy: PrivacyStatement, payment: Payment, journal: Journal) -> None:
    """Charge what the plan costs; a run that goes on has to have the same plan."""
    events, count = events_of(planned.plan.schedule), planned.count
    digest = hashlib.sha256(repr(events).encode()).hexdigest()
    journal.same("plan", {"n": count.n, "schedule": digest})
    with count.cost_told(learned=bool(planned.learned.events)):
        journal.make_room(bytes_on_disk(planned.task, planned.own))
        payment.pay((*planned.learned.events, *count.events, *events), privacy)


def _remarks(planned: Planned, journal: Journal) -> list[str]:
    """Return what the release says of its terms, once the run is over."""
    remarks = [each.remark for each in planned.declarations]
    if planned.budget.neighbours.weight is not None and planned.spec.records.number is None:
        remarks.append(_BY_WEIGHT)
    if planned.spec.run.show_private_errors:
        remarks.append(SEEN)
    if journal.lost:
        remarks.append(_LOST.format(journal.lost))
    return remarks


def run(
    data: Dataset[Rows],
    task: Task,
    mechanism: Mechanism[Any],
    plan: Plan[Any],
    seed: int | None,
    threads: int,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> Outcome:
    """Run a mechanism as a release does, for baselines and studies: nothing keeps its draws."""
    how = {"threads": threads, "neighbours": neighbours, "public_rows": task.n}
    room = _room(data, mechanism.statistics(task.queries), plan, seed, **how)
    return _outcome(room, task, mechanism, plan, seed, Session(threads))[0]


def _room(
    data: Dataset[Rows], held: Statistic, plan: Plan[Any], seed: int | None, **how: Any
) -> Curator:
    """Return the private room of a run; ``how`` are further arguments of a `Curator`."""
    # Sensitivities depend on which records are legal, so on the schema's own columns.
    if not held.domain.covers(data.schema.domain):
        raise RuntimeError("the mechanism asks about columns that are not the schema's")
    grids = data.schema.grids
    return Curator(data.records, held, plan.schedule, randomness(seed), grids=grids, **how)


def _outcome(
    room: Curator,
    task: Task,
    mechanism: Mechanism[Any],
    plan: Plan[Any],
    seed: int | None,
    session: Session,
    progress: Progress = NO_PROGRESS,
) -> tuple[Outcome, int]:
    """Let the private room read the rows, and the mechanism run; return its public seed too."""
    if plan.needs_answers:
        progress.phase("evaluating the queries")
        room.evaluate()
    progress.phase(f"running {plan.mechanism or mechanism.name}")

    def fresh() -> dict[str, int]:
        return {"seed": secrets.randbits(128) if seed is None else seed}

    # A run that goes on makes the same public choices.
    kept = session.journal.recall("public seed", fresh, fresh)
    session = replace(session, public_seed=int(kept["seed"]))
    outcome = mechanism.run(task, plan, room, session)
    answered = task.queries if outcome.workload is None else outcome.workload
    found = np.asarray(outcome.answers)
    if found.dtype != np.float64 or found.shape != (len(answered),) or not np.isfinite(found).all():
        raise ValueError(f"{mechanism.name} must answer {len(answered)} queries, in finite float64")
    return outcome, int(kept["seed"])


@dataclass(frozen=True)
class Memory:
    """How many bytes of memory a release takes with all rows held, about."""

    usual: int  # where rows of thousands of binary columns have a few 1s
    most: int  # where they may be full

    def text(self) -> str:
        """Return both as a line for people."""
        varies = self.most > 1.1 * self.usual
        more = f", up to {mebibytes(self.most)} if rows have many 1s" if varies else ""
        return f"memory: about {mebibytes(self.usual)} with all rows in it{more}"


def memory_needed(task: Task, mechanism: Mechanism[Any], plan: Plan[Any]) -> Memory:
    """Return about how much memory a release takes; how many 1s rows have is private."""
    domain = task.queries.domain
    binary = int((domain.sizes == 1).sum())
    others = domain.columns - binary
    ones = binary if domain.max_ones is None else min(binary, domain.max_ones)
    rest = _LIBRARIES + mechanism.bytes_needed(task, plan) + _BYTES_PER_QUERY * len(task.queries)
    rest += _records(plan) * (domain.bits + _BYTES_PER_BINARY * binary + _BYTES_PER_CELL * others)
    rest += _BYTES_READ * domain.columns * min(task.rows, rows_at_once(domain.columns))
    return Memory(
        rest + _bytes_of_rows(task.rows, domain.bits, others + min(ones, _USUAL_ONES)),
        rest + _bytes_of_rows(task.rows, domain.bits, others + ones),
    )


def _bytes_of_rows(rows: int, bits: int, ones: int) -> int:
    """Return the bytes of rows with ``ones`` 1s each: packed, or listed if that is smaller."""
    return round(rows * min(bits / 8, _BYTES_PER_ONE * ones + _BYTES_PER_LIST * bits / BLOCK_ROWS))


def bytes_on_disk(task: Task, plan: Plan[Any]) -> int:
    """Return about how many bytes a release writes: to find a full disk early."""
    cells = _records(plan) * task.queries.domain.columns
    return _STORED_BYTES_PER_QUERY * len(task.queries) + min(2 * cells, _MOST_RECORD_BYTES)


def seconds_needed(task: Task, plan: Plan[Any]) -> float:
    """Return about how many seconds a release takes; mechanisms differ by a factor of three."""
    domain = task.queries.domain
    binary = int((domain.sizes == 1).sum())
    cells = task.rows * (domain.columns - binary + min(binary, _USUAL_ONES))
    fitted = _FITTED * (domain.bits - binary) if plan.parameters.get("components") else 0
    bits = _records(plan) * domain.bits + fitted
    return _START + _PER_CELL * cells + _PER_BIT * bits + _PER_QUERY * len(task.queries)


def _records(plan: Plan[Any]) -> int:
    return int(plan.parameters.get("records") or 0)  # as plans say: games' are few
