"""Which mechanism to take: errors against epsilon on three kinds of workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from dualquery.runtime.errors import BadInputError
from experiments.comparing import best_below_all, means, tables
from experiments.contenders import BEST, CONTENDERS, OURS, specified
from experiments.data_sets import chosen
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Run
from experiments.measuring import perform

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
DELTAS = {"0.001": 0.001, "1/n^2": None}
WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "signed conjunctions": {"queries": 100_000},
    "positive conjunctions": {"queries": 50_000, "signed": False},
    "whole marginals": {"marginals": 64},
}
"""Three-way, all of them: random conjunctions, and every cell of 64 random marginals."""
COMPARED = (BEST, OURS, "Gaussian noise", "independent columns", "uniform", "zero record")
DATA = ("adult", "kdd99", "plants", "pumsb_star", "mushroom")
RUNS: Mapping[str, int] = {"0.001": 3, "1/n^2": 1}
"""At each delta: the smaller one is there to show that the order stays."""
SHOWN = 1.0
"""Epsilon of the summary."""

_QUICK_EPSILONS = (0.1, 0.5)
_QUICK_WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "signed conjunctions": {"queries": 5_000},
    "positive conjunctions": {"queries": 5_000, "signed": False},
    "whole marginals": {"marginals": 8},
}
_QUICK_COMPARED = (BEST, OURS, "Gaussian noise", "independent columns")


def plan(choices: Choices) -> Sequence[Run]:
    """Plan a run for each data set, workload, delta, mechanism and seed; it covers all epsilons."""
    quick = choices.quick
    wanted = choices.options.get("workload")
    wanted = wanted or [x for x in WORKLOADS if not quick or x != "positive conjunctions"]
    for workload in wanted:
        if workload not in WORKLOADS:
            raise BadInputError(f"--workload {workload}: the workloads are {', '.join(WORKLOADS)}")
    return [
        {
            **data.parameters(choices),
            "workload": workload,
            **(_QUICK_WORKLOADS if quick else WORKLOADS)[workload],
            "allowed": delta,
            "delta": DELTAS[delta],
            "contenders": specified([label]),
            "epsilons": list(_QUICK_EPSILONS if quick else EPSILONS),
            "seed": seed,
        }
        for data in chosen(choices, DATA)
        for workload in wanted
        for delta in (("0.001",) if quick else DELTAS)
        for label in (_QUICK_COMPARED if quick else COMPARED)
        for seed in choices.seeds(RUNS[delta])
    ]


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return errors, time and memory at epsilon 1 (or the largest there is) and delta 0.001."""
    epsilon = table["epsilon"].max() if SHOWN not in table["epsilon"] else SHOWN
    of = ["max_error", "mean_error", "rmse", "mean_l1", "cpu_seconds", "peak_mib"]
    return means(
        "data", "workload", "contender", of=[x for x in of if x in table.columns], first=["epsilon"]
    )(table.filter(pl.col("epsilon") == epsilon, allowed=table["allowed"][0]))


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Say where the best mechanism is not the best."""
    return [
        finding
        for (name, workload, delta), lines in table.group_by(
            "data", "workload", "allowed", maintain_order=True
        )
        for finding in best_below_all(
            f"{name}, {workload}, delta {delta}", lines, ("max_error", "mean_error")
        )
    ]


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw a picture for each table: a row for each workload, max beside mean error."""
    from experiments.harness import style

    shown = table.filter(allowed=table["allowed"][0])
    pictures = {}
    for name, lines in tables(shown):
        charts = [
            style.Chart(
                table=of_one, x="epsilon", y=column, by="contender",
                looks=style.curves(CONTENDERS), title=f"{name}: {workload}",
                xlabel="epsilon (left: more private)",
                ticks=lines["epsilon"].unique().sort().to_list(),
            )
            for workload, of_one in tables(lines, "workload")
            for column in ("max_error", "mean_error")
        ]  # fmt: skip
        first = name == shown["data"][0]
        pictures["accuracy" if first else f"accuracy-{name}"] = style.picture(charts, 2, 1.9, 3)
    return pictures


RECIPE = Recipe(
    name="accuracy",
    title="Which mechanism to take: errors against epsilon on three kinds of workloads",
    setting=(
        "Answers to 100,000 signed or 50,000 positive random 3-way conjunctions, or to every cell "
        "of 64 random 3-way marginals, at epsilon 0.1 to 5 and delta 0.001 (drawn here; three runs "
        "if --runs does not say) or 1/n^2 (one run); neighbours replace one row, every mechanism "
        "with its own policy and at the same "
        "guarantee. The lower a line, the better. The rules of auto and DualQuery have constants "
        "that were chosen with an eye on these tables. mean_l1 is the error of a whole marginal, "
        "summed over its cells. The quick form: 5,000 conjunctions or 8 marginals of Adult, "
        "epsilon 0.1 and 0.5."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    options=(
        Option("table", str, f"Only this table: {', '.join(DATA)}."),
        Option("workload", str, f"Only this workload: {', '.join(WORKLOADS)}."),
    ),
    fresh=True,
)
