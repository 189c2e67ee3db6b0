"""DualQuery's parameters at one guarantee: each by itself, and the policy against a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dualquery.mechanisms.dualquery.game import DualQuery
from dualquery.requests import BudgetRequest
from experiments.comparing import means, tables
from experiments.contenders import AS_PUBLISHED, BEST, OURS, Contender, specified
from experiments.data_sets import DATA_SETS, DataSet, chosen
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import perform, question_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, DELTA = 1.0, 0.001
ACCOUNTANT = "zcdp"
"""Plans in milliseconds, so that a grid of plans is affordable."""
WITHIN = 1.15
"""The policy's error, at most, over that of the best of a grid."""
QUERIES, RUNS = 100_000, 5
ROUNDS = (40, 80, 160, 320, 640, 1_280)
SAMPLES = (5, 15, 60, 250, 1_000)
STEPS = (0.05, 0.1, 0.2, 0.4, 0.65, 1.0, 2.0)
FREE = ("zeros", "coins", "hint")
SPARSE = DataSet("netflix-like, 2,000 columns", "netflix-like:50000,2000,1")
"""Where free attributes matter: columns of one bit each, nearly all 0, and positive queries."""
LIMITS = (20.0, 5.0, 1.0, 0.1, 0.02)
"""Seconds a best response may take; 20 in the paper. They are tried on the paper's game."""
SOLVERS = ("auto", "scip")
"""The default, and an exact solver of the integer program as the paper used one."""
_POLICY = "policy"
FEWEST_RUNS = 3
"""With fewer, differences of some percent are noise, and nothing is decided."""

_QUICK_QUERIES, _QUICK_EPSILON = 5_000, 0.1
_QUICK_LIMITS = (20.0, 0.02)
_QUICK_SPARSE = DataSet("netflix-like, 500 columns", "netflix-like:5000,500,1")


def plan(choices: Choices) -> Sequence[Run]:
    """Vary one parameter at a time; the policy or the budget gives the others."""
    quick = choices.quick
    variants: list[tuple[str, Any, dict[str, Any]]] = [
        (_POLICY, _POLICY, {}),
        *(
            (name, value, {name: value})
            for name, values in (("rounds", ROUNDS), ("samples", SAMPLES), ("eta", STEPS))
            for value in (values[1::3] if quick else values)
        ),
        *(
            (
                "time limit",
                f"{solver}, {limit:g} s",
                {**AS_PUBLISHED, "solver": solver, "solver_timeout": limit},
            )
            for solver in (SOLVERS[:1] if quick else SOLVERS)
            for limit in (_QUICK_LIMITS if quick else LIMITS)
        ),
    ]
    tried = [
        ({**table.parameters(choices), "signed": True}, variant)
        for table in chosen(choices, ("adult",))
        for variant in variants
    ]
    sparse = {**(_QUICK_SPARSE if quick else SPARSE).parameters(choices), "signed": False}
    tried += [(sparse, ("free", value, {"free": value})) for value in FREE]
    return [
        {
            **table,
            "queries": _QUICK_QUERIES if quick else QUERIES,
            "varied": varied,
            "value": str(value),
            "contenders": {OURS: asdict(Contender("dualquery", ACCOUNTANT, options))},
            "epsilons": [_QUICK_EPSILON if quick else EPSILON],
            "delta": DELTA,
            "seed": seed,
        }
        for table, (varied, value, options) in tried
        for seed in choices.seeds(RUNS)
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
    decided = table["seed"].n_unique() >= FEWEST_RUNS
    free = summarise(table.filter(varied="free")).sort("max_error")
    listed = free.select("value", "max_error").iter_rows()
    good = free.filter(value="zeros")["max_error"][0] <= 1.1 * free["max_error"][0]
    return [
        finding
        for name, lines in tables(table.filter(pl.col("varied") != "free"))
        for finding in _expect(name, summarise(lines), decided)
    ] + [
        Finding(
            "0 is a good value for free attributes of sparse tables (Section 6)",
            ", ".join(f"{value} {error:.4f}" for value, error in listed),
            good if decided else None,
        )
    ]


def _expect(name: str, means: pl.DataFrame, decided: bool) -> list[Finding]:
    policy = means.filter(varied=_POLICY)["max_error"][0]
    grid = means.filter(pl.col("varied").is_in(["rounds", "samples", "eta"]))
    best = grid.sort("max_error").row(0, named=True)
    limits = means.filter(varied="time limit")
    longest = limits.filter(pl.col("value").str.ends_with(", 20 s"))
    return [
        Finding(
            f"{name}: the policy's max error within 15% of the best of the grid",
            f"{policy:.4f} against {best['max_error']:.4f} at {best['varied']} {best['value']} "
            "(the grid is chosen by the error, which a release may not do)",
            policy <= WITHIN * best["max_error"] if decided else None,
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
            limits["max_error"].to_numpy().max() <= WITHIN * longest["max_error"].to_numpy().min()
            if decided else None,
        ),
    ]  # fmt: skip


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw a panel for each parameter."""
    from experiments.harness import style

    names = table["data"].unique(maintain_order=True).to_list()
    looks = style.curves([*names, *SOLVERS])
    numbers = table.with_columns(value=pl.col("value").cast(pl.Float64, strict=False))
    limits = table.filter(varied="time limit", data=names[0]).with_columns(
        solver=pl.col("value").str.extract("^(.*), "),
        value=pl.col("value").str.extract(", (.*) s$").cast(pl.Float64),
    )
    policy = table.filter(varied=_POLICY, data=names[0])["max_error"].to_numpy().mean()
    figure, axes = style.panels(2, 3, height=2.2)
    for panel, (lines, by, xlabel) in zip(
        axes,
        [
            (numbers.filter(varied="rounds"), "data", "rounds T"),
            (numbers.filter(varied="samples"), "data", "samples a round s"),
            (numbers.filter(varied="eta"), "data", "step eta"),
            (limits, "solver", "time limit of a best response (s), the paper's game"),
        ],
        strict=False,
    ):
        style.Chart(
            table=lines, x="value", y="max_error", by=by, looks=looks, xlabel=xlabel,
            ticks=lines["value"].unique().sort().to_list(), scales=("log", "linear"),
            levels=[("the policy's", policy)] if by == "data" else (),
        ).draw(panel)  # fmt: skip
    for name, errors in tables(table.filter(varied="free")):
        axes[4].plot(
            errors["value"].to_list(), errors["max_error"].to_list(), **looks[name].unjoined
        )
    axes[4].set(xlabel="free attributes", ylabel=axes[0].get_ylabel())
    for panel in axes[:-1]:
        panel.set_ylim(0, 1.1 * panel.get_ylim()[1])
    axes[-1].set_visible(False)
    style.legend_below(figure, axes[:-1], 3)
    return {"parameters": figure}


RECIPE = Recipe(
    name="parameters",
    title="DualQuery: the effect of rounds, samples, step, free attributes and time limits",
    setting=(
        "Every point is (1, 0.001)-private: 100,000 signed 3-way conjunctions. One parameter is "
        "given; the practical policy and the budget set the others (zCDP accounting). The dotted "
        "line is the policy alone, whose constants were chosen on tables like these. Free "
        "attributes are tried on a generated sparse table (netflix-like), with positive queries: "
        "one-hot columns leave none free. The paper tuned by hand and gave CPLEX 20 s; time limits "
        "are tried on its game (a round's own draws, equal shares). The quick form asks 5,000 "
        "queries at epsilon 0.1."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    options=(Option("table", str, f"Instead of adult: one of {', '.join(DATA_SETS)}."),),
)


# --- the policy against a grid -------------------------------------------------------------------

FACTORS = (
    (1.0, 1.0), (0.5, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 2.0), (2.0, 2.0), (0.5, 0.5), (2.0, 0.5),
    (0.5, 2.0),
)  # fmt: skip
"""Rounds and samples a round of the grid, in units of the policy's; the first is the policy."""


def plan_policy(choices: Choices) -> Sequence[Run]:
    """Play the policy and its neighbours on every table at hand."""
    return [
        {
            **table.parameters(choices),
            "queries": _QUICK_QUERIES if choices.quick else QUERIES,
            "rounds_factor": rounds,
            "samples_factor": samples,
            "epsilons": [_QUICK_EPSILON if choices.quick else EPSILON],
            "delta": DELTA,
            "seed": seed,
        }
        for table in chosen(choices, ("adult", "plants", "mushroom", "groceries", "msweb"))
        for rounds, samples in (FACTORS[:3] if choices.quick else FACTORS)
        for seed in choices.seeds(3)
    ]


def perform_policy(run: Run, threads: int) -> Sequence[Row]:
    """Plan with the policy, and release with its rounds and samples times the factors.

    The policy's own run releases with the default mechanism, too.
    """
    wanted = BudgetRequest(epsilon=run["epsilons"][0], delta=run["delta"], accountant=ACCOUNTANT)
    policy = question_of(run, threads).plan(DualQuery(), wanted).parameters
    options = {
        "rounds": max(2, round(policy["rounds"] * run["rounds_factor"])),
        "samples": max(1, round(policy["samples"] * run["samples_factor"])),
    }
    contenders = {OURS: asdict(Contender("dualquery", ACCOUNTANT, options))}
    if (run["rounds_factor"], run["samples_factor"]) == FACTORS[0]:
        contenders |= specified((BEST,))
    return perform({**run, "contenders": contenders}, threads)


summarise_policy = means(
    "data", "contender", "rounds_factor", "samples_factor",
    of=("max_error", "mean_error", "seconds"), first=("rounds", "samples", "eta"),
)  # fmt: skip
"""Mean errors of every point of the grid, the policy first, and of the default mechanism."""


def expect_policy(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare the policy with the best of the grid on each table."""
    decided = table["seed"].n_unique() >= FEWEST_RUNS
    return [
        Finding(
            f"{name}: {kind.replace('_', ' ')} of the policy within 15% of the grid's best",
            f"{ratio:.2f} times the grid's smallest",
            ratio <= WITHIN if decided else None,
        )
        for name, lines in tables(summarise_policy(table).filter(contender=OURS))
        for kind in ("max_error", "mean_error")
        for ratio in [float(lines[kind][0] / lines[kind].to_numpy().min())]
    ]


def draw_policy(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw the errors of the grid in units of the policy's."""
    from experiments.harness import style

    figure, axes = style.panels(1, 2)
    lines = summarise_policy(table)
    looks = style.curves(lines["data"].unique(maintain_order=True))
    for panel, kind in zip(axes, ("max error", "mean error"), strict=True):
        for name, of_one in tables(lines):
            column = kind.replace(" ", "_")
            errors = of_one.filter(contender=OURS)[column].to_numpy()
            best = of_one.filter(contender=BEST)[column].to_numpy()
            panel.plot(
                range(len(errors) + 1), np.append(errors, best) / errors[0], **looks[name].unjoined
            )
        grid = (
            lines.filter(contender=OURS).select(pl.col("^.*_factor$")).unique(maintain_order=True)
        )
        labels = [f"{rounds:g} x {samples:g}" for rounds, samples in grid.iter_rows()] + [BEST]
        panel.set_xticks(range(len(labels)), labels, rotation=40, ha="right")
        panel.set(xlabel="rounds x samples, in units of the policy's", ylabel=f"{kind} / policy's")
        panel.axhline(1.0 / WITHIN, color="0.6", linewidth=0.8, linestyle=(0, (1, 3)))
    style.legend_below(figure, axes, 3)
    return {"policy": figure}


POLICY = Recipe(
    name="policy",
    title="DualQuery: the practical policy against the best of a grid",
    setting=(
        "(1, 0.001)-private, 100,000 signed 3-way conjunctions, neighbours replace one row. Rounds "
        "and samples a round are the policy's times the factors below, the step spends the budget "
        "(zCDP accounting). Below the dotted line a point of the grid is more than 15% better than "
        "the policy. On the right is auto, the default. The policy's constants were chosen on the "
        "first four of these tables, msweb is one it had not seen. The quick form asks 5,000 "
        "queries about Adult at epsilon 0.1."
    ),
    plan=plan_policy,
    perform=perform_policy,
    summarise=summarise_policy,
    expect=expect_policy,
    draw=draw_policy,
    options=(Option("table", str, f"One of {', '.join(DATA_SETS)}; by default those at hand."),),
)
