"""The checks of the audit, in order; what each runs, and how much of it."""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dualquery.audit.findings import Finding
from dualquery.audit.games import Game, audit_game
from dualquery.audit.planted import PLANTED
from dualquery.audit.repeated import Asked, audit_fresh_draws, audit_releases
from dualquery.audit.sensitivities import EVERYTHING, audit_moves, audit_planned, audit_row_count
from dualquery.audit.tables import UNITS, WEIGHTS, name_of
from dualquery.audit.units import audit_units
from dualquery.data.domain import Domain
from dualquery.data.schema.grids import Grid
from dualquery.data.units import Unit, Weight
from dualquery.mechanisms.protocol import Budget
from dualquery.mechanisms.registry import configure, mechanism_names
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Queries
from dualquery.queries.generate.marginals import all_marginals
from dualquery.queries.parities import Parities
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS, Progress

Options = Mapping[str, Any]

SMALL: Mapping[str, tuple[Options, ...]] = {
    "dualquery": ({"rounds": 3, "samples": 1}, {"rounds": 2, "samples": 2}),
    "matrix": ({"components": 0}, {"components": 2, "steps": 5, "records": 5}),
    "staged": ({"records": 5},),
    "probed": ({"records": 5},),
    "independent": ({"records": 5},),
    "uniform": ({"records": 5},),
    "smalldb": ({"size": 2},),
    "mwem": (
        {"iterations": 2, "repetitions": 1, "records": 5},
        {"iterations": 1, "repetitions": 1, "records": 5, "select": "noisy-max"},
        {"iterations": 1, "repetitions": 1, "records": 5, "cuboids": True},
        {"iterations": 1, "repetitions": 1, "records": 5, "noisy_init": True},
        {"iterations": 1, "repetitions": 1, "records": 5, "start": "independent"},
    ),
    "mwem-sampled": ({"rounds": 1, "population": 20, "records": 5},),
    "barak": ({"fit": "none"}, {"fit": "weights", "records": 5}),
}
"""Options that keep built-in mechanisms small; others are taken as they are by default."""

LARGER: Mapping[str, tuple[Options, ...]] = {
    "dualquery": ({"rounds": 4, "samples": 1}, {"rounds": 3, "samples": 2}),
    "mwem": ({"iterations": 2, "repetitions": 2, "records": 5, "average": True},),
    "smalldb": ({"size": 3},),
}
"""More of them, for the full audit."""


BESIDES = (
    ("means that are bought", Neighbours.REPLACE_ONE, "laplace"),
    ("units of some rows", Neighbours.parse("add-remove", Unit("unit", 3)), "gaussian"),
    ("weights", Neighbours.parse("replace-one", None, Weight("weight", 2.0)), "gaussian"),
)
"""Releases of what a table may have besides: what it is, the neighbours, the mechanism."""


@dataclass(frozen=True)
class Effort:
    """How much is tried."""

    paths: int
    """Random paths of a game that cannot be enumerated."""
    most_paths: int
    """Paths of one that can."""
    cases: int
    """Random cases of a statistic."""
    workloads: int
    """Random workloads that a mechanism plans for."""
    epsilons: Sequence[float]
    """Stated by the releases of a mechanism."""
    seconds: float
    """For the releases of a mechanism at one epsilon."""
    releases: int
    """Of each table, at most."""
    larger: bool
    """Whether the larger games are played as well."""


QUICK = Effort(2, 500, 60, 15, (1.0,), 2.0, 200, larger=False)
FULL = Effort(6, 1_000, 800, 100, (1.0, 8.0), 15.0, 3_000, larger=True)
PLANTED_EFFORT = Effort(2, 500, 60, 15, (1.0,), math.inf, 250, larger=False)
"""For the checks of planted bugs: what they find must not depend on how busy the machine is."""


@dataclass(frozen=True)
class Check:
    """One thing that is tried."""

    name: str
    run: Callable[[], Finding]
    weight: float
    """Expected seconds, up to a factor common to all."""


@dataclass(frozen=True)
class Result:
    """A check, and what it found."""

    name: str
    finding: Finding
    seconds: float
    fault: str = ""
    """The exception that ended it, if one did."""


@dataclass(frozen=True)
class Catch:
    """A planted bug, and what its check made of it."""

    name: str
    check: str
    found: tuple[str, ...]
    """The violations: none if the bug was missed."""


@dataclass(frozen=True)
class Audit:
    """The whole result."""

    quick: bool
    results: Sequence[Result]
    catches: Sequence[Catch]
    seconds: float

    @property
    def violations(self) -> list[str]:
        """All violations of what is not planted."""
        return [line for result in self.results for line in result.finding.violations]

    @property
    def missed(self) -> list[str]:
        """The planted bugs that no check caught."""
        return [catch.name for catch in self.catches if not catch.found]

    @property
    def passed(self) -> bool:
        """Whether nothing was found and every planted bug was caught."""
        return not self.violations and not self.missed


def run_audit(*, quick: bool, processes: int = 1, progress: Progress = NO_PROGRESS) -> Audit:
    """Run every check, and every planted bug's check with the bug in place.

    Parameters
    ----------
    quick
        Whether to take three minutes, and not half an hour, on two cores.
    processes
        Checks that run at the same time, each in a process of its own; with 1 all run in this one.
    progress
        Listens: to each check, and how many minutes are left.
    """
    begun = time.monotonic()
    effort = QUICK if quick else FULL
    checks = [*list_checks(effort)]
    weights = {check.name: check.weight for check in list_checks(PLANTED_EFFORT)}
    total = sum(check.weight for check in checks) + sum(weights[bug.check] for bug in PLANTED)
    done = 0.0
    results: dict[str, Result] = {}
    catches: dict[str, Catch] = {}
    tasks = [Task(effort, check.name) for check in checks]
    tasks += [Task(PLANTED_EFFORT, bug.check, bug.name) for bug in PLANTED]
    cost = {check.name: check.weight for check in checks}
    # The longest first, so that no process waits long for another at the end.
    tasks.sort(key=lambda task: -(cost if task.bug is None else weights)[task.check])
    for task, result in _carried_out(tasks, processes):
        if task.bug is None:
            results[task.check] = result
            done += cost[task.check]
        else:
            # A check that breaks has caught nothing.
            found = () if result.fault else tuple(result.finding.violations)
            catches[task.bug] = Catch(task.bug, task.check, found)
            done += weights[task.check]
        spent = time.monotonic() - begun
        left = math.ceil(spent * (total - done) / done / 60)
        progress.phase(f"audit: {task}, about {left} min left")
        progress.step(round(done), round(total))
    return Audit(
        quick,
        [results[check.name] for check in checks],
        [catches[bug.name] for bug in PLANTED],
        time.monotonic() - begun,
    )


@dataclass(frozen=True)
class Task:
    """A check to run, by name: a process makes it anew."""

    effort: Effort
    check: str
    bug: str | None = None
    """Name of a bug to plant."""

    def __str__(self) -> str:
        return self.check if self.bug is None else f"planted, {self.bug}"


def _carried_out(tasks: Sequence[Task], processes: int) -> Iterator[tuple[Task, Result]]:
    """Run tasks; yield each when it is done."""
    if processes == 1:
        for task in tasks:
            yield task, carry_out(task)
        return
    # Never forked: a parallel kernel may have run in this process.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned) as pool:
        try:
            running = {pool.submit(carry_out, task): task for task in tasks}
            for future in as_completed(running):
                yield running[future], future.result()
        except BaseException:
            # Who interrupts an audit does not wait for the checks that are running.
            for child in multiprocessing.active_children():
                child.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def carry_out(task: Task) -> Result:
    """Run a check, with a bug planted if the task has one; an exception is a violation, too."""
    check = next(each for each in list_checks(task.effort) if each.name == task.check)
    bug = next((each for each in PLANTED if each.name == task.bug), None)
    begun, fault = time.monotonic(), ""
    with nullcontext() if bug is None else bug.plant():
        try:
            finding = check.run()
        except Exception as error:
            fault = f"{check.name} ended with {type(error).__name__}: {error}"
            finding = Finding(violations=[fault])
    return Result(check.name, finding, round(time.monotonic() - begun, 1), fault)


def list_checks(effort: Effort) -> Iterator[Check]:
    """Yield all checks, those of third parties' mechanisms as well."""
    for relation in RELATIONS:
        for kind in EVERYTHING:
            run = partial(audit_moves, kind, relation, effort.cases)
            name = f"sensitivity/{kind.__name__}/{name_of(relation)}"
            yield Check(name, run, effort.cases / 50)
    for relation in (*UNITS, *WEIGHTS):
        for kind in EVERYTHING:
            cases = effort.cases // (3 if relation.weight is None else 6)
            name = f"sensitivity/{kind.__name__}/{name_of(relation)}"
            yield Check(name, partial(audit_moves, kind, relation, cases), cases / 10)
    yield Check("sensitivity/number of rows", partial(audit_row_count, 8), 0.1)
    for relation in (*UNITS, *WEIGHTS):
        run = partial(audit_row_count, 8, relation)
        yield Check(f"sensitivity/number of rows/{name_of(relation)}", run, 0.1)
    for relation in (UNITS[0], *WEIGHTS):
        run = partial(audit_units, effort.cases, relation)
        yield Check(f"sensitivity/rows that count/{name_of(relation)}", run, effort.cases / 50)
    for mechanism in mechanism_names():
        for relation in RELATIONS:
            run = partial(_planned, mechanism, relation, effort.workloads)
            yield Check(f"planned/{mechanism}/{relation.value}", run, effort.workloads / 15)
    for mechanism in mechanism_names():
        for relation in (*RELATIONS, *UNITS):
            run = partial(_games, mechanism, relation, effort)
            weight = 2.0 + len(_options(mechanism, effort)) * effort.most_paths / 100
            yield Check(f"games/{mechanism}/{name_of(relation)}", run, weight)
    for relation in (*RELATIONS, *UNITS):
        run = partial(_games_with_means, relation, effort)
        yield Check(f"games/means that are bought/{name_of(relation)}", run, 2.0)
    yield Check("releases/fresh draws", audit_fresh_draws, 1.0)
    for mechanism in mechanism_names():
        small = _options(mechanism, effort)[0]
        if mechanism == "auto" and not effort.larger:
            continue  # slow, and what it chooses is released on its own
        for relation in RELATIONS:
            run = partial(_released, mechanism, small, relation, effort)
            yield Check(f"releases/{mechanism}/{relation.value}", run, _weight(effort))
    for what, relation, mechanism in BESIDES:
        means = what == "means that are bought"
        run = partial(_released, mechanism, {}, relation, effort, means=means)
        yield Check(f"releases/{what}/{relation.value}", run, _weight(effort))


def _weight(effort: Effort) -> float:
    return min(effort.seconds, effort.releases / 15) * len(effort.epsilons)


def _released(
    mechanism: str,
    options: Options,
    relation: Neighbours,
    effort: Effort,
    *,
    means: bool = False,
) -> Finding:
    finding = Finding()
    for epsilon in effort.epsilons:
        asked = Asked(mechanism, options, relation, epsilon, means=means)
        finding.add(audit_releases(asked, effort.seconds, effort.releases))
    return finding


def _options(mechanism: str, effort: Effort) -> tuple[Options, ...]:
    return SMALL.get(mechanism, ({},)) + (LARGER.get(mechanism, ()) if effort.larger else ())


def _planned(mechanism: str, relation: Neighbours, workloads: int) -> Finding:
    return audit_planned(configure(mechanism, _options(mechanism, QUICK)[0]), relation, workloads)


def _games(mechanism: str, relation: Neighbours, effort: Effort) -> Finding:
    """Play all games of a mechanism that it accepts."""
    finding = Finding()
    refused = ""
    played = list(workloads(effort))
    if relation.unit is not None:  # of all units but one there are fewer rows
        played = [(name, queries, max(rows - 1, 1)) for name, queries, rows in played]
        played = played if effort.larger else played[1:2]
    for name, queries, rows in played:
        for options in _options(mechanism, effort):
            for delta in (0.0, 1e-2):
                for stated in _stated(rows, relation, effort):
                    budget = Budget(1.0, delta, neighbours=relation)
                    label = f"{mechanism} {dict(options)} on {name}, delta {delta:g}"
                    game = Game(configure(mechanism, options), queries, rows, budget, stated, label)
                    refused = _add_game(game, effort, finding) or refused
    if not finding.tried and not finding.violations:
        finding.remarks.append(f"{mechanism}, {name_of(relation)}: refuses every game, {refused}")
    return finding


def _games_with_means(relation: Neighbours, effort: Effort) -> Finding:
    """Play games in which the mean of a column is bought before the mechanism runs."""
    finding = Finding()
    domain = Domain.binary(1)
    queries, rows = Workload(np.array([[0]], np.int32), domain), 2 if relation.unit is None else 1
    grid = Grid("x", -1.0, 1.0, 2, exact=True)
    for mechanism, delta in (("laplace", 0.0), ("gaussian", 1e-2), ("dualquery", 1e-2)):
        for stated in _stated(rows, relation, effort):
            options = SMALL.get(mechanism, ({},))[0]
            budget = Budget(1.0, delta, neighbours=relation)
            label = f"a mean and {mechanism}, delta {delta:g}"
            made = configure(mechanism, options)
            game = Game(made, queries, rows, budget, stated, label, (grid,))
            refused = _add_game(game, effort, finding)
            if refused:
                finding.remarks.append(f"{label}, {stated} rows stated: {refused}")
    return finding


def _add_game(game: Game, effort: Effort, finding: Finding) -> str:
    """Play a game and add what is found; return why it cannot be, if the mechanism refuses it."""
    try:
        _ = game.plan
    except BadInputError as error:
        return str(error)
    finding.add(audit_game(game, effort.paths, effort.most_paths))
    return ""


def _stated(rows: int, relation: Neighbours, effort: Effort) -> tuple[int, ...]:
    """Return public numbers of rows for tables of ``rows`` or, under add-remove, one more."""
    if relation.rows_public:
        return (rows,)
    return (rows, rows + 2) if effort.larger else (rows + 2,)


def workloads(effort: Effort) -> Iterator[tuple[str, Queries, int]]:
    """Yield names, queries, and how many rows the tables have."""
    binary, mixed = Domain.binary(2), Domain(np.array([0, 1, 4]))
    signed = Workload(np.array([[0, -1], [0, 2], [1, 3]], np.int32), binary)
    yield "two binary columns", signed, 3
    yield "two marginals", all_marginals(binary, 1), 2
    queries = np.array([[0, -1], [1, 2], [3, 7], [5, -1]], np.int32)
    yield "a binary column and one of three values", Workload(queries, mixed), 2
    if effort.larger:
        yield "parities", Parities(2, 2), 2
