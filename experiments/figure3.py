"""Figure 3 of the DualQuery paper: error and run time on KDD99 against the number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from dualquery.requests import WorkloadRequest
from experiments.contenders import BEST, CONTENDERS, OURS
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import question_of, release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, DELTA = 1.0, 0.001
QUERIES = (40_000, 100_000, 250_000, 500_000, 1_000_000, 2_000_000)
COMPARED = (OURS, BEST, "Gaussian noise", "independent columns")
RUNS = 3
FLAT = 1.5
"""Error may grow by this factor from the fewest to the most queries, and count as flat."""

_QUICK_QUERIES, _QUICK_EPSILON = (2_000, 10_000, 50_000), 0.1
_QUICK_COMPARED = (OURS, "Gaussian noise", "independent columns")


def plan(choices: Choices) -> Sequence[Run]:
    """Answer every number of queries, once a seed."""
    table = DATA_SETS["adult" if choices.quick else "kdd99"]
    queries = choices.options.get("queries", _QUICK_QUERIES if choices.quick else QUERIES)
    return [
        {
            **table.parameters(choices),
            "queries": number,
            "contenders": list(_QUICK_COMPARED if choices.quick else COMPARED),
            "epsilon": _QUICK_EPSILON if choices.quick else EPSILON,
            "delta": DELTA,
            "seed": seed,
        }
        for number in queries
        for seed in choices.seeds(RUNS)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Count the queries once, and release with each mechanism."""
    asked = question_of(run, WorkloadRequest(queries=run["queries"]), threads)
    rows = []
    for label in run["contenders"]:
        found = release(
            asked,
            CONTENDERS[label],
            run["seed"],
            epsilon=run["epsilon"],
            delta=run["delta"],
            threads=threads,
        )
        rows.append({"contender": label, **found.row(), "evaluation_s": asked.evaluation_s})
    return rows


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return mean errors and seconds of every curve."""
    return (
        table.group_by("queries", "contender", maintain_order=True)
        .agg(pl.col("max_error", "mean_error", "seconds", "evaluation_s").mean(), runs=pl.len())
        .rename({"contender": "answers from", "evaluation_s": "evaluation"})
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """State how errors and times of DualQuery and of noise grow with the queries."""
    few, many = int(table["queries"].to_numpy().min()), int(table["queries"].to_numpy().max())
    whole = many / few >= QUERIES[-1] / QUERIES[0]
    means = table.group_by("contender", "queries").agg(
        pl.col("max_error", "mean_error", "seconds").mean()
    )

    def growth(label: str, column: str) -> float:
        ends = means.filter(pl.col("contender") == label).sort("queries")[column]
        return float(ends[-1] / ends[0])

    largest = max(growth(OURS, "max_error"), growth(OURS, "mean_error"))
    span = f"from {few:,} to {many:,} queries"
    return [
        Finding(
            f"max and mean error of DualQuery stay within {FLAT:g} times {span} (Figure 3: mostly "
            "stable)",
            f"{growth(OURS, 'max_error'):.2f} and {growth(OURS, 'mean_error'):.2f} times",
            largest <= FLAT if whole else None,
        ),
        Finding(
            "the error of noise on every answer grows faster than DualQuery's",
            f"max error of Gaussian noise grows {growth('Gaussian noise', 'max_error'):.2f} times "
            f"{span}",
            growth("Gaussian noise", "max_error") > growth(OURS, "max_error") if whole else None,
        ),
        Finding(
            f"run time of DualQuery grows {span} no faster than the queries",
            f"{growth(OURS, 'seconds'):.1f} times, for {many / few:.0f} times the queries",
            growth(OURS, "seconds") <= many / few,
        ),
    ]


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw max error, mean error and seconds."""
    from experiments.harness import style

    figure, axes = style.panels(1, 3, height=2.3)
    looks = style.curves(list(CONTENDERS))
    labels = {
        "max_error": "max error (share of rows)",
        "mean_error": "mean error (share of rows)",
        "seconds": "run time (s)",
    }
    for panel, (column, label) in zip(axes, labels.items(), strict=True):
        style.lines_with_bands(panel, table, "queries", column, "contender", looks)
        panel.set(xscale="log", yscale="log", ylabel=label)
    axes[-1].set_xlabel("queries")
    axes[0].set_title(f"{table['data'][0]}, epsilon {table['epsilon'][0]:g}, delta {DELTA:g}")
    style.legend_below(figure, axes, 2)
    return {"figure3": figure}


RECIPE = Recipe(
    name="figure3",
    title="DualQuery, Figure 3: error and run time against the number of queries",
    setting=(
        "The paper's setting: (1, 0.001)-private answers to 40,000 to 2,000,000 random 3-way "
        "marginals of KDD99. Ours: signed conjunctions, neighbours replace one row; the run time "
        "is that of planning and playing the game, with the exact answers counted before. The "
        "quick form asks up to 50,000 queries about Adult, in place of KDD99, at epsilon 0.1."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    options=(Option("queries", int, "Only this number of queries."),),
    timed=True,
)
