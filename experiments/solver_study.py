"""Best-response solvers on problems of real games: records, proofs, and what stopping costs."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError
from experiments.contenders import AS_PUBLISHED, CONTENDERS, OURS, RECOUNTED, Contender
from experiments.data_sets import DataSet, chosen
from experiments.harness.recipe import Choices, Option, Recipe, Row, Run
from experiments.instances.family import BARE, DELTA, EPSILON, QUERIES, ROUNDS, SAMPLES, form_names
from experiments.measuring import question_of, release
from experiments.solver_findings import (
    FORMULATED,
    GAME,
    HINTED,
    PLAIN,
    REDUCED,
    STRENGTH,
    draw,
    expect,
    summarise,
)
from experiments.solver_problems import RULED_ADULT, instance_name, problem_of, ruled_adult
from experiments.weak_solvers import WEAK, weak_solvers
from solvers import BestResponse, available_solvers, get_solver
from solvers.comparison import Measurement, NamedProblem, compare

RANDOM_BITS = DataSet("random-bits", "biased:100000,512000,1")
LIMIT = 20.0
SHORTER = (0.1, 1.0, 5.0)
"""Limits that are tried before it; after a proof no longer one is, as it would change nothing."""
_INNER_SHARE = 1 / 4
"""Share of the limit in all rounds but the first and the last, whose problems are much alike."""
STOPS = (0.1, 1.0, 20.0)
"""Seconds a best response may take, for the effect on the error of a release."""
STOPPED = ("cpsat", "scip", "highs", "auto")
PROVING = "auto:prove"
"""The strongest: minutes a game of ours, so that its games have one seed and a limit of its own."""
STRENGTHS = (*WEAK, "auto:brief", "local-search", "auto", PROVING)
"""Solvers from weak to strong, for the same."""
_STRENGTH_LIMIT, _PROVING_LIMIT = 1.0, 0.25
_SEEDS = {OURS: 2, RECOUNTED: 5}
VARIANTS = ("auto:brief", "auto:fast", "auto:prove", "local-search:anytime")
"""Tried in the last round."""
HINT_SECONDS = 0.1
"""Limit of the local search that finds a hint; its time counts as the hinted solver's."""

_QUICK_ROUNDS = (1, 20)
_QUICK_LIMIT = 1.0
_QUICK_QUERIES = 20_000
_QUICK_SOLVERS = ("auto", "local-search", "cpsat", "scip")
_QUICK_STOPS, _QUICK_GAME_ROUNDS = (0.02, 0.2), 12


def plan(choices: Choices) -> Sequence[Run]:
    """Give every solver every problem; then play games by stopped, weak and strong solvers."""
    tables = [
        {
            **table.parameters(choices),
            "queries": _QUICK_QUERIES if choices.quick else QUERIES,
            "samples": SAMPLES,
            "instances": str(choices.out / "instances"),
        }
        for table in _tables(choices)
    ]
    parts = {"problems": _problems, "games": _stopped, "strength": _strengths}
    wanted = choices.options.get("part") or tuple(parts)
    for part in wanted:
        if part not in parts:
            raise BadInputError(f"--part {part}: the parts are {', '.join(parts)}")
    return [run for part in wanted for run in parts[part](choices, tables)]


def _problems(choices: Choices, tables: Sequence[Run]) -> list[Run]:
    """Return the calls: every solver on every problem."""
    # The first and the last round have the full limit, the form without groups, and all settings.
    names = choices.options.get("solver") or (_QUICK_SOLVERS if choices.quick else installed())
    rounds = choices.options.get("round") or (_QUICK_ROUNDS if choices.quick else ROUNDS)
    limit = choices.options.get("limit", (_QUICK_LIMIT if choices.quick else LIMIT,))[-1]
    if min(rounds) < 1 or not limit > 0:
        raise BadInputError("--round is a number from 1, and --limit is above 0")
    _ = [get_solver(name) for name in names]  # or refuses
    ends = (min(rounds), max(rounds))
    return [
        {**table, "round": number, "form": form, "captured": sorted(rounds), "solver": name,
         "setting": setting, "limit": limit if number in ends else _INNER_SHARE * limit, "seed": 1}
        for table in tables
        for form in form_names(table["schema"] is not None)
        for number in rounds
        if form != BARE or (number in ends and not choices.quick)
        for name, setting in settings(names, further=number == max(rounds))
    ]  # fmt: skip


def _stopped(choices: Choices, tables: Sequence[Run]) -> list[Run]:
    """Return games on the first table whose best responses end early."""
    rounds = _QUICK_GAME_ROUNDS if choices.quick else max(ROUNDS)
    return [
        {**tables[0], "rounds": rounds, "solver": name, "setting": GAME, "limit": seconds,
         "seed": seed}
        for name in (STOPPED[:1] if choices.quick else STOPPED)
        for seconds in (_QUICK_STOPS if choices.quick else STOPS)
        for seed in choices.seeds(1)
    ]  # fmt: skip


def _strengths(choices: Choices, tables: Sequence[Run]) -> list[Run]:
    """Return games by solvers from weak to strong, on tables with groups; Adult with rules, too."""
    grouped = [table for table in tables if table["schema"] is not None]
    ruled = [
        {**table, "data": RULED_ADULT, "schema": RULED_ADULT}
        for table in grouped
        if table["data"] == "adult"
    ]
    return [
        {**table, "setting": STRENGTH, "queries": _QUICK_QUERIES, "contender": label,
         "solver": name, "limit": _PROVING_LIMIT if name == PROVING else _STRENGTH_LIMIT,
         "seed": seed}
        for table in (grouped[:1] if choices.quick else [*grouped, *ruled])
        for label in (OURS, RECOUNTED)
        # Our games take long, on larger tables minutes.
        if label != OURS or (table["source"] == "adult" and not choices.quick)
        for name in (STRENGTHS[:3] if choices.quick else STRENGTHS)
        for seed in choices.seeds(1 if (label, name) == (OURS, PROVING) else _SEEDS[label])
    ]  # fmt: skip


def _tables(choices: Choices) -> list[DataSet]:
    """Return the tables of the games: the random one only if none is named."""
    wide = "npm-deps" if "npm-deps" in choices.data else "netflix-like"
    found = chosen(choices, ("adult", "kdd99", wide))
    every = not choices.quick and not choices.options.get("table")
    return [*found, RANDOM_BITS] if every else found


def installed() -> tuple[str, ...]:
    """Return the solvers that run here; those of several formulations twice.

    ``exhaustive`` refuses problems of this size; ``maxsat`` and ``pb`` need a command: ``--solver
    maxsat:COMMAND``.
    """
    known = [each.name for each in available_solvers() if each.installed]
    own = [name for name in known if name not in ("exhaustive", "maxsat", "pb")]
    return (*own, *(f"{name}:aggregated" for name in own if name in FORMULATED))


def settings(names: Sequence[str], further: bool) -> list[tuple[str, str]]:
    """Return solvers and how they get a problem.

    If ``further``, also variants, and those that do not reduce by themselves after reductions and
    from hints.
    """
    exact = [name for name in names if name in FORMULATED] if further else []
    also = [name for name in VARIANTS if name.partition(":")[0] in names] if further else []
    return [(name, PLAIN) for name in (*names, *also)] + [
        (name, setting) for setting in (REDUCED, HINTED) for name in exact
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Compare one solver on one problem, in its own process, or play one game."""
    if run["setting"] in (GAME, STRENGTH):
        return [play(run, threads)]
    problem = problem_of(run)
    hint, spent = _hint(problem) if run["setting"] == HINTED else (None, 0.0)
    named = NamedProblem(instance_name(run), problem, hint)
    limits = [*(each for each in SHORTER if each < run["limit"]), run["limit"]]
    measured = compare(
        [named],
        [run["solver"]],
        run["limit"],
        shares=[each / run["limit"] for each in limits],
        reduced=run["setting"] == REDUCED,
    )
    return [
        {
            "attributes": problem.attributes,
            "terms": len(problem.terms),
            **{
                f"call_{name}": None if isinstance(value, float) and math.isinf(value) else value
                for name, value in asdict(_later(each, spent)).items()
                if name not in ("instance", "solver")
            },
        }
        for each in measured
    ]


def _later(call: Measurement, seconds: float) -> Measurement:
    """Return a call that had to wait for its hint."""
    return replace(
        call, incumbent_seconds=call.incumbent_seconds + seconds, seconds=call.seconds + seconds
    )


def play(run: Run, threads: int) -> Row:
    """Play a game by one solver, whose best responses may take so long; return its errors."""
    if run["schema"] == RULED_ADULT:
        run = {**run, "schema": str(ruled_adult(Path(run["instances"])))}
    asked = question_of(run, threads)
    with weak_solvers():
        found = release(asked, _contender(run), run["seed"], epsilon=EPSILON, delta=DELTA,
                        threads=threads)  # fmt: skip
    ends = [line["status"] for line in found.outcome.trace]
    return {
        **found.row(),
        "proven": ends.count("optimal") / len(ends),
        "stopped": found.rounds_at_limit / len(ends),
    }


def _contender(run: Run) -> Contender:
    """Return the game of a run: rounds and samples are the policy's where weakness is asked for."""
    solver = {"solver": run["solver"], "solver_timeout": run["limit"]}
    if run["setting"] == STRENGTH:
        known = CONTENDERS[run["contender"]]
        return replace(known, options={**known.options, **solver})
    given = {"rounds": run["rounds"], "samples": run["samples"]}
    return Contender("dualquery", options={**AS_PUBLISHED, **solver, **given})


def _hint(problem: BestResponse) -> tuple[NDArray[np.uint8], float]:
    """Return the record that local search finds at once, and the seconds it took."""
    found = get_solver("local-search").solve(problem, time_limit=HINT_SECONDS)
    return found.record, found.seconds


RECIPE = Recipe(
    name="solvers",
    title="Best responses: every solver on the problems of real games",
    setting=(
        "Problems of rounds 1, 2, 5, 20 and 80 of games with 1,000 samples at (1, 0.001) about "
        "100,000 signed 3-way conjunctions: Adult, KDD99, a wide table, and 512,000 random bits; "
        "each also with 60 rules between its columns, and the first two, in rounds 1 and 80, "
        "without their one-hot groups. Every solver gets each problem, one thread, with limits of "
        "0.1, 1 and 5 seconds, in rounds 1 and 80 also 20, up to its first proof; the exact ones "
        "also in the aggregated formulation of the DualQuery paper and, in round 80, after our "
        "reductions and from local search's record as a hint, whose time is counted. Take --jobs 1 "
        "for times that nothing disturbs. Games: the error of a release whose best responses are "
        "stopped or, about 20,000 queries, found by weaker and stronger solvers, at equal privacy, "
        "on Adult also with rules between its columns. The problems are in instances/, as LP. "
        "The quick form: rounds 1 and 20 of Adult with groups, 20,000 queries, four solvers, 1 s."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    options=(
        Option("table", str, "Only this table, as for figure2."),
        Option("round", int, "Only this round."),
        Option("solver", str, "Only this solver, as for `dualquery solve`."),
        Option("limit", float, "Seconds instead of 20."),
        Option("part", str, "Only this part: problems, games or strength."),
    ),
)
