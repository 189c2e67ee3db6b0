"""What the solver study found: a line a solver, expectations, pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from experiments.harness.recipe import Finding
from experiments.solver_problems import instance_name
from solvers.comparison import Measurement
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

FORMULATED = ("cpsat", "scip", "highs", "gurobi", "cplex")
"""Solvers that also know the aggregated formulation, that of the DualQuery paper."""

PLAIN, REDUCED, HINTED, GAME = "as it is", "after reductions", "from a hint", "game"
"""How a solver gets a problem; or a whole game."""


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
    """Return one line a solver and setting: how often, and at a median of how many seconds.

    Of games alone: the errors.
    """
    calls = measurements(table)
    if not calls:
        return table.group_by("solver", "limit", maintain_order=True).agg(
            pl.col("max_error", "mean_error", "seconds", "proven", "stopped").mean()
        )
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
    problems = _expect_problems(table) if measurements(table) else []
    return problems + _expect_games(table)


def _expect_problems(table: pl.DataFrame) -> list[Finding]:
    """Compare the solvers, formulations, reductions and hints on the problems."""
    lines = {line["solver"]: line for line in summarise(table).iter_rows(named=True)}
    plain = {name: line for name, line in lines.items() if ", " not in name}
    exact = [name for name in plain if name.partition(":")[0] in FORMULATED]
    soon = min(plain, key=lambda name: _or(plain[name]["primal integral"], math.inf))
    both = [(name, f"{name}:aggregated") for name in plain if f"{name}:aggregated" in plain]
    findings = [
        Finding(
            "local search, or what begins with it, has good records first (the project's)",
            f"least primal integral {plain[soon]['primal integral']:.3g}: {soon}",
            soon.partition(":")[0] in ("auto", "local-search", "lp"),
        ),
    ]
    findings += [
        Finding(
            f"{name} proves most optima",
            f"{plain[name]['proof']} of {plain[name]['problems']}",
            plain[name]["proof"] > plain[name]["problems"] / 2,
        )
        for name in exact
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
    return findings


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
        means = lines.group_by("limit").agg(pl.col("max_error", "stopped").mean()).sort("limit")
        short, long = means["max_error"][0], means["max_error"][-1]
        listed = ", ".join(
            f"{error:.4f} at {limit:g} s, which stopped {stopped:.0%} of the rounds"
            for limit, error, stopped in means.iter_rows()
        )
        findings.append(
            Finding(
                f"{name}: stopping best responses early hardly changes the error of a release "
                "(section 6 of the DualQuery paper), less than a tenth",
                f"max error {listed}",
                abs(short - long) <= 0.1 * long if means["stopped"][0] > 0 else None,
            )
        )
    return findings


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw performance profiles, primal integrals, and errors of stopped games."""
    from experiments.harness import style

    figures: dict[str, Figure] = {}
    calls = measurements(table)
    if calls:
        figures |= _draw_problems(table, calls)
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


def _draw_problems(table: pl.DataFrame, calls: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw performance profiles and primal integrals."""
    from experiments.harness import style
    from solvers.comparison.plots import performance_profile

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
    return figures
