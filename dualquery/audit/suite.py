"""The checks of the audit, in order; what each runs, and how much of it."""

import itertools
import math
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dualquery.audit import sensitivities
from dualquery.audit.cases import UNITS, WEIGHTS, name_of
from dualquery.audit.findings import Audit, Finding, Result
from dualquery.audit.games import Game, audit_game
from dualquery.audit.planted import PLANTED
from dualquery.audit.repeated import Setting, audit_fresh_draws, audit_releases
from dualquery.data.domain import Domain
from dualquery.data.given_table import Unit, Weight
from dualquery.data.schema.grids import Grid
from dualquery.mechanisms.protocol import Budget
from dualquery.mechanisms.registry import configure, mechanism_names
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Queries
from dualquery.queries.generate.workloads import all_marginals
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
    seconds: float  # for the releases of a mechanism
    releases: int  # of each table, at most
    larger: bool  # whether more workloads are played, and `auto` releases


QUICK = Effort(2, 500, 60, 2.0, 200, larger=False)
FULL = Effort(6, 1_000, 800, 30.0, 3_000, larger=True)
PLANTED_EFFORT = Effort(2, 500, 60, math.inf, 250, larger=False)
"""For the checks of planted bugs: what they find must not depend on how busy the machine is."""


def run_audit(*, quick: bool, processes: int = 1, progress: Progress = NO_PROGRESS) -> Audit:
    """Run every check, and every planted bug's check with the bug in place; see README.md.

    With one process all runs in this one. ``progress`` listens to each check.
    """
    begun = time.monotonic()
    effort = QUICK if quick else FULL
    tasks = [(effort, name, "") for name in list_checks(effort)]
    tasks += [(PLANTED_EFFORT, bug.check, bug.name) for bug in PLANTED]
    found: list[Result] = []
    for result in _carried_out(tasks, processes):
        found.append(result)
        progress.phase(f"audit: {result.bug or result.check}")
        progress.step(len(found), len(tasks))
    results, catches = [r for r in found if not r.bug], [r for r in found if r.bug]
    return Audit(quick, results, catches, time.monotonic() - begun)


def _carried_out(tasks: Sequence[tuple[Effort, str, str]], processes: int) -> Iterator[Result]:
    if processes == 1:
        yield from itertools.starmap(carry_out, tasks)
        return
    # Never forked: a parallel kernel may have run in this process.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        try:
            checks = [pool.submit(carry_out, *task) for task in tasks]
            yield from (each.result() for each in checks)
        except BaseException:
            # Who interrupts an audit does not wait for the checks that are running. No check is
            # cancelled: a pool whose processes are gone trips over cancelled ones.
            pool.shutdown(wait=False)
            for child in multiprocessing.active_children():
                child.terminate()
            raise


def carry_out(effort: Effort, check: str, bug: str = "") -> Result:
    """Run a check, with a bug of some name planted if any; an exception is a violation, too."""
    planted = next((each for each in PLANTED if each.name == bug), None)
    begun, fault = time.monotonic(), ""
    with nullcontext() if planted is None else planted.plant():
        try:
            finding = list_checks(effort)[check]()
        except Exception as error:
            fault = f"{check} ended with {type(error).__name__}: {error}"
            finding = Finding(violations=[fault])
    return Result(check, bug, finding, round(time.monotonic() - begun, 1), fault)


def list_checks(effort: Effort) -> dict[str, Callable[[], Finding]]:
    """Return all checks by their names, those of third parties' mechanisms as well."""
    found: dict[str, Callable[[], Finding]] = {}

    def add(what: str, check: Callable[..., Finding], relation: Neighbours, *given: Any) -> None:
        found[f"{what}/{name_of(relation)}"] = partial(check, relation, *given)

    for relation in (*RELATIONS, *UNITS, *WEIGHTS):
        cases = effort.cases // (1 if relation in RELATIONS else 6 if relation.weight else 3)
        for kind in sensitivities.EVERYTHING:
            add(f"sensitivity/{kind.__name__}", sensitivities.audit_moves, relation, kind, cases)
    for relation in (Neighbours.ADD_REMOVE, *UNITS, *WEIGHTS):
        add("sensitivity/number of rows", sensitivities.audit_row_count, relation, 8)
    for relation in (UNITS[0], *WEIGHTS):
        add("sensitivity/rows that count", sensitivities.audit_units, relation, effort.cases)
    for relation in (*RELATIONS, *UNITS):
        add("sensitivity/learned schema", sensitivities.audit_thresholds, relation)
        for what in (*mechanism_names(), MEANS):
            add(f"games/{what}", _games, relation, what, effort)
    found["releases/fresh draws"] = audit_fresh_draws
    found["releases/single texts"] = sensitivities.audit_single_texts
    asked = [(name, name, relation) for name in mechanism_names() for relation in RELATIONS]
    for what, mechanism, relation in (*asked, *BESIDES):
        if mechanism == "auto" and not effort.larger:
            continue  # slow, and what it chooses is released on its own
        run = partial(_released, what, mechanism, relation, effort)
        found[f"releases/{what}/{relation.value}"] = run
    return found


def _released(what: str, mechanism: str, relation: Neighbours, effort: Effort) -> Finding:
    options = SMALL.get(mechanism, ({},))[0] if what == mechanism else {}
    asked = Setting(mechanism, options, relation, means=what == MEANS)
    return audit_releases(asked, effort.seconds, effort.releases)


def _games(relation: Neighbours, what: str, effort: Effort) -> Finding:
    """Play all games that a mechanism accepts, or some in which a mean is bought before it."""
    fewer = int(relation.unit is not None)  # of all units but one there are fewer rows
    played = list(workloads(effort))
    if fewer and not effort.larger:
        played = played[1:2]
    cases: Iterable[tuple[str, tuple[str, Queries, int], Options, float]]
    cases = itertools.product([what], played, SMALL.get(what, ({},)), (0.0, 1e-2))
    grids: tuple[Grid, ...] = ()
    if what == MEANS:
        grids = (Grid("x", -1.0, 1.0, 2, exact=True),)
        one = "one bit and a mean", Workload(np.array([[0]], np.int32), Domain.binary(1)), 2
        for_means = (("laplace", 0.0), ("gaussian", 1e-2), ("dualquery", 1e-2))
        cases = ((name, one, SMALL.get(name, ({},))[0], delta) for name, delta in for_means)
    finding, tried, refused = Finding(), set(), {}
    for mechanism, (name, queries, all_rows), options, delta in cases:
        made = configure(mechanism, options)
        rows = max(all_rows - fewer, 1)
        label = f"{mechanism} {dict(options)} on {name}, delta {delta:g}"
        budget = Budget(1.0, delta, neighbours=relation)
        more = (0,) if relation.rows_public else (0, 2) if effort.larger else (2,)
        for game in (Game(made, queries, rows, budget, rows + m, label, grids) for m in more):
            try:
                _ = game.plan
            except BadInputError as error:
                refused[mechanism] = error
                continue
            tried.add(mechanism)
            finding.add(audit_game(game, effort.paths, effort.most_paths))
    for mechanism in refused.keys() - tried:
        besides = "" if what == mechanism else f", {what}"
        reason = f"refuses every game, {refused[mechanism]}"
        finding.remarks.append(f"{mechanism}{besides}, {name_of(relation)}: {reason}")
    return finding


def workloads(effort: Effort) -> Iterator[tuple[str, Queries, int]]:
    """Yield names, queries, and how many rows the tables have."""
    binary = Domain.binary(2)
    mixed = Domain(np.array([0, 1, 4]))
    signed = Workload(np.array([[0, -1], [0, 2], [1, 3]], np.int32), binary)
    yield "two binary columns", signed, 3
    yield "two marginals", all_marginals(binary, 1), 2
    queries = np.array([[0, -1], [1, 2], [3, 7], [5, -1]], np.int32)
    yield "a binary column and one of three values", Workload(queries, mixed), 2
    if effort.larger:
        yield "parities", Parities(2, 2), 2
