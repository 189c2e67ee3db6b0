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
from itertools import product
from typing import Any

import numpy as np

from dualquery.audit.findings import Finding
from dualquery.audit.games import Game, audit_game
from dualquery.audit.planted import PLANTED
from dualquery.audit.repeated import Asked, audit_fresh_draws, audit_releases
from dualquery.audit.sensitivities import EVERYTHING, audit_moves, audit_row_count, audit_units
from dualquery.audit.tables import UNITS, WEIGHTS, name_of
from dualquery.audit.thresholds import audit_single_texts, audit_thresholds
from dualquery.data.domain import Domain
from dualquery.data.encoding.units import Unit, Weight
from dualquery.data.schema.grids import Grid
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
    **dict.fromkeys(("adaptive", "staged", "probed", "independent", "uniform"), ({"records": 5},)),
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

MEANS = "means that are bought"

BESIDES = (
    (MEANS, "laplace", Neighbours.REPLACE_ONE),
    ("units of some rows", "gaussian", Neighbours.parse("add-remove", Unit("unit", 3))),
    ("weights", "gaussian", Neighbours.parse("replace-one", None, Weight("weight", 2.0))),
)
"""Releases of what a table may have besides: what it is, the mechanism, the neighbours."""


@dataclass(frozen=True)
class Effort:
    """Limits of what is tried."""

    paths: int  # random ones, of a game that cannot be enumerated
    most_paths: int  # of one that can
    cases: int  # of a statistic
    epsilons: Sequence[float]  # stated by the releases of a mechanism
    seconds: float  # for the releases of a mechanism at one epsilon
    releases: int  # of each table, at most
    larger: bool  # whether more workloads are played, and `auto` releases


QUICK = Effort(2, 500, 60, (1.0,), 2.0, 200, larger=False)
FULL = Effort(6, 1_000, 800, (1.0, 8.0), 15.0, 3_000, larger=True)
PLANTED_EFFORT = Effort(2, 500, 60, (1.0,), math.inf, 250, larger=False)
"""For the checks of planted bugs: what they find must not depend on how busy the machine is."""


@dataclass(frozen=True)
class Task:
    """A check to run, by name: a process makes it anew."""

    effort: Effort
    check: str
    bug: str = ""
    """Name of a bug to plant."""


@dataclass(frozen=True)
class Result:
    """A check, the bug planted meanwhile or "", and what was found."""

    check: str
    bug: str
    finding: Finding
    seconds: float
    fault: str = ""
    """The exception that ended it, if one did."""

    @property
    def caught(self) -> bool:
        """Whether the check found something; one that breaks has caught nothing."""
        return bool(self.finding.violations) and not self.fault


@dataclass(frozen=True)
class Audit:
    """All results: the checks, then the planted bugs."""

    quick: bool
    results: Sequence[Result]
    catches: Sequence[Result]
    seconds: float

    @property
    def violations(self) -> list[str]:
        """All violations of what is not planted."""
        return [line for result in self.results for line in result.finding.violations]

    @property
    def missed(self) -> list[str]:
        """The planted bugs that no check caught."""
        return [result.bug for result in self.catches if not result.caught]

    @property
    def passed(self) -> bool:
        """Whether nothing was found and every planted bug was caught."""
        return not self.violations and not self.missed


def run_audit(*, quick: bool, processes: int = 1, progress: Progress = NO_PROGRESS) -> Audit:
    """Run every check, and every planted bug's check with the bug in place.

    Quick takes three minutes, else half an hour, on two cores. With one process all runs in this
    one. ``progress`` listens to each check.
    """
    begun = time.monotonic()
    effort = QUICK if quick else FULL
    tasks = [Task(effort, name) for name in list_checks(effort)]
    tasks += [Task(PLANTED_EFFORT, bug.check, bug.name) for bug in PLANTED]
    found: dict[tuple[str, str], Result] = {}
    for result in _carried_out(tasks, processes):
        found[result.check, result.bug] = result
        progress.phase(f"audit: {result.bug or result.check}")
        progress.step(len(found), len(tasks))
    ordered = [found[task.check, task.bug] for task in tasks]
    results, catches = [r for r in ordered if not r.bug], [r for r in ordered if r.bug]
    return Audit(quick, results, catches, time.monotonic() - begun)


def _carried_out(tasks: Sequence[Task], processes: int) -> Iterator[Result]:
    """Run tasks; yield each result when it is there."""
    if processes == 1:
        yield from map(carry_out, tasks)
        return
    # Never forked: a parallel kernel may have run in this process.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned) as pool:
        try:
            for future in as_completed([pool.submit(carry_out, task) for task in tasks]):
                yield future.result()
        except BaseException:
            # Who interrupts an audit does not wait for the checks that are running.
            for child in multiprocessing.active_children():
                child.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def carry_out(task: Task) -> Result:
    """Run a check, with a bug planted if the task has one; an exception is a violation, too."""
    bug = next((each for each in PLANTED if each.name == task.bug), None)
    begun, fault = time.monotonic(), ""
    with nullcontext() if bug is None else bug.plant():
        try:
            finding = list_checks(task.effort)[task.check]()
        except Exception as error:
            fault = f"{task.check} ended with {type(error).__name__}: {error}"
            finding = Finding(violations=[fault])
    return Result(task.check, task.bug, finding, round(time.monotonic() - begun, 1), fault)


def list_checks(effort: Effort) -> dict[str, Callable[[], Finding]]:
    """Return all checks by their names, those of third parties' mechanisms as well."""
    found: dict[str, Callable[[], Finding]] = {}
    by_units = (*UNITS, *WEIGHTS)
    for relation in (*RELATIONS, *by_units):
        share = 1 if relation in RELATIONS else 3 if relation.weight is None else 6
        for kind in EVERYTHING:
            run = partial(audit_moves, kind, relation, effort.cases // share)
            found[f"sensitivity/{kind.__name__}/{name_of(relation)}"] = run
    for relation in (Neighbours.ADD_REMOVE, *by_units):
        run = partial(audit_row_count, 8, relation)
        found[f"sensitivity/number of rows/{name_of(relation)}"] = run
    for relation in (UNITS[0], *WEIGHTS):
        run = partial(audit_units, effort.cases, relation)
        found[f"sensitivity/rows that count/{name_of(relation)}"] = run
    for relation in (*RELATIONS, *UNITS):
        run = partial(audit_thresholds, relation)
        found[f"sensitivity/learned schema/{name_of(relation)}"] = run
        for mechanism in mechanism_names():
            run = partial(_games, mechanism, relation, effort)
            found[f"games/{mechanism}/{name_of(relation)}"] = run
        run = partial(_games_with_means, relation, effort)
        found[f"games/means that are bought/{name_of(relation)}"] = run
    found["releases/fresh draws"] = audit_fresh_draws
    found["releases/single texts"] = audit_single_texts
    asked = [(name, *each) for name in mechanism_names() for each in product([name], RELATIONS)]
    for what, mechanism, relation in (*asked, *BESIDES):
        if mechanism == "auto" and not effort.larger:
            continue  # slow, and what it chooses is released on its own
        run = partial(_released, what, mechanism, relation, effort)
        found[f"releases/{what}/{relation.value}"] = run
    return found


def _released(what: str, mechanism: str, relation: Neighbours, effort: Effort) -> Finding:
    finding = Finding()
    options = SMALL.get(mechanism, ({},))[0] if what == mechanism else {}
    for epsilon in effort.epsilons:
        asked = Asked(mechanism, options, relation, epsilon, means=what == MEANS)
        finding.add(audit_releases(asked, effort.seconds, effort.releases))
    return finding


def _games(mechanism: str, relation: Neighbours, effort: Effort) -> Finding:
    """Play all games of a mechanism that it accepts."""
    finding, refused = Finding(), ""
    played = list(workloads(effort))
    if relation.unit is not None:  # of all units but one there are fewer rows
        played = [(name, queries, max(rows - 1, 1)) for name, queries, rows in played]
        played = played if effort.larger else played[1:2]
    every = SMALL.get(mechanism, ({},))
    for (name, queries, rows), options, delta in product(played, every, (0.0, 1e-2)):
        made = configure(mechanism, options)
        label = f"{mechanism} {dict(options)} on {name}, delta {delta:g}"
        for stated in _stated(rows, relation, effort):
            budget = Budget(1.0, delta, neighbours=relation)
            game = Game(made, queries, rows, budget, stated, label)
            refused = _add_game(game, effort, finding) or refused
    if not finding.tried and not finding.violations:
        finding.remarks.append(f"{mechanism}, {name_of(relation)}: refuses every game, {refused}")
    return finding


def _games_with_means(relation: Neighbours, effort: Effort) -> Finding:
    """Play games in which the mean of a column is bought before the mechanism runs."""
    finding, rows = Finding(), 2 if relation.unit is None else 1
    queries = Workload(np.array([[0]], np.int32), Domain.binary(1))
    grid = Grid("x", -1.0, 1.0, 2, exact=True)
    for mechanism, delta in (("laplace", 0.0), ("gaussian", 1e-2), ("dualquery", 1e-2)):
        made = configure(mechanism, SMALL.get(mechanism, ({},))[0])
        label = f"a mean and {mechanism}, delta {delta:g}"
        for stated in _stated(rows, relation, effort):
            budget = Budget(1.0, delta, neighbours=relation)
            game = Game(made, queries, rows, budget, stated, label, (grid,))
            if refused := _add_game(game, effort, finding):
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
