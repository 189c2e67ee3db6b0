"""What a release is worth: what `auto` chooses, DualQuery, the paper's game, the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from experiments.comparing import best_below_all, gains_over_the_paper
from experiments.contenders import CONTENDERS, SEEDLESS
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import release_of

DELTA = 0.001
QUERIES, RUNS = 100_000, 3


@dataclass(frozen=True)
class Line:
    """A table, what may be asked about it, and a budget.

    Parameters
    ----------
    table
        Its name.
    epsilon
        The budget.
    signed
        Whether queries have negated literals, too.
    columns
        Those that queries are about; None for all.
    """

    table: str
    epsilon: float = 1.0
    signed: bool = True
    columns: str | None = None


LINES = (
    Line("adult", 0.25),
    Line("adult", 1.0),
    Line("adult", 5.0),
    Line("kdd99"),
    Line("plants"),
    Line("pumsb_star"),
    Line("mushroom"),
    Line("npm-deps", signed=False, columns="0-99"),
    Line("facebook-pages", signed=False, columns="0-99"),
)
_QUICK_QUERIES = 10_000


def plan(choices: Choices) -> Sequence[Run]:
    """Answer the workload of every line whose table is at hand, once a seed."""
    wanted = choices.named("table", DATA_SETS)
    lines = LINES[:1] if choices.quick else LINES
    return [
        {
            **DATA_SETS[line.table].parameters(choices),
            "queries": _QUICK_QUERIES if choices.quick else QUERIES,
            "signed": line.signed,
            "query_columns": line.columns,
            "contender": label,
            "epsilon": line.epsilon,
            "delta": DELTA,
            "seed": seed,
        }
        for line in lines
        if (line.table in wanted if wanted else DATA_SETS[line.table].at_hand(choices))
        for label in choices.named("contender", CONTENDERS) or CONTENDERS
        for seed in (range(1, 2) if label in SEEDLESS else choices.seeds(RUNS))
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Release once."""
    return [release_of(run, threads).row()]


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return the mean errors of every mechanism."""
    return table.group_by("data", "epsilon", "contender", maintain_order=True).agg(
        pl.col("max_error", "mean_error", "rmse", "seconds").mean(), seeds=pl.len()
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare `auto` with the others, and DualQuery with the paper's game."""
    return [
        finding
        for (data,), lines in table.group_by("data", maintain_order=True)
        for finding in (
            *best_below_all(str(data), lines, ("max_error", "mean_error")),
            *gains_over_the_paper(str(data), lines),
        )
    ]


RECIPE = Recipe(
    name="headline",
    title="What a release is worth: errors of all mechanisms",
    setting=(
        "The guarantee of Section 6 of the DualQuery paper, (epsilon, 0.001): answers to 100,000 "
        "random 3-way conjunctions, signed but for the two sparse tables, where positive ones ask "
        "about the first 100 columns; neighbours replace one row; the rules that set parameters "
        "have constants that were chosen on such tables. Tables that are not given with --data are "
        "left out. The quick form asks 10,000 queries about Adult."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    options=(
        Option("contender", str, "Only this mechanism, by its name in the table."),
        Option(
            "table", str, f"Only this table: {', '.join(dict.fromkeys(x.table for x in LINES))}."
        ),
    ),
)
