"""Figure 3 of the DualQuery paper: error and run time on KDD99 against the number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from experiments.comparing import curve_means, means
from experiments.contenders import BEST, CONTENDERS, OURS, specified
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Run
from experiments.measuring import perform

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, DELTA = 1.0, 0.001
QUERIES = (40_000, 100_000, 250_000, 500_000, 1_000_000, 2_000_000)
NOISE = "Gaussian noise"
COMPARED = (OURS, BEST, NOISE, "independent columns")
RUNS = 3
FLAT = 1.5
"""Error may grow by this factor from the fewest to the most queries, and count as flat."""

_QUICK_QUERIES = (2_000, 10_000, 50_000)
_QUICK_EPSILON = 0.1
_QUICK_COMPARED = (OURS, NOISE, "independent columns")


def plan(choices: Choices) -> Sequence[Run]:
    """Answer every number of queries, once a seed; the queries are counted once for all."""
    quick = choices.quick
    return [
        {
            **DATA_SETS["adult" if quick else "kdd99"].parameters(choices),
            "queries": number,
            "contenders": specified(_QUICK_COMPARED if quick else COMPARED),
            "epsilons": [_QUICK_EPSILON if quick else EPSILON],
            "delta": DELTA,
            "seed": seed,
        }
        for number in choices.options.get("queries", _QUICK_QUERIES if quick else QUERIES)
        for seed in choices.seeds(RUNS)
    ]


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """State how errors and times of DualQuery and of noise grow with the queries."""

    def growth(label: str, column: str) -> float:
        curve = curve_means(table, "contender", "queries", column)[label]
        return curve[many] / curve[few]

    few, many = int(table["queries"].to_numpy().min()), int(table["queries"].to_numpy().max())
    whole = many / few >= QUERIES[-1] / QUERIES[0]
    ours = {name: growth(OURS, name) for name in ("max_error", "mean_error", "seconds")}
    noise = growth(NOISE, "max_error")
    span = f"from {few:,} to {many:,} queries"
    return [
        Finding(
            f"max and mean error of DualQuery stay within {FLAT:g} times {span} (Figure 3: mostly "
            "stable)",
            f"{ours['max_error']:.2f} and {ours['mean_error']:.2f} times",
            max(ours["max_error"], ours["mean_error"]) <= FLAT if whole else None,
        ),
        Finding("the error of noise on every answer grows faster than DualQuery's",
                f"max error of {NOISE} grows {noise:.2f} times {span}",
                noise > ours["max_error"] if whole else None),
        Finding(f"run time of DualQuery grows {span} no faster than the queries",
                f"{ours['seconds']:.1f} times, for {many / few:.0f} times the queries",
                ours["seconds"] <= many / few if many > few else None),
    ]  # fmt: skip


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw max error, mean error and seconds."""
    from experiments.harness import style

    title = f"{table['data'][0]}, epsilon {table['epsilon'][0]:g}, delta {DELTA:g}"
    charts = [
        style.Chart(
            table=table, x="queries", y=column, by="contender", looks=style.curves(CONTENDERS),
            title=title, scales=("log", "log"),
        )
        for column in ("max_error", "mean_error", "seconds")
    ]  # fmt: skip
    return {"figure3": style.picture(charts, 1, height=2.3)}


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
    summarise=means(
        "queries", "contender", of=("max_error", "mean_error", "seconds", "evaluation_s")
    ),
    expect=expect,
    draw=draw,
    options=(Option("queries", int, "Only this number of queries."),),
    timed=True,
)
