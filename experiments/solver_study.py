"""Best-response solvers on problems of real games: records, proofs, and what stopping costs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dualquery.errors import BadInputError
from dualquery.queries.request import WorkloadRequest
from experiments.contenders import AS_PUBLISHED
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import question_of, release
from experiments.tables import TABLES, PublicTable, table_named
from solvers.comparison import Measurement, Task, compare
from solvers.comparison.summary import (
    CLOSE,
    EXACT,
    OWN,
    best_known,
    by_instance,
    distance,
    primal_integral,
    proof_time,
    time_to,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from solvers import BestResponse

EPSILON, DELTA = 1.0, 0.001
QUERIES, ROUNDS, SAMPLES = 100_000, (1, 2, 5, 20, 80), 1_000
LIMIT = 20.0
STOPS = (0.1, 1.0, 5.0, 20.0)
"""Seconds a best response may take, for the effect on the error of a release."""
STOPPED = ("cpsat", "scip", "highs", "auto")
FORMULATED = ("cpsat", "scip", "highs", "gurobi", "cplex")
"""Solvers that also know the aggregated formulation, that of the DualQuery paper."""

PLAIN, REDUCED, HINTED, GAME = "as it is", "after reductions", "from a hint", "game"
_LIMIT_SHARES = (1 / 64, 1 / 16, 1 / 4, 1.0)

_QUICK_ROUNDS, _QUICK_LIMIT, _QUICK_QUERIES = (1, 20), 1.0, 20_000
_QUICK_SOLVERS = ("auto", "local-search", "cpsat", "scip")
_QUICK_STOPS, _QUICK_GAME_ROUNDS = (0.02, 0.2), 12


def plan(choices: Choices) -> Sequence[Run]:
    """Give every solver every problem; then play games whose best responses are stopped."""
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
        {**game, "round": number, "groups": groups, "captured": sorted(rounds), "solver": name,
         "setting": setting, "limit": limit, "seed": 1}
        for game in games
        for groups in ((True, False) if _has_groups(game) else (False,))
        for number in rounds
        for name, setting in settings(names, further=not quick or number == max(rounds))
    ]  # fmt: skip
    whole_games: list[Run] = [
        {**games[0], "rounds": _QUICK_GAME_ROUNDS if quick else max(rounds), "solver": name,
         "setting": GAME, "limit": seconds, "seed": seed}
        for name in (STOPPED[:1] if quick else STOPPED)
        for seconds in (_QUICK_STOPS if quick else STOPS)
        for seed in choices.seeds(1)
    ]  # fmt: skip
    parts = {"problems": problems, "games": whole_games}
    wanted = choices.options.get("part") or tuple(parts)
    for part in wanted:
        if part not in parts:
            raise BadInputError(f"--part {part}: the parts are {', '.join(parts)}")
    return [run for part in wanted for run in parts[part]]


def _tables(choices: Choices) -> list[PublicTable]:
    """Return Adult and, in the full form, KDD99 and a wide table as far as they are at hand."""
    if wanted := choices.options.get("table"):
        return [table_named(name) for name in wanted]
    if choices.quick:
        return [TABLES["adult"]]
    wide = "npm-deps" if "npm-deps" in choices.data else "netflix-like"
    names = ("adult", "kdd99", wide)
    return [TABLES[name] for name in names if TABLES[name].at_hand(choices)]


def _has_groups(game: Mapping[str, Any]) -> bool:
    return game["schema"] is not None


def installed() -> tuple[str, ...]:
    """Return the solvers that run here; those of several formulations twice.

    ``exhaustive`` refuses problems of this size, and ``maxsat`` needs a command: ``--solver
    maxsat:COMMAND``.
    """
    from solvers import available_solvers

    known = [each.name for each in available_solvers() if each.installed]
    own = [name for name in known if name not in ("exhaustive", "maxsat")]
    return (*own, *(f"{name}:aggregated" for name in own if name in FORMULATED))


def settings(names: Sequence[str], further: bool) -> list[tuple[str, str]]:
    """Return solvers and how they get a problem.

    Parameters
    ----------
    names
        The solvers.
    further
        Whether reductions and hints are tried, too: with those that do not reduce by themselves.
    """
    exact = [name for name in names if name in FORMULATED] if further else []
    return [(name, PLAIN) for name in names] + [
        (name, setting) for setting in (REDUCED, HINTED) for name in exact
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Compare one solver on one problem, in its own process, or play one game."""
    if run["setting"] == GAME:
        return [play(run, threads)]
    problem = problem_of(run)
    task = Task(instance_name(run), problem, _hint(problem) if run["setting"] == HINTED else None)
    measured = compare(
        [task],
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
                for name, value in asdict(each).items()
                if name not in ("instance", "solver")
            },
        }
        for each in measured
    ]


def play(run: Run, threads: int) -> Row:
    """Play the paper's game with best responses that may take so long; return its errors."""
    asked = question_of(run, WorkloadRequest(queries=run["queries"]), threads)
    options = {
        **AS_PUBLISHED,
        "solver": run["solver"],
        "solver_timeout": run["limit"],
        "rounds": run["rounds"],
        "samples": run["samples"],
    }
    found = release(
        asked, "dualquery", run["seed"], epsilon=EPSILON, delta=DELTA, options=options,
        threads=threads,
    )  # fmt: skip
    ends = [line["status"] for line in found.outcome.trace]
    return {**found.row(), "proven": ends.count("optimal") / len(ends)}


def instance_name(run: Run) -> str:
    """Return the name of a run's problem, that of its file too."""
    return f"{run['data']}-round-{run['round']}{'' if run['groups'] else '-no-groups'}"


def problem_of(run: Run) -> BestResponse:
    """Return a run's problem, from its file; the files of a game are written when one is missing.

    The files, LP and WCNF, are for others too. The former keep everything.
    """
    from solvers import Groups
    from solvers.formats import read_instance

    folder = Path(run["instances"])
    place = folder / f"{instance_name(run)}.lp"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        whole = {**run, "groups": _has_groups(run)}
        for number, problem in game_problems(**_game(run)).items():
            one = {**whole, "round": number}
            _write(folder, instance_name(one), problem)
            if one["groups"]:
                bare = replace(problem, groups=Groups.none())
                _write(folder, instance_name({**one, "groups": False}), bare)
    return read_instance(place).problem


def _game(run: Run) -> dict[str, Any]:
    names = ("source", "schema", "columns", "queries", "samples")
    return {name: run[name] for name in names} | {"rounds": tuple(run["captured"])}


def _write(folder: Path, name: str, problem: BestResponse) -> None:
    """Write both files of a problem, each whole or not at all."""
    from solvers.formats import write_instance

    for ending in ("wcnf", "lp"):
        draft = folder / f"{name}.draft-{os.getpid()}.{ending}"
        write_instance(draft, problem)
        draft.replace(folder / f"{name}.{ending}")


@lru_cache(maxsize=1)
def game_problems(
    source: str,
    schema: str | None,
    columns: str | None,
    queries: int,
    samples: int,
    rounds: tuple[int, ...],
) -> dict[int, BestResponse]:
    """Return the problems of some rounds of a game by local search.

    Round 1 is that of the paper, a uniform sample of the queries and their complements; our game
    needs none.
    """
    from dualquery.data.load import load
    from dualquery.game.capture import captured_rounds
    from dualquery.queries.disjunctions import Disjunctions

    data = load(source, schema, columns)
    workload = WorkloadRequest(queries=queries).build(data.schema, data.n)
    generator = np.random.default_rng(1)
    drawn = generator.integers(len(workload), size=samples)
    signs = generator.choice(np.array([-1, 1], np.int8), samples)
    first = Disjunctions.of(workload).best_response(drawn, signs)
    later = captured_rounds(
        source,
        [number for number in rounds if number > 1],
        options={**AS_PUBLISHED, "rounds": max(*rounds, 2), "samples": samples},
        schema=schema,
        columns=columns,
        queries=queries,
        epsilon=EPSILON,
        delta=DELTA,
        seed=1,
        threads=1,
    )
    return {number: first if number == 1 else later[number] for number in rounds}


def _hint(problem: BestResponse) -> Any:
    """Return the record that local search finds at once."""
    from solvers import get_solver

    return get_solver("local-search").solve(problem, time_limit=LIMIT).record


# --- what was measured ----------------------------------------------------------------------------


def measurements(table: pl.DataFrame) -> list[Measurement]:
    """Return the calls of a table; what a solver got, and how, is its name."""
    found = []
    for line in table.filter(pl.col("setting") != GAME).iter_rows(named=True):
        values: dict[str, Any] = {f.name: line.get(f"call_{f.name}") for f in fields(Measurement)}
        values |= {
            "instance": instance_name(line),
            "solver": _contender(line["solver"], line["setting"]),
            "objective": _or(values["objective"], -math.inf),
            **{n: _or(values[n], math.inf) for n in ("bound", "incumbent_seconds", "seconds")},
        }
        found.append(Measurement(**values))
    return found


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _contender(solver: str, setting: str) -> str:
    return solver if setting == PLAIN else f"{solver}, {setting}"


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return one line a solver and setting: how often, and at a median of how many seconds."""
    calls = measurements(table)
    best = best_known(calls)
    lines = []
    for name in dict.fromkeys(each.solver for each in calls):
        runs = by_instance(each for each in calls if each.solver == name)
        first, close, optimum, proof, integral, gap = ([], [], [], [], [], [])
        for key, run in runs.items():
            own = [each.incumbent_seconds for each in run if each.status in OWN]
            first.append(min(own, default=None))
            close.append(time_to(run, best[key], CLOSE) if key in best else None)
            optimum.append(time_to(run, best[key], EXACT) if key in best else None)
            proof.append(proof_time(run))
            if key in best:
                integral.append(primal_integral(run, best[key], max(e.limit for e in calls)))
                last = run[-1]
                gap.append(distance(last.objective, best[key]) if last.status in OWN else 1.0)
        lines.append(
            {
                "solver": name,
                "problems": len(runs),
                **_times("first record", first),
                **_times("within 1%", close),
                **_times("best known", optimum),
                **_times("proof", proof),
                "primal integral": _mean(integral),
                "gap": _mean(gap),
            }
        )
    return pl.DataFrame(lines, infer_schema_length=None)


def _times(name: str, seconds: Sequence[float | None]) -> dict[str, Any]:
    known = [each for each in seconds if each is not None]
    return {name: len(known), f"{name} (s)": float(np.median(known)) if known else None}


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """State what is expected of solvers, and what was found."""
    lines = {line["solver"]: line for line in summarise(table).iter_rows(named=True)}
    plain = {name: line for name, line in lines.items() if ", " not in name}
    soon = min(plain, key=lambda name: _or(plain[name]["primal integral"], math.inf))
    prover = max(plain, key=lambda name: plain[name]["proof"])
    both = [(name, f"{name}:aggregated") for name in plain if f"{name}:aggregated" in plain]
    findings = [
        Finding(
            "local search, or what begins with it, has good records first (the project's)",
            f"least primal integral {plain[soon]['primal integral']:.3g}: {soon}",
            soon.partition(":")[0] in ("auto", "local-search", "lp"),
        ),
        Finding(
            "an exact solver proves most optima",
            f"{prover} proved {plain[prover]['proof']} of {plain[prover]['problems']}",
            plain[prover]["proof"] > 0,
        ),
    ]
    findings += [
        Finding(
            f"{one}: the disaggregated formulation proves more, or sooner",
            f"{_proofs(plain[one])}; aggregated {_proofs(plain[other])}",
            _rank(plain[one]) <= _rank(plain[other]),
        )
        for one, other in both
    ]
    findings += [
        Finding(
            f"{line['solver']} no worse than without",
            f"primal integral {lines[name]['primal integral']:.3g} without, "
            f"{line['primal integral']:.3g} with; {_proofs(lines[name])} without, "
            f"{_proofs(line)} with",
            line["primal integral"] <= lines[name]["primal integral"],
        )
        for line in lines.values()
        if ", " in line["solver"] and (name := line["solver"].partition(", ")[0]) in lines
        and line["problems"] == lines[name]["problems"]
    ]  # fmt: skip
    return findings + _expect_games(table)


def _proofs(line: Mapping[str, Any]) -> str:
    median = line["proof (s)"]
    return f"{line['proof']} proofs" + (f", median {median:.3g} s" if median is not None else "")


def _rank(line: Mapping[str, Any]) -> tuple[int, float]:
    return -line["proof"], _or(line["proof (s)"], math.inf)


def _expect_games(table: pl.DataFrame) -> list[Finding]:
    """Compare the errors of games with short and long limits."""
    games = table.filter(setting=GAME)
    findings = []
    for (name,), lines in games.group_by("solver", maintain_order=True):
        means = lines.group_by("limit").agg(pl.col("max_error").mean()).sort("limit")
        short, long = means["max_error"][0], means["max_error"][-1]
        listed = ", ".join(f"{error:.4f} at {limit:g} s" for limit, error in means.iter_rows())
        findings.append(
            Finding(
                f"{name}: stopping best responses early hardly changes the error of a release "
                "(section 6 of the DualQuery paper), less than a tenth",
                f"max error {listed}",
                abs(short - long) <= 0.1 * long,
            )
        )
    return findings


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw performance profiles, primal integrals, and errors of stopped games."""
    from experiments.harness import style
    from solvers.comparison.plots import performance_profile

    calls = measurements(table)
    best = best_known(calls)
    names = [n for n in dict.fromkeys(e.solver for e in calls) if ", " not in n]
    runs = {name: by_instance(e for e in calls if e.solver == name) for name in names}
    profile, axes = style.panels(2, 1, 3.0)
    close = {
        name: {key: time_to(run, best[key], CLOSE) for key, run in of_one.items() if key in best}
        for name, of_one in runs.items()
    }
    proof = {name: {k: proof_time(r) for k, r in of_one.items()} for name, of_one in runs.items()}
    for panel, times, title in (
        (axes[0], close, "within 1% of the best known"),
        (axes[1], proof, "proven optimal"),
    ):
        panel.set_prop_cycle(
            color=[style.PALETTE[n % len(style.PALETTE)] for n in range(len(names))],
            linestyle=[style.DASHES[n % len(style.DASHES)] for n in range(len(names))],
        )
        performance_profile(panel, times, title)
        if legend := panel.get_legend():
            legend.remove()
    style.legend_below(profile, axes, 4)
    figures = {"profile": profile}

    lines = summarise(table).drop_nulls("primal integral").sort("primal integral")
    figure, (panel,) = style.panels(1, 1, 0.5 + 0.22 * len(lines))
    panel.barh(lines["solver"].to_list(), lines["primal integral"].to_list(), color=style.BLUE)
    panel.invert_yaxis()
    panel.set_xlabel("primal integral (mean gap over the limit, share)")
    figures["primal-integral"] = figure

    games = table.filter(setting=GAME)
    if len(games):
        figure, (panel,) = style.panels(1, 1)
        for name, look in style.curves(
            games["solver"].unique(maintain_order=True).to_list()
        ).items():
            style.line_with_band(panel, games.filter(solver=name), "limit", "max_error", look)
        panel.set_xscale("log")
        panel.set_xlabel("limit of a best response (s)")
        panel.set_ylabel("max error (share of rows)")
        panel.set_ylim(bottom=0)
        style.legend_below(figure, [panel])
        figures["stopping"] = figure
    return figures


RECIPE = Recipe(
    name="solvers",
    title="Best responses: every solver on the problems of real games",
    setting=(
        "Problems of rounds 1, 2, 5, 20 and 80 of games with 1,000 samples at (1, 0.001) about "
        "100,000 signed 3-way conjunctions: Adult and KDD99 with and without one-hot groups, and "
        "a wide table. Every solver gets each problem with limits of 1/64, 1/16, 1/4 and all of "
        "20 seconds, one thread; the exact ones also in the aggregated formulation of the "
        "DualQuery paper, after our reductions, and from local search's record as a hint. Take "
        "--jobs 1 for times that nothing disturbs. Games: the error of a release whose best "
        "responses are stopped. The problems are in instances/, as LP and WCNF. The quick form: "
        "rounds 1 and 20 of Adult, 20,000 queries, four solvers, 1 second."
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
        Option("part", str, "Only this part: problems or games."),
    ),
)
