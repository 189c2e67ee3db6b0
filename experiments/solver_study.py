"""Best-response solvers on problems of real games: records, proofs, and what stopping costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from dualquery.runtime.errors import BadInputError
from experiments.contenders import AS_PUBLISHED, CONTENDERS, OURS, RECOUNTED, Contender
from experiments.data_sets import DataSet, chosen
from experiments.harness.recipe import Choices, Option, Recipe, Row, Run
from experiments.instances.forms import form_names
from experiments.instances.games import DELTA, EPSILON
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
from experiments.solver_problems import instance_name, problem_of
from experiments.weak_solvers import WEAK, weak_solvers
from solvers.comparison import Measurement, NamedProblem, compare

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from solvers import BestResponse

QUERIES, ROUNDS, SAMPLES = 100_000, (1, 2, 5, 20, 80), 1_000
RANDOM_BITS = DataSet("random-bits", "biased:100000,512000,1")
LIMIT = 20.0
STOPS = (0.1, 1.0, 5.0, 20.0)
"""Seconds a best response may take, for the effect on the error of a release."""
STOPPED = ("cpsat", "scip", "highs", "auto")
STRENGTHS = (*WEAK, "local-search", "auto:brief", "auto", "auto:prove")
"""Solvers from weak to strong, for the same."""
_STRENGTH_LIMIT, _STRENGTH_SEEDS = 1.0, 3
HINT_SECONDS = 0.1
"""Limit of the local search that finds a hint; its time counts as the hinted solver's."""
_LIMIT_SHARES = (1 / 64, 1 / 16, 1 / 4, 1.0)

_QUICK_ROUNDS, _QUICK_LIMIT, _QUICK_QUERIES = (1, 20), 1.0, 20_000
_QUICK_SOLVERS = ("auto", "local-search", "cpsat", "scip")
_QUICK_STOPS, _QUICK_GAME_ROUNDS = (0.02, 0.2), 12


def plan(choices: Choices) -> Sequence[Run]:
    """Give every solver every problem; then play games by stopped, weak and strong solvers."""
    quick = choices.quick
    names = choices.options.get("solver") or (_QUICK_SOLVERS if quick else installed())
    rounds = choices.options.get("round") or (_QUICK_ROUNDS if quick else ROUNDS)
    limit = choices.options.get("limit", (_QUICK_LIMIT if quick else LIMIT,))[-1]
    games = [
        {
            **table.parameters(choices),
            "queries": _QUICK_QUERIES if quick else QUERIES,
            "samples": SAMPLES,
            "instances": str(choices.out / "instances"),
        }
        for table in _tables(choices)
    ]
    problems: list[Run] = [
        {**game, "round": number, "form": form, "captured": sorted(rounds), "solver": name,
         "setting": setting, "limit": limit, "seed": 1}
        for game in games
        for form in form_names(game["schema"] is not None)
        for number in rounds
        for name, setting in settings(names, further=number == max(rounds))
    ]  # fmt: skip
    whole_games: list[Run] = [
        {**games[0], "rounds": _QUICK_GAME_ROUNDS if quick else max(rounds), "solver": name,
         "setting": GAME, "limit": seconds, "seed": seed}
        for name in (STOPPED[:1] if quick else STOPPED)
        for seconds in (_QUICK_STOPS if quick else STOPS)
        for seed in choices.seeds(1)
    ]  # fmt: skip
    strengths: list[Run] = [
        {**game, "contender": label, "solver": name, "setting": STRENGTH,
         "limit": _STRENGTH_LIMIT, "seed": seed}
        for game in games
        if game["schema"] is not None
        for label in (RECOUNTED, OURS)
        for name in (STRENGTHS[:3] if quick else STRENGTHS)
        for seed in choices.seeds(_STRENGTH_SEEDS)
    ]  # fmt: skip
    parts = {"problems": problems, "games": whole_games, "strength": strengths}
    wanted = choices.options.get("part") or tuple(parts)
    for part in wanted:
        if part not in parts:
            raise BadInputError(f"--part {part}: the parts are {', '.join(parts)}")
    return [run for part in wanted for run in parts[part]]


def _tables(choices: Choices) -> list[DataSet]:
    """Return the tables of the games: the random one only if none is named."""
    found = chosen(choices, ("adult", "kdd99", _wide(choices)))
    every = not choices.quick and not choices.options.get("table")
    return [*found, RANDOM_BITS] if every else found


def _wide(choices: Choices) -> str:
    return "npm-deps" if "npm-deps" in choices.data else "netflix-like"


def installed() -> tuple[str, ...]:
    """Return the solvers that run here; those of several formulations twice.

    ``exhaustive`` refuses problems of this size; ``maxsat`` and ``pb`` need a command: ``--solver
    maxsat:COMMAND``.
    """
    from solvers import available_solvers

    known = [each.name for each in available_solvers() if each.installed]
    own = [name for name in known if name not in ("exhaustive", "maxsat", "pb")]
    return (*own, *(f"{name}:aggregated" for name in own if name in FORMULATED))


def settings(names: Sequence[str], further: bool) -> list[tuple[str, str]]:
    """Return solvers and how they get a problem.

    If ``further``, those that do not reduce by themselves also try reductions and hints.
    """
    exact = [name for name in names if name in FORMULATED] if further else []
    return [(name, PLAIN) for name in names] + [
        (name, setting) for setting in (REDUCED, HINTED) for name in exact
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Compare one solver on one problem, in its own process, or play one game."""
    if run["setting"] in (GAME, STRENGTH):
        return [play(run, threads)]
    problem = problem_of(run)
    hint, spent = _hint(problem) if run["setting"] == HINTED else (None, 0.0)
    named = NamedProblem(instance_name(run), problem, hint)
    measured = compare(
        [named],
        [run["solver"]],
        run["limit"],
        shares=_LIMIT_SHARES,
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
        call,
        incumbent_seconds=call.incumbent_seconds + seconds,
        seconds=call.seconds + seconds,
    )


def play(run: Run, threads: int) -> Row:
    """Play a game by one solver, whose best responses may take so long; return its errors."""
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
    from solvers import get_solver

    found = get_solver("local-search").solve(problem, time_limit=HINT_SECONDS)
    return found.record, found.seconds


RECIPE = Recipe(
    name="solvers",
    title="Best responses: every solver on the problems of real games",
    setting=(
        "Problems of rounds 1, 2, 5, 20 and 80 of games with 1,000 samples at (1, 0.001) about "
        "100,000 signed 3-way conjunctions: Adult and KDD99 with and without one-hot groups, a "
        "wide table, and 512,000 random bits; each also with 60 rules between its columns. Every "
        "solver gets each problem with limits of 1/64, 1/16, 1/4 and all of 20 seconds, one "
        "thread; the exact ones also in the aggregated formulation of the DualQuery paper and, in "
        "the last round, after our reductions and from local search's record as a hint, whose "
        "time is counted. Take --jobs 1 for times that nothing disturbs. Games: the error of a "
        "release whose best responses are stopped, or found by weaker and stronger solvers, at "
        "equal privacy. The problems are in instances/, as WCNF. "
        "The quick form: rounds 1 and 20 of Adult, 20,000 queries, four solvers, 1 second."
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
