"""How a release is made: plan on public facts, price the plan, run it on the private room."""

from __future__ import annotations

import datetime
import hashlib
import secrets
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.events import Event, events_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.statement import PrivacyStatement
from dualquery.queries.family import Statistic
from dualquery.releases.agreeing import agreeing_records
from dualquery.releases.folder import Release
from dualquery.releases.means import MeansPlan, with_means, without_means
from dualquery.releases.needs import bytes_on_disk, memory_needed
from dualquery.releases.payment import NO_PAYMENT, Payment
from dualquery.releases.polish import check_polish, polished
from dualquery.releases.pricing import declarations, price, statement
from dualquery.releases.proof import Price, proof_record
from dualquery.releases.ruled import legal_records, with_forced_answers
from dualquery.releases.sampling import finished_records
from dualquery.releases.unasked import unasked_note
from dualquery.room.curator import Curator
from dualquery.room.declared import Declaration
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.private_errors import SEEN
from dualquery.room.randomness import randomness
from dualquery.room.row_count import RowCount
from dualquery.runtime.progress import NO_PROGRESS, Progress
from dualquery.runtime.versions import versions

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.queries.family import Queries
    from dualquery.rows.dataset import Dataset
    from dualquery.rows.protocol import Rows

_LOST = (
    "{} private draws were begun and lost when the run was interrupted: they are charged, and the "
    "rest of the schedule went on without them."
)

FOUND = (
    "the queries are about items that noisy shares showed to be frequent: which items these are is "
    "part of what was released, within the same guarantee"
)


@dataclass(frozen=True)
class Terms:
    """What a release is made under.

    Parameters
    ----------
    budget
        What the mechanism may spend.
    count
        The public number of rows, and what it cost.
    statistics
        What the mechanism asks the room to hold: asked once, tried and held.
    declarations
        What families of queries declare that the room has not proven (see `declarations`).
    asked_epsilon
        The user's epsilon: the budget's, and what the number of rows cost.
    stated_rows
        The number of rows that the user stated, if any.
    seed
        Of an experiment that is not private; None for a release.
    records
        Number of synthetic records that the user asked for; None for the mechanism's.
    polish
        Seconds for which records are improved (`dualquery.releases.polish`); None for not at all.
    csv
        How the user said that the table is written, for who reads it again.
    show_private_errors
        The operator's explicit word to log true errors (`dualquery.room.private_errors`).
    payment
        What the release pays with, before it draws.
    journal
        Keeps what is drawn, so that an interrupted run can go on.
    """

    budget: Budget
    count: RowCount
    statistics: Statistic
    declarations: tuple[Declaration, ...]
    asked_epsilon: float
    stated_rows: int | None = None
    seed: int | None = None
    records: int | None = None
    polish: float | None = None
    csv: str | None = None
    show_private_errors: bool = False
    payment: Payment = NO_PAYMENT
    journal: Journal = NO_JOURNAL


@dataclass(frozen=True)
class Prepared:
    """All that is decided before anything private is looked at.

    Parameters
    ----------
    plan
        The mechanism's, and before it the means'.
    means
        How means are bought; None if they are not.
    priced
        What the schedule costs.
    privacy
        The guarantee.
    """

    plan: Plan[Any]
    means: MeansPlan | None
    priced: Price
    privacy: PrivacyStatement


def make_release(
    data: Dataset[Rows],
    task: Task,
    mechanism: Mechanism[Any],
    terms: Terms,
    notes: tuple[str, ...],
    threads: int,
    progress: Progress,
    created: datetime.datetime,
) -> Release:
    """Plan on public facts, pay, run on the curator, and put the result together."""
    prepared = _prepare(data, task, mechanism, terms, progress)
    _pay(prepared, task, terms)
    outcome = run(
        data,
        task,
        mechanism,
        prepared.plan,
        terms.seed,
        threads,
        progress,
        terms.budget.neighbours,
        terms.statistics,
        terms.journal,
        means=prepared.means,
        show_private_errors=terms.show_private_errors,
    )
    terms.journal.finish()
    terms.payment.finish()
    if outcome.workload is not None:
        task, notes = replace(task, queries=outcome.workload), (*notes, FOUND)
    outcome, forced = with_forced_answers(
        _with_intervals(outcome, data, task, terms), task.queries, task.rules
    )
    records, drawn = _records(outcome, task, terms, progress)
    release = Release(
        mechanism=mechanism.name,
        parameters=prepared.plan.parameters,
        options={
            "epsilon": terms.asked_epsilon,
            "delta": terms.budget.delta,
            "accountant": terms.budget.accountant,
            **terms.budget.neighbours.described(),
            "rows": terms.stated_rows,
            "seed": terms.seed,
            "records": terms.records,
            "polish": terms.polish,
            "csv": terms.csv,
            "budget_file": terms.payment.record(),
            "mechanism": asdict(mechanism),  # type: ignore[call-overload]  # a frozen dataclass
        },
        privacy=prepared.privacy,
        schema=data.schema,
        n=terms.count.n,
        workload=task.queries,
        answers=outcome.answers,
        records=records,
        trace=outcome.trace,
        solver=outcome.solver,
        intervals=outcome.intervals,
        measurements=outcome.measurements,
        model=outcome.model,
        means=outcome.means,
        notes=(*data.notes, *notes, *_remarks(terms), *outcome.remarks, *drawn, *forced),
        versions=versions(),
        created=created.isoformat(timespec="seconds"),
        written_as=data.written_as,
        proof=proof_record(
            prepared.plan.schedule,
            outcome.grounds,
            prepared.priced,
            terms.count,
            data.schema,
            prepared.privacy,
        ),
    )
    if note := unasked_note(release):
        release = replace(release, notes=(*release.notes, note))
    generator = np.random.default_rng(terms.seed)
    return replace(release, records=agreeing_records(release, generator))


def _prepare(
    data: Dataset[Rows],
    task: Task,
    mechanism: Mechanism[Any],
    terms: Terms,
    progress: Progress,
) -> Prepared:
    """Plan, price the plan, and state the guarantee; tell what errors to expect."""
    budget, grids = terms.budget, data.schema.grids
    progress.phase(
        f"planning {mechanism.name}: how {len(task.queries):,} queries are best asked at epsilon "
        f"{budget.epsilon:g}, delta {budget.delta:.3g}"
    )
    with terms.count.cost_told():
        own = mechanism.plan(task, without_means(budget, grids))
        plan, means = with_means(own, grids, task.queries, budget)
    priced = price(plan, budget)
    privacy = statement(plan, budget, priced, data, terms.count, terms.seed, terms.declarations)
    if privacy.private:
        privacy = replace(privacy, together=terms.payment.together())
    if plan.remark:
        progress.note(plan.remark)
    expected = mechanism.expected_error(task, own)
    if expected is not None:
        progress.note(expected.text())
    progress.note(memory_needed(task, mechanism, own).text())
    return Prepared(plan, means, priced, privacy)


def rehearse(
    schema: Schema, queries: Queries, mechanism: Mechanism[Any], budget: Budget, n: int
) -> None:
    """Plan for a made-up number of rows, so that what public facts refuse is refused unpaid.

    Parameters
    ----------
    schema, queries, mechanism, budget
        Those of the release, or a few of its queries.
    n
        A number of rows.

    Raises
    ------
    BadInputError
        If the release cannot be planned.
    """
    declarations(queries, mechanism.statistics(queries))
    task = Task(queries, n, budget.neighbours.copies)
    own = mechanism.plan(task, without_means(budget, schema.grids))
    price(with_means(own, schema.grids, queries, budget)[0], budget)


def _pay(prepared: Prepared, task: Task, terms: Terms) -> None:
    """Charge what the plan costs; a run that goes on has to have the same plan."""
    events = events_of(prepared.plan.schedule)
    terms.journal.same("plan", {"n": terms.count.n, "schedule": _digest(events)})
    with terms.count.cost_told():
        terms.journal.make_room(bytes_on_disk(task))
        terms.payment.pay((*terms.count.events, *events), prepared.privacy)


def _with_intervals(outcome: Outcome, data: Dataset[Rows], task: Task, terms: Terms) -> Outcome:
    """Return an outcome whose intervals are of the true answers, whatever rows were left out."""
    if outcome.intervals is None:
        return outcome
    intervals = outcome.intervals.for_rows(terms.count, task.queries.low, task.queries.high)
    intervals = intervals.for_cut(data.schema.max_ones_per_row, terms.budget.neighbours.unit)
    return replace(outcome, intervals=intervals)


def _records(
    outcome: Outcome, task: Task, terms: Terms, progress: Progress
) -> tuple[NDArray[np.uint8] | None, tuple[str, ...]]:
    """Return the records, legal and polished as asked, and remarks on how they were drawn."""
    records, remarks = finished_records(outcome, terms.records, task.rows, terms.seed)
    if records is None:
        return None, remarks
    generator = np.random.default_rng(terms.seed)
    records = legal_records(records, task.rules, generator)
    if terms.polish is not None:
        progress.phase("polishing the records")
        workload = check_polish(task.queries, terms.polish)
        records = polished(
            records, workload, outcome.answers, terms.polish, generator, progress.step
        )
        records = legal_records(records, task.rules, generator)
    return records, remarks


def _remarks(terms: Terms) -> tuple[str, ...]:
    """Return what the release says of the terms, once the run is over."""
    remarks = [each.remark for each in terms.declarations]
    if terms.show_private_errors:
        remarks.append(SEEN)
    if terms.journal.lost:
        remarks.append(_LOST.format(terms.journal.lost))
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
    means: MeansPlan | None = None,
    show_private_errors: bool = False,
) -> Outcome:
    """Let the private room read the rows, and the mechanism run on it.

    The room holds ``statistics``; None for what the mechanism asks for. ``journal`` keeps what is
    drawn. ``means`` are bought first, as the schedule has them. The operator's log shows true
    errors on ``show_private_errors`` only.
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
    bought = () if means is None else means.buy(curator, task.n)
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
    return replace(outcome, grounds=curator.grounds(), means=bought)


def _public_seed(seed: int | None, journal: Journal) -> int:
    """Return the seed of public choices: a run that goes on makes the same ones."""

    def fresh() -> dict[str, int]:
        return {"seed": secrets.randbits(128) if seed is None else seed}

    return int(journal.recall("public seed", fresh, fresh)["seed"])


def _digest(events: tuple[Event, ...]) -> str:
    """Return the SHA-256 of a schedule's events."""
    return hashlib.sha256(repr(events).encode()).hexdigest()
