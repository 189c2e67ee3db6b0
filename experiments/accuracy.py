"""Which mechanism to take: errors against epsilon on three kinds of workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload
from dualquery.requests import WorkloadRequest
from dualquery.runtime.errors import BadInputError
from experiments.comparing import best_below_all
from experiments.contenders import BEST, CONTENDERS, OURS
from experiments.data_sets import chosen
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import question_of, release

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
RUNS = 5
SHOWN = 1.0
"""Epsilon of the summary."""

_QUICK_EPSILONS = (0.1, 0.5)
_QUICK_SIZES = {"queries": 5_000, "marginals": 8}
_QUICK_WORKLOADS = ("signed conjunctions", "whole marginals")
_QUICK_COMPARED = (BEST, OURS, "Gaussian noise", "independent columns")


def plan(choices: Choices) -> Sequence[Run]:
    """Plan a run for each data set, workload, delta, mechanism and seed; it covers all epsilons."""
    quick = choices.quick
    workloads = choices.options.get("workload", _QUICK_WORKLOADS if quick else tuple(WORKLOADS))
    for workload in workloads:
        if workload not in WORKLOADS:
            raise BadInputError(f"--workload {workload}: the workloads are {', '.join(WORKLOADS)}")
    return [
        {
            **data.parameters(choices),
            "workload": workload,
            "asked": _quickly(WORKLOADS[workload]) if quick else dict(WORKLOADS[workload]),
            "delta": delta,
            "contender": label,
            "epsilons": list(_QUICK_EPSILONS if quick else EPSILONS),
            "seed": seed,
        }
        for data in chosen(choices, DATA)
        for workload in workloads
        for delta in (("0.001",) if quick else DELTAS)
        for label in (_QUICK_COMPARED if quick else COMPARED)
        for seed in choices.seeds(RUNS)
    ]


def _quickly(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**asked, **{name: size for name, size in _QUICK_SIZES.items() if name in asked}}


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Release once an epsilon."""
    asked = question_of(run, WorkloadRequest(**run["asked"]), threads)
    rows = []
    for epsilon in run["epsilons"]:
        found = release(
            asked,
            CONTENDERS[run["contender"]],
            run["seed"],
            epsilon=epsilon,
            delta=DELTAS[run["delta"]],
            threads=threads,
        )
        l1 = None
        if "marginals" in run["asked"]:
            l1 = mean_l1(asked.workload, np.abs(found.outcome.answers - asked.truth))
        rows.append({"epsilon": epsilon, **found.row(), "mean_l1": l1})
    return rows


def mean_l1(workload: Workload, off: NDArray[np.float64]) -> float:
    """Return the mean over marginals of the summed errors of their cells.

    Parameters
    ----------
    workload
        Whole marginals.
    off
        float64, shape ``(m,)``: absolute error of each cell.
    """
    from dualquery.queries.forms.cuboids import Cuboids

    marginals = Cuboids.of(workload)
    return float(np.mean(np.add.reduceat(off[marginals.members], marginals.indptr[:-1])))


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return errors, time and memory at epsilon 1 (or the largest there is) and delta 0.001."""
    epsilon = table["epsilon"].max() if SHOWN not in table["epsilon"] else SHOWN
    lines = table.filter(pl.col("epsilon") == epsilon, pl.col("delta") == table["delta"][0])
    return lines.group_by("data", "workload", "contender", maintain_order=True).agg(
        pl.col("epsilon").first(),
        pl.col("max_error", "mean_error", "rmse", "mean_l1", "cpu_seconds", "peak_mib").mean(),
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Say where the best mechanism is not the best."""
    return [
        finding
        for (name, workload, delta), lines in table.group_by(
            "data", "workload", "delta", maintain_order=True
        )
        for finding in best_below_all(
            f"{name}, {workload}, delta {delta}", lines, ("max_error", "mean_error")
        )
    ]


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw a picture for each table: a column for each workload, max above mean error."""
    from experiments.harness import style

    looks = style.curves(list(CONTENDERS))
    pictures = {}
    delta = table["delta"][0]
    names = table["data"].unique(maintain_order=True).to_list()
    for name in names:
        lines = table.filter(pl.col("data") == name, pl.col("delta") == delta)
        workloads = lines["workload"].unique(maintain_order=True).to_list()
        figure, axes = style.panels(2, len(workloads), height=1.9)
        for at, panel in enumerate(axes):
            workload, column = workloads[at // 2], ("max_error", "mean_error")[at % 2]
            of_one = lines.filter(pl.col("workload") == workload)
            style.lines_with_bands(panel, of_one, "epsilon", column, "contender", looks)
            style.logarithmic_errors(panel)
            style.logarithmic(panel, lines["epsilon"].unique().sort().to_list())
            panel.set(
                title=f"{name}: {workload}", ylabel=f"{column.replace('_', ' ')} (share of rows)"
            )
        for panel in axes[-2:]:
            panel.set_xlabel("epsilon (left: more private)")
        style.legend_below(figure, axes, 3)
        pictures["accuracy" if name == names[0] else f"accuracy-{name}"] = figure
    return pictures


RECIPE = Recipe(
    name="accuracy",
    title="Which mechanism to take: errors against epsilon on three kinds of workloads",
    setting=(
        "Answers to 100,000 signed or 50,000 positive random 3-way conjunctions, or to every cell "
        "of 64 random 3-way marginals, at epsilon 0.1 to 5 and delta 0.001 (drawn here) or 1/n^2; "
        "neighbours replace one row, every mechanism with its own policy and at the same "
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
