"""The effect of DualQuery's parameters at one guarantee: rounds, samples, step, free attributes,
time limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from dualquery.queries.request import WorkloadRequest
from experiments.contenders import AS_PUBLISHED
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import question_of, release
from experiments.tables import TABLES, table_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPSILON, DELTA = 1.0, 0.001
QUERIES, RUNS = 100_000, 5
ROUNDS = (40, 80, 160, 320, 640, 1_280)
SAMPLES = (5, 15, 60, 250, 1_000)
STEPS = (0.05, 0.1, 0.2, 0.4, 0.65, 1.0, 2.0)
FREE = ("zeros", "coins", "hint")
LIMITS = (20.0, 5.0, 1.0, 0.1, 0.02)
"""Seconds a best response may take; 20 in the paper. They are tried on the paper's game."""
SOLVERS = ("auto", "scip")
"""The default, and an exact solver of the integer program as the paper used one."""
POLICY = "policy"
FEWEST_RUNS = 3
"""With fewer, differences of some percent are noise, and nothing is decided."""

_QUICK_QUERIES, _QUICK_EPSILON = 5_000, 0.1
_QUICK_LIMITS = (20.0, 0.02)


def plan(choices: Choices) -> Sequence[Run]:
    """Vary one parameter at a time; the policy or the budget gives the others."""
    names = choices.options.get("table", ("adult",))
    quick = choices.quick
    variants: list[tuple[str, Any, dict[str, Any]]] = [(POLICY, POLICY, {})]
    variants += [("rounds", value, {"rounds": value}) for value in _thinned(ROUNDS, quick)]
    variants += [("samples", value, {"samples": value}) for value in _thinned(SAMPLES, quick)]
    variants += [("eta", value, {"eta": value}) for value in _thinned(STEPS, quick)]
    variants += [("free", value, {"free": value}) for value in FREE]
    variants += [
        (
            "time limit",
            f"{solver}, {limit:g} s",
            {**AS_PUBLISHED, "solver": solver, "solver_timeout": limit},
        )
        for solver in (SOLVERS[:1] if quick else SOLVERS)
        for limit in (_QUICK_LIMITS if quick else LIMITS)
    ]
    return [
        {
            **table_named(name).parameters(choices),
            "queries": _QUICK_QUERIES if quick else QUERIES,
            "varied": varied,
            "value": str(value),
            "options": options,
            "epsilon": _QUICK_EPSILON if quick else EPSILON,
            "delta": DELTA,
            "seed": seed,
        }
        for name in names
        for varied, value, options in variants
        for seed in choices.seeds(RUNS)
    ]


def _thinned(values: Sequence[Any], quick: bool) -> Sequence[Any]:
    """Return the values, or every third one for a look."""
    return values[1::3] if quick else values


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Release once."""
    asked = question_of(run, WorkloadRequest(queries=run["queries"]), threads)
    found = release(
        asked,
        "dualquery",
        run["seed"],
        epsilon=run["epsilon"],
        delta=run["delta"],
        accountant="zcdp",  # planned in milliseconds, so that a grid of plans is affordable
        options=run["options"],
        threads=threads,
    )
    chosen = found.plan.parameters
    return [
        {
            **found.row(),
            "rounds": chosen["rounds"],
            "samples": chosen["samples"],
            "eta": chosen["eta"],
            "rounds_at_limit": found.rounds_at_limit,
            "rounds_proven": found.outcome.solver["rounds"].get("optimal", 0),
        }
    ]


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return mean errors of every setting, and how often the limit was reached."""
    return table.group_by("data", "varied", "value", maintain_order=True).agg(
        pl.col("rounds", "samples", "eta").first(),
        pl.col("max_error", "mean_error", "seconds").mean(),
        (pl.col("rounds_at_limit").sum() / (pl.col("rounds") - 1).sum()).alias("at limit"),
        (pl.col("rounds_proven").sum() / (pl.col("rounds") - 1).sum()).alias("proven"),
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare the policy with the best of each grid, and the time limits with each other."""
    return [
        finding
        for (name,), lines in table.group_by("data", maintain_order=True)
        for finding in _expect(str(name), summarise(lines), lines["seed"].n_unique() >= FEWEST_RUNS)
    ]


def _expect(name: str, means: pl.DataFrame, decided: bool) -> list[Finding]:
    policy = means.filter(pl.col("varied") == POLICY)["max_error"][0]
    grid = means.filter(pl.col("varied").is_in(["rounds", "samples", "eta"]))
    best = grid.sort("max_error").row(0, named=True)
    free = means.filter(pl.col("varied") == "free").sort("max_error")
    limits = means.filter(pl.col("varied") == "time limit")
    longest = limits.filter(pl.col("value").str.ends_with(", 20 s"))
    return [
        Finding(
            f"{name}: the policy's max error within 15% of the best of the grid",
            f"{policy:.4f} against {best['max_error']:.4f} at {best['varied']} {best['value']} "
            "(the grid is chosen by the error, which a release may not do)",
            policy <= 1.15 * best["max_error"] if decided else None,
        ),
        Finding(
            f"{name}: 0 is a good value for free attributes of sparse tables (Section 6)",
            ", ".join(f"{value} {error:.4f}" for value, error in
                      free.select("value", "max_error").iter_rows()),
            free.filter(pl.col("value") == "zeros")["max_error"][0]
            <= 1.1 * free["max_error"].to_numpy().min()
            if decided
            else None,
        ),
        Finding(
            f"{name}: the limit of 20 s is rarely reached (Section 6)",
            ", ".join(f"{value.partition(',')[0]} in {share:.1%} of the rounds" for value, share in
                      longest.select("value", "at limit").iter_rows()),
            bool((longest["at limit"] <= 0.05).all()),
        ),
        Finding(
            f"{name}: shorter limits cost little error",
            "; ".join(f"{value}: {error:.4f}, reached in {share:.0%}" for value, error, share in
                      limits.select("value", "max_error", "at limit").iter_rows()),
            limits["max_error"].to_numpy().max() <= 1.15 * longest["max_error"].to_numpy().min()
            if decided
            else None,
        ),
    ]  # fmt: skip


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw a panel for each parameter."""
    from experiments.harness import style

    figure, axes = style.panels(2, 3, height=2.2)
    looks = style.curves(table["data"].unique(maintain_order=True).to_list())
    titles = {
        "rounds": "rounds T",
        "samples": "samples a round s",
        "eta": "step eta",
        "free": "free attributes",
        "time limit": "time limit of a best response, the paper's game",
    }
    for panel, (varied, title) in zip(axes, titles.items(), strict=False):
        lines = table.filter(pl.col("varied") == varied)
        numbers = varied in ("rounds", "samples", "eta")
        values = enumerate(lines["value"].unique(maintain_order=True))
        places = {value: float(value if numbers else place) for place, value in values}
        lines = lines.with_columns(
            place=pl.col("value").replace_strict(places, return_dtype=pl.Float64)
        )
        for name, look in looks.items():
            of_one = lines.filter(pl.col("data") == name)
            style.line_with_band(panel, of_one, "place", "max_error", look)
            if varied != "time limit":  # another game, which the policy does not play
                _policy_line(panel, table.filter(pl.col("data") == name), look.look["color"])
        panel.set_xlabel(title)
        panel.set_ylabel("max error (share of rows)")
        panel.set_ylim(0, 1.1 * panel.get_ylim()[1])
        if numbers:
            panel.set_xscale("log")
            panel.set_xticks(list(places.values()), list(places))
            panel.minorticks_off()
        else:
            panel.set_xticks(list(places.values()), list(places), rotation=20, ha="right")
    axes[-1].set_visible(False)
    style.legend_below(figure, axes[:-1], 3)
    return {"parameters": figure}


def _policy_line(panel: Axes, table: pl.DataFrame, color: str) -> None:
    """Draw the error of the policy's own parameters across a panel."""
    error = table.filter(pl.col("varied") == POLICY)["max_error"].to_numpy().mean()
    panel.axhline(error, color=color, linewidth=0.8, linestyle=(0, (1, 3)), label="the policy's")


RECIPE = Recipe(
    name="parameters",
    title="DualQuery: the effect of rounds, samples, step, free attributes and time limits",
    setting=(
        "Every point is (1, 0.001)-private: 100,000 signed 3-way conjunctions, mean of 5 runs. One "
        "parameter is given; the practical policy and the budget set the others (zCDP accounting). "
        "The dotted line is the policy alone. The paper tuned by hand and let CPLEX work 20 s; "
        "time limits are tried on its game (a round's own draws, equal shares). The quick form "
        "asks 5,000 queries, once, at epsilon 0.1."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    options=(Option("table", str, f"Instead of adult: one of {', '.join(TABLES)}."),),
)
