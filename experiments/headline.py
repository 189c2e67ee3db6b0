"""What a release is worth: what `auto` chooses, DualQuery, the paper's game, the baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from experiments.comparing import best_below_all, gains_over_the_paper, means, tables
from experiments.contenders import CONTENDERS, SEEDLESS, specified
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Run
from experiments.measuring import perform

DELTA = 0.001
QUERIES, RUNS = 100_000, 3


LINES: Sequence[tuple[str, float, Mapping[str, Any]]] = (
    ("adult", 0.25, {}),
    ("adult", 1.0, {}),
    ("adult", 5.0, {}),
    ("kdd99", 1.0, {}),
    ("plants", 1.0, {}),
    ("pumsb_star", 1.0, {}),
    ("mushroom", 1.0, {}),
    ("npm-deps", 1.0, {"signed": False, "query_columns": "0-99"}),
    ("facebook-pages", 1.0, {"signed": False, "query_columns": "0-99"}),
)
"""Table, epsilon, and what queries are about, where they are not of all kinds and columns."""
_QUICK_QUERIES = 10_000


def plan(choices: Choices) -> Sequence[Run]:
    """Answer the workload of every line whose table is at hand, once a seed."""
    wanted = choices.named("table", DATA_SETS)
    lines = LINES[:1] if choices.quick else LINES
    return [
        {
            **DATA_SETS[table].parameters(choices),
            "queries": _QUICK_QUERIES if choices.quick else QUERIES,
            **about,
            "contenders": specified([label]),
            "epsilons": [epsilon],
            "delta": DELTA,
            "seed": seed,
        }
        for table, epsilon, about in lines
        if (table in wanted if wanted else DATA_SETS[table].at_hand(choices))
        for label in choices.named("contender", CONTENDERS) or CONTENDERS
        for seed in (range(1, 2) if label in SEEDLESS else choices.seeds(RUNS))
    ]


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare `auto` with the others, and DualQuery with the paper's game."""
    return [
        finding
        for name, lines in tables(table)
        for finding in (
            *best_below_all(name, lines, ("max_error", "mean_error")),
            *gains_over_the_paper(name, lines),
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
    summarise=means(
        "data", "epsilon", "contender", of=("max_error", "mean_error", "rmse", "seconds")
    ),
    expect=expect,
    options=(
        Option("contender", str, "Only this mechanism, by its name in the table."),
        Option("table", str, f"Only this table: {', '.join(dict.fromkeys(x[0] for x in LINES))}."),
    ),
)
