"""What a release is worth: what `auto` chooses, DualQuery, the paper's game, the baselines."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from experiments.contenders import BEST_LABEL, CONTENDERS, OURS, PAPERS, RECOUNTED
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run
from experiments.measuring import release_of
from experiments.tables import TABLES

EPSILON, DELTA = 1.0, 0.001
QUERIES = {"adult": 100_000, "kdd99": 500_000}
RUNS = 3
_QUICK_QUERIES = 10_000


def plan(choices: Choices) -> Sequence[Run]:
    """Answer the workload with every mechanism, once a seed; on KDD99 if it was given."""
    name = "kdd99" if "kdd99" in choices.data else "adult"
    return [
        {
            **TABLES[name].parameters(choices),
            "queries": _QUICK_QUERIES if choices.quick else QUERIES[name],
            "contender": label,
            "epsilon": EPSILON,
            "delta": DELTA,
            "seed": seed,
        }
        for label in CONTENDERS
        for seed in choices.seeds(RUNS)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Release once."""
    return [release_of(run, threads).row()]


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return the mean errors of every mechanism."""
    return table.group_by("contender", maintain_order=True).agg(
        pl.col("max_error", "mean_error", "rmse", "seconds").mean(), seeds=pl.len()
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare `auto` with the others, and DualQuery with the paper's game."""
    lines = summarise(table).select("contender", "max_error", "mean_error").iter_rows()
    means = {name: (largest, mean) for name, largest, mean in lines}
    best = means[BEST_LABEL]
    losses = [
        name
        for name, errors in means.items()
        if name != BEST_LABEL and (errors[0] <= best[0] or errors[1] <= best[1])
    ]
    papers, recounted, ours = (means[label][0] for label in (PAPERS, RECOUNTED, OURS))
    return [
        Finding(
            f"{BEST_LABEL} has smaller errors than every other, max and mean",
            f"not smaller in both than {', '.join(losses)}" if losses else "it has",
            not losses,
        ),
        Finding(
            "accounting alone makes the max error of Algorithm 1 smaller",
            f"{papers:.4f} with the paper's, {recounted:.4f} with ours",
            recounted < papers,
        ),
        Finding(
            "remembered draws and fitted shares make it smaller again",
            f"{recounted:.4f} for Algorithm 1, {ours:.4f} for {OURS}",
            ours < recounted,
        ),
    ]


RECIPE = Recipe(
    name="headline",
    title="What a release is worth at epsilon 1: errors of all mechanisms",
    setting=(
        "The setting of Section 6 of the DualQuery paper: (1, 0.001)-private answers to signed "
        "random 3-way conjunctions, 100,000 about Adult, or 500,000 about KDD99 with --data "
        "kdd99:PATH; neighbours replace one row, parameters by policy. The quick form asks 10,000 "
        "queries about Adult."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
)
