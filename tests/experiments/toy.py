"""An experiment that takes no time, and writes down every run that begins."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run


def plan(choices: Choices) -> Sequence[Run]:
    return [
        {
            "log": "".join(choices.options["log"]),  # the command gives a list
            "seconds": choices.options.get("seconds", 0.0),
            "note": {"nested": "values stay out of the table"},
            "seed": seed,
        }
        for seed in choices.seeds(6)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    with Path(run["log"]).open("a", encoding="utf-8") as log:
        log.write(f"{run['seed']}\n")
    time.sleep(run["seconds"])
    return [{"x": x, "y": 2 * x + run["seed"], "threads": threads} for x in (1.0, 2.0)]


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    return table.group_by("x", maintain_order=True).agg(pl.col("y").mean(), runs=pl.len())


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    return [Finding("y <above> x & more", "it is", bool((table["y"] > table["x"]).all()))]


def draw(table: pl.DataFrame) -> Mapping[str, Any]:
    from experiments.harness import style

    figure, (panel,) = style.panels(1)
    style.line_with_band(panel, table, "x", "y", style.Curve("toy", 0))
    style.legend_below(figure, [panel])
    return {"toy": figure, "again": figure}


RECIPE = Recipe(
    name="toy",
    title="A toy",
    setting="Nothing of the paper's.",
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    options=(Option("log", str, "Where runs are noted."),),
)
