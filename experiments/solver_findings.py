"""What the solver study found: a line a solver, expectations, pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from experiments.comparing import means, tables
from experiments.harness.recipe import Finding
from experiments.parameters import FEWEST_RUNS
from experiments.solver_problems import instance_name
from experiments.weak_solvers import WEAK
from solvers.comparison import Measurement
from solvers.comparison import summarise as summaries
from solvers.comparison.summary import best_known, by_instance, primal_integral

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMULATED = ("cpsat", "scip", "highs", "gurobi", "cplex")
"""Solvers that also know the aggregated formulation, that of the DualQuery paper."""

PLAIN, REDUCED, HINTED = "as it is", "after reductions", "from a hint"
"""How a solver gets a problem."""
GAME, STRENGTH = "game", "strength"
"""Whole games: stopped early, and by solvers from weak to strong."""


_MIDDLING = "local-search"
"""The solver that weaker and stronger ones are held against."""


def measurements(table: pl.DataFrame) -> list[Measurement]:
    """Return the calls of a table; what a solver got, and how, is its name."""
    found = []
    for line in table.filter(~pl.col("setting").is_in([GAME, STRENGTH])).iter_rows(named=True):
        values: dict[str, Any] = {f.name: line.get(f"call_{f.name}") for f in fields(Measurement)}
        plain = line["setting"] == PLAIN
        values |= {
            "instance": instance_name(line),
            "solver": line["solver"] if plain else f"{line['solver']}, {line['setting']}",
            "objective": _or(values["objective"], -math.inf),
            **{n: _or(values[n], math.inf) for n in ("bound", "incumbent_seconds", "seconds")},
        }
        found.append(Measurement(**values))
    return found


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return a line a solver and setting, with its primal integral; of games alone, the errors."""
    if not (calls := measurements(table)):
        of = ("max_error", "mean_error", "seconds", "proven", "stopped")
        by = ("setting", "data", "contender", "solver", "limit")
        return means(*(name for name in by if name in table.columns), of=of)(table)
    return pl.DataFrame(_lines(calls, best_known(calls)), infer_schema_length=None)


def _lines(calls: Sequence[Measurement], best: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return what a solver did on its problems, one line each."""
    limit = max(each.limit for each in calls)
    lines = []
    for summary in summaries(calls):
        runs = by_instance(each for each in calls if each.solver == summary.solver)
        integrals = [primal_integral(r, best[key], limit) for key, r in runs.items() if key in best]
        integral = fmean(integrals) if integrals else None
        lines.append({**asdict(summary), "primal_integral": integral})
    return lines


def _compared(
    calls: Sequence[Measurement], best: Mapping[str, float], names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the lines of some solvers on the problems that all of them were given."""
    given = [{each.instance for each in calls if each.solver == name} for name in names]
    common = set.intersection(*given)
    found = _lines(
        [each for each in calls if each.solver in names and each.instance in common], best
    )
    return sorted(found, key=lambda line: names.index(line["solver"]))


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare solvers, formulations, reductions and hints; then games by stops and by solvers."""
    problems = _expect_problems(table) if measurements(table) else []
    games = tables(table.filter(setting=GAME), "solver")
    return [
        *problems,
        *(_expect_game(name, lines) for name, lines in games),
        *(
            finding
            for name, of_table in tables(table.filter(setting=STRENGTH))
            for label, lines in tables(of_table, "contender")
            for finding in _expect_strength(f"{name}, {label}", lines)
        ),
    ]


def _expect_problems(table: pl.DataFrame) -> list[Finding]:
    calls = measurements(table)
    best = best_known(calls)
    lines = {line["solver"]: line for line in _lines(calls, best)}
    every = max(line["instances"] for line in lines.values())
    plain = {name: line for name, line in lines.items() if line["instances"] == every}
    exact = [name for name in plain if name.partition(":")[0] in FORMULATED]
    soon = min(plain, key=lambda name: _or(plain[name]["primal_integral"], math.inf))
    findings = [
        Finding(
            "local search, or what begins with it, has good records first (the project's)",
            f"least primal integral {plain[soon]['primal_integral']:.3g}: {soon}",
            soon.partition(":")[0] in ("auto", "local-search"),
        ),
    ]
    findings += [
        Finding(
            f"{name} proves most optima",
            f"{plain[name]['proven']} of {plain[name]['instances']}",
            plain[name]["proven"] > plain[name]["instances"] / 2,
        )
        for name in exact
    ]
    for other in lines:
        name = other.removesuffix(":aggregated").partition(", ")[0]
        if name == other or name not in lines:
            continue
        one, line = _compared(calls, best, (name, other))
        aggregated = other.endswith(":aggregated")
        findings.append(
            Finding(
                f"{name}: the disaggregated formulation proves more, or sooner"
                if aggregated
                else f"{other} no worse than without",
                f"{_shown(one)}; {other}: {_shown(line)}; of {line['instances']}",
                _rank(one) <= _rank(line)
                if aggregated
                else line["primal_integral"] <= one["primal_integral"],
            )
        )
    return findings


def _shown(line: Mapping[str, Any]) -> str:
    mean = line["proof_seconds"]
    proofs = f"{line['proven']} proofs" + (f", mean {mean:.3g} s" if mean is not None else "")
    return f"primal integral {line['primal_integral']:.3g}, {proofs}"


def _rank(line: Mapping[str, Any]) -> tuple[int, float]:
    return -line["proven"], _or(line["proof_seconds"], math.inf)


def _expect_game(name: str, lines: pl.DataFrame) -> Finding:
    means = lines.group_by("limit").agg(pl.col("max_error", "stopped").mean()).sort("limit")
    short, long = means["max_error"][0], means["max_error"][-1]
    decided = means["stopped"][0] > 0 and lines["seed"].n_unique() >= FEWEST_RUNS
    listed = ", ".join(
        f"{error:.4f} at {limit:g} s, which stopped {stopped:.0%} of the rounds"
        for limit, error, stopped in means.iter_rows()
    )
    return Finding(
        f"{name}: stopping best responses early hardly changes the error of a release "
        "(section 6 of the DualQuery paper), less than a tenth",
        f"max error {listed}",
        abs(short - long) <= 0.1 * long if decided else None,
    )


def _expect_strength(where: str, lines: pl.DataFrame) -> list[Finding]:
    """Compare the errors of releases by solvers weaker and stronger than the local search."""
    averages = lines.group_by("solver", maintain_order=True).agg(
        pl.col("max_error", "mean_error").mean()
    )
    errors = {name: (highest, mean) for name, highest, mean in averages.iter_rows()}
    if (known := errors.get(_MIDDLING)) is None:
        return []
    weaker = {name: error for name, error in errors.items() if name in WEAK}
    stronger = {
        name: error for name, error in errors.items() if name not in WEAK and name != _MIDDLING
    }
    parts = (
        ("without a search the max error is a tenth larger or more", weaker, (1.1, math.inf)),
        ("proofs change the max error by less than a tenth", stronger, (0.9, 1.1)),
    )
    return [
        Finding(
            f"{where}: {expected} (the project's)",
            f"max / mean error {_errors(others)}; {_errors({_MIDDLING: known})}",
            all(low <= highest / known[0] <= high for highest, _ in others.values()),
        )
        for expected, others, (low, high) in parts
        if others
    ]


def _errors(of: Mapping[str, tuple[float, float]]) -> str:
    return ", ".join(f"{name} {highest:.4f} / {mean:.5f}" for name, (highest, mean) in of.items())


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw performance profiles, primal integrals, and errors of stopped games."""
    from experiments.harness import style

    figures: dict[str, Figure] = {}
    if calls := measurements(table):
        figures |= _draw_problems(table, calls)
    if len(games := table.filter(setting=GAME)):
        chart = style.Chart(
            table=games, x="limit", y="max_error", by="solver",
            looks=style.curves(games["solver"].unique(maintain_order=True)),
            xlabel="limit of a best response (s)", scales=("log", "linear"),
        )  # fmt: skip
        figures["stopping"] = style.picture([chart], 1)
    if len(strengths := table.filter(setting=STRENGTH)):
        figures["strength"] = _draw_strengths(strengths)
    return figures


def _draw_strengths(table: pl.DataFrame) -> Figure:
    """Draw the max error by solver, from weak to strong: a panel a table, a curve a game."""
    from experiments.harness import style

    parts = tables(table)
    errors = table["max_error"].to_numpy()
    looks = style.curves(table["contender"].unique(maintain_order=True))
    figure, panels = style.panels(len(parts), 1, 2.6)
    for panel, (name, of_table) in zip(panels, parts, strict=True):
        for label, lines in tables(of_table, "contender"):
            found = lines.group_by("solver", maintain_order=True).agg(pl.col("max_error").mean())
            panel.plot(found["solver"].to_list(), found["max_error"].to_list(), **looks[label].look)
        panel.set_title(name)
        panel.set_yscale("log")
        panel.set_ylabel("max error")
        panel.set_ylim(0.8 * errors.min(), 1.25 * errors.max())
        panel.tick_params(axis="x", rotation=90)
    style.legend_below(figure, panels, 2)
    return figure


def _draw_problems(table: pl.DataFrame, calls: Sequence[Measurement]) -> dict[str, Figure]:
    """Draw performance profiles and primal integrals of the solvers that had every problem."""
    from experiments.harness import style
    from solvers.comparison.plots import performance_profiles

    profile, axes = style.panels(2, 1, 3.0)
    lines = summarise(table).drop_nulls("primal_integral").sort("primal_integral")
    lines = lines.filter(pl.col("instances") == pl.col("instances").max())
    names = lines["solver"].to_list()
    plain = [each for each in calls if each.solver in names]
    again = (*style.DASHES[1:], style.DASHES[0])  # colours come twice, with other dashes
    for panel in axes:
        panel.set_prop_cycle(color=2 * style.PALETTE, linestyle=(*style.DASHES, *again))
    performance_profiles(axes, plain, best_known(calls))
    for panel in axes:
        if legend := panel.get_legend():
            legend.remove()
    style.legend_below(profile, axes, 4)
    figures = {"profile": profile}

    figure, (panel,) = style.panels(1, 1, 0.5 + 0.22 * len(lines))
    panel.plot(lines["primal_integral"].to_list(), names, "o", color=style.BLUE)
    panel.set_xscale("log")
    panel.invert_yaxis()
    panel.set_xlabel("primal integral (mean gap over the limit, share)")
    figures["primal-integral"] = figure
    return figures
