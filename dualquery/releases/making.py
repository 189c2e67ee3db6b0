"""How a release is made: plan on public facts, price the plan, run it on the private room."""

from __future__ import annotations

import datetime
import hashlib
import secrets
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.events import Event, events_of
from dualquery.privacy.neighbours import Neighbours
from dualquery.privacy.statement import PrivacyStatement
from dualquery.queries.conjunctions import Workload
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import Queries, Statistic
from dualquery.queries.stored import BUILT_IN
from dualquery.releases.folder import Release
from dualquery.releases.means import MeansPlan, with_means, without_means
from dualquery.releases.payment import NO_PAYMENT, Payment
from dualquery.releases.polish import check_polish, polished
from dualquery.releases.proof import Price, proof_record
from dualquery.releases.ruled import legal_records, with_forced_answers
from dualquery.releases.sampling import finished_records
from dualquery.room.assumptions import numerical_assumptions
from dualquery.room.curator import Curator
from dualquery.room.declared import Declaration, check_declared
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.private_errors import SEEN
from dualquery.room.randomness import randomness
from dualquery.room.row_count import RowCount
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS, Progress
from dualquery.runtime.versions import versions

if TYPE_CHECKING:
    from dualquery.rows.dataset import Dataset
    from dualquery.rows.protocol import Rows

PROVEN = (*BUILT_IN, Disjunctions)
"""Families whose sensitivity the room proves."""

_LOST = (
    "{} private draws were begun and lost when the run was interrupted: they are charged, and the "
    "rest of the schedule went on without them."
)

_BYTES_PER_QUERY = 128
_MOST_RECORD_BYTES = 1 << 28
"""More than that is not held beforehand for records."""

FOUND = (
    "the queries are about items that noisy shares showed to be frequent: which items these are is "
    "part of what was released, within the same guarantee"
)

_UNSEEN = "The mechanism looks at no private row."


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
    show_private_errors: bool = False
    payment: Payment = NO_PAYMENT
    journal: Journal = NO_JOURNAL


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
    """Plan on public facts, run on the curator, and put the result together."""
    budget, count, seed = terms.budget, terms.count, terms.seed
    progress.phase(
        f"planning {mechanism.name}: how {len(task.queries):,} queries are best asked at epsilon "
        f"{budget.epsilon:g}, delta {budget.delta:.3g}"
    )
    with count.cost_told():
        own = mechanism.plan(task, without_means(budget, data.schema.grids))
        plan, means = with_means(own, data.schema.grids, task.queries, budget)
    given = [each.condition for each in terms.declarations]
    if budget.neighbours.weight is not None:
        given.append(budget.neighbours.weight.condition)
    condition = " and ".join(given)
    priced = price(plan, budget)
    privacy = statement(plan, budget, data, seed, count, condition or None, priced)
    notes = (*notes, *(each.remark for each in terms.declarations))
    if terms.show_private_errors:
        notes = (*notes, SEEN)
    if plan.remark:
        progress.note(plan.remark)
    expected = mechanism.expected_error(task, own)
    if expected is not None:
        progress.note(expected.text())
    if privacy.private:
        privacy = replace(privacy, together=terms.payment.together())
    journal = terms.journal
    journal.same("plan", {"n": count.n, "schedule": _digest(events_of(plan.schedule))})
    with count.cost_told():
        journal.make_room(expected_bytes(task))
        terms.payment.pay((*count.events, *events_of(plan.schedule)), privacy)
    outcome = run(
        data, task, mechanism, plan, seed, threads, progress, budget.neighbours, terms.statistics,
        journal, means=means, show_private_errors=terms.show_private_errors,
    )  # fmt: skip
    journal.finish()
    terms.payment.finish()
    if journal.lost:
        notes = (*notes, _LOST.format(journal.lost))
    queries: Queries = task.queries
    if outcome.workload is not None:
        queries, notes = outcome.workload, (*notes, FOUND)
    if outcome.intervals is not None:
        intervals = outcome.intervals.for_rows(count, queries.low, queries.high)
        intervals = intervals.for_cut(data.schema.max_ones_per_row, budget.neighbours.unit)
        outcome = replace(outcome, intervals=intervals)
    outcome, forced = with_forced_answers(outcome, queries, task.rules)
    records, remark = finished_records(outcome, terms.records, task.rows, seed)
    if records is not None:
        generator = np.random.default_rng(seed)
        records = legal_records(records, task.rules, generator)
        if terms.polish is not None:
            progress.phase("polishing the records")
            workload = check_polish(queries, terms.polish)
            records = polished(
                records, workload, outcome.answers, terms.polish, generator, progress.step
            )
            records = legal_records(records, task.rules, generator)
    return Release(
        mechanism=mechanism.name,
        parameters=plan.parameters,
        options={
            "epsilon": terms.asked_epsilon,
            "delta": budget.delta,
            "accountant": budget.accountant,
            **budget.neighbours.described(),
            "rows": terms.stated_rows,
            "seed": seed,
            "records": terms.records,
            "polish": terms.polish,
            "budget_file": terms.payment.record(),
            "mechanism": asdict(mechanism),  # type: ignore[call-overload]  # a frozen dataclass
        },
        privacy=privacy,
        schema=data.schema,
        n=count.n,
        workload=queries,
        answers=outcome.answers,
        records=records,
        trace=outcome.trace,
        solver=outcome.solver,
        intervals=outcome.intervals,
        measurements=outcome.measurements,
        model=outcome.model,
        means=outcome.means,
        notes=(*data.notes, *notes, *remark, *forced),
        versions=versions(),
        created=created.isoformat(timespec="seconds"),
        proof=proof_record(plan.schedule, outcome.grounds, priced, count, data.schema, privacy),
    )


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


def expected_bytes(task: Task) -> int:
    """Return about how many bytes a release takes, from public facts: to find a full disk early."""
    records = min(task.n, 1_000_000) * task.queries.domain.columns
    return _BYTES_PER_QUERY * len(task.queries) + min(2 * records, _MOST_RECORD_BYTES)


def _public_seed(seed: int | None, journal: Journal) -> int:
    """Return the seed of public choices: a run that goes on makes the same ones."""

    def fresh() -> dict[str, int]:
        return {"seed": secrets.randbits(128) if seed is None else seed}

    return int(journal.recall("public seed", fresh, fresh)["seed"])


def _digest(events: tuple[Event, ...]) -> str:
    """Return the SHA-256 of a schedule's events."""
    return hashlib.sha256(repr(events).encode()).hexdigest()


def price(plan: Plan[Any], budget: Budget) -> Price:
    """Price a plan's schedule.

    Whoever made the plan, it is priced here again, so that no mechanism can state a guarantee that
    its schedule does not have.

    Raises
    ------
    RuntimeError
        If the schedule costs more than the budget: a fault of the mechanism.
    """
    accountant, cost = best(plan.schedule, budget.delta, plan.accountant)
    if not cost <= budget.epsilon:  # a cost of NaN proves nothing
        raise RuntimeError(
            f"the plan costs epsilon {cost:g} by {accountant.name}, above {budget.epsilon:g}"
        )
    return Price(accountant.name, accountant.assumptions, cost, budget.delta)


def statement(
    plan: Plan[Any],
    budget: Budget,
    data: Dataset[Rows],
    seed: int | None,
    count: RowCount | None = None,
    condition: str | None = None,
    priced: Price | None = None,
) -> PrivacyStatement:
    """Price the plan's schedule (None: here); state the guarantee, or why there is none.

    To the budget comes what the number of rows cost (None: nothing, it is public).

    Raises
    ------
    RuntimeError
        If the schedule costs more than the budget: a fault of the mechanism.
    """
    priced = price(plan, budget) if priced is None else priced
    reasons = []
    if seed is not None:
        reasons.append("a seed was given, so the noise can be undone")
    if not data.schema.declared:
        reasons.append(
            "the schema is not declared, so it may have been taken from the data; draft a file "
            "(dualquery schema TABLE --out FILE) or take yours, check it, set "
            '"declared": true in it and give it with --schema'
        )
    if reasons:
        return PrivacyStatement.not_private(*reasons)
    looked = bool(events_of(plan.schedule))
    rows = RowCount(data.n) if count is None else count
    return PrivacyStatement(
        private=True,
        epsilon=rows.epsilon + (budget.epsilon if looked else 0.0),
        delta=budget.delta if looked else 0.0,
        accountant=priced.accountant,
        assumptions=(priced.assumptions if looked else _UNSEEN, *rows.assumptions, *data.notes),
        numerical_assumptions=numerical_assumptions((*rows.events, *events_of(plan.schedule))),
        neighbours=rows.relation,
        condition=condition,
    )


def declarations(queries: Queries, statistics: Statistic) -> tuple[Declaration, ...]:
    """Try what the room has no proof of: a user's queries, and what a mechanism asks to hold.

    Raises
    ------
    BadInputError
        If a family is not what it declares, derives from conjunctions, or is no family at all.
    """
    held = {id(each): each for each in (queries, statistics)}
    found = []
    for each in held.values():
        if type(each) in PROVEN:
            continue
        if isinstance(each, Workload | Disjunctions):
            raise BadInputError(
                f"{type(each).__name__} derives from conjunctions, whose sensitivity is proven "
                "from their literals; make it a family of its own"
            )
        if not isinstance(each, Queries):
            raise BadInputError(
                f"the mechanism asks the private room to hold {type(each).__name__}, which is no "
                "family of queries, so its sensitivity cannot be tried on public records"
            )
        found.append(check_declared(each))
    return tuple(found)
