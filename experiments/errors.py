"""Errors of all mechanisms against epsilon: Figure 2, a table, and kinds of workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from experiments.comparing import (
    best_below_all,
    curve_means,
    gains_over_the_paper,
    listed,
    means,
    tables,
)
from experiments.contenders import BEST, CONTENDERS, OURS, SEEDLESS, specified
from experiments.data_sets import DATA_SETS, DataSet, chosen
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Run
from experiments.measuring import perform

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTA = 0.001
BOTH = ("max_error", "mean_error")
TABLE = Option("table", str, f"Only this table: {', '.join(DATA_SETS)}.")
CONTENDER = Option("contender", str, "Only this curve, by its name in the legend.")


def _runs(
    choices: Choices,
    table: DataSet,
    epsilons: Sequence[float],
    seeds: int,
    asked: Mapping[str, Any],
    compared: Sequence[str] = tuple(CONTENDERS),
    once: Sequence[str] = (),
) -> Iterator[Run]:
    """Yield a run for each mechanism and seed; what draws nothing, or is named, has one seed."""
    for label in choices.named("contender", CONTENDERS) or compared:
        for seed in (1,) if label in (*SEEDLESS, *once) else choices.seeds(seeds):
            yield {
                **table.parameters(choices),
                "delta": DELTA,
                **asked,
                "contenders": specified([label]),
                "epsilons": list(epsilons),
                "seed": seed,
            }


# --- Figure 2 of the DualQuery paper --------------------------------------------------------------

EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
WIDE = ("netflix", "netflix-like", "npm-deps")
"""On these data sets `auto` takes minutes a run, so it runs once."""
LEVEL = 1.2
"""Error may rise by this factor from one epsilon to the next, and count as not rising."""


def plan_figure2(choices: Choices) -> Sequence[Run]:
    """Run every mechanism at every epsilon on each table that is at hand."""
    quick = choices.quick
    # The paper's data sets, or a model of the one that is not at hand, and npm-deps.
    netflix = "netflix" if "netflix" in choices.data else "netflix-like"
    return [
        run
        for table in chosen(choices, ("adult", "kdd99", netflix, "npm-deps"))
        for epsilon in choices.options.get("epsilon", (0.05, 0.1, 0.25) if quick else EPSILONS)
        for run in _runs(
            choices, table, [epsilon], 5, {"queries": 10_000 if quick else 500_000},
            once=[BEST] if table.name in WIDE else (),
        )
    ]  # fmt: skip


def expect_figure2(table: pl.DataFrame) -> Sequence[Finding]:
    """State what accounting alone gains, what the rest does, and who is best."""
    findings = []
    for name, lines in tables(table):
        findings += gains_over_the_paper(name, lines)
        errors = curve_means(lines, "contender", "epsilon", "max_error").get(OURS, {})
        if len(errors) > 1:
            ascending = list(errors.values())
            rises = [after / before for before, after in pairwise(ascending)]
            said = f"{name}: max error of {OURS} falls as epsilon grows (Figure 2), but for noise"
            holds = ascending[-1] < ascending[0] and max(rises) <= LEVEL
            findings.append(Finding(said, listed(errors, ".4f"), holds))
        findings += best_below_all(name, lines)
    return findings


def draw_figure2(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw a panel for each table."""
    from experiments.harness import style

    charts = [
        style.Chart(
            table=lines, x="epsilon", y="max_error", by="contender",
            looks=style.curves(CONTENDERS), title=f"{name}, {lines['queries'][0]:,} queries",
        )
        for name, lines in tables(table)
    ]  # fmt: skip
    return {"figure2": style.picture(charts, min(len(charts), 2), height=3.0)}


FIGURE2 = Recipe(
    name="figure2",
    title="DualQuery, Figure 2: max error against epsilon",
    setting=(
        "The paper's setting: average max error of (epsilon, 0.001)-private answers to 500,000 "
        "3-way marginals, epsilon 0.25 to 5. Ours: signed random conjunctions on the paper's own "
        "bits, neighbours replace one row. Algorithm 1 is the paper's; DualQuery, ours, remembers "
        "draws and fits shares. No run looks at its table to set a parameter, but the constants of "
        "the rules that set them were chosen on public tables, Adult and KDD99 among them. Every "
        "curve has the same guarantee. On tables of 17,770 bits auto runs once. The quick form has "
        "10,000 queries about Adult."
    ),
    plan=plan_figure2,
    perform=perform,
    summarise=means("data", "contender", "epsilon", of=(*BOTH, "seconds")),
    expect=expect_figure2,
    draw=draw_figure2,
    options=(Option("epsilon", float, "Only this epsilon."), CONTENDER, TABLE),
)


# --- the table of all mechanisms ------------------------------------------------------------------

_SPARSE = {"signed": False, "query_columns": "0-99"}
LINES: Sequence[tuple[str, tuple[float, ...], Mapping[str, Any]]] = (
    ("adult", (0.25, 1.0, 5.0), {}),
    ("kdd99", (1.0,), {}),
    ("plants", (1.0,), {}),
    ("pumsb_star", (1.0,), {}),
    ("mushroom", (1.0,), {}),
    ("npm-deps", (1.0,), _SPARSE),
    ("facebook-pages", (1.0,), _SPARSE),
)
"""Table, epsilons, and what queries are about, where they are not of all kinds and columns."""


def plan_headline(choices: Choices) -> Sequence[Run]:
    """Answer the workload of every line whose table is at hand, once a seed."""
    wanted = choices.named("table", [name for name, *_ in LINES])
    queries = 10_000 if choices.quick else 100_000
    return [
        run
        for name, epsilons, about in (LINES[:1] if choices.quick else LINES)
        if (name in wanted if wanted else DATA_SETS[name].at_hand(choices))
        for epsilon in (epsilons[:1] if choices.quick else epsilons)
        for run in _runs(choices, DATA_SETS[name], [epsilon], 3, {"queries": queries, **about})
    ]


def expect_headline(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare `auto` with the others, and DualQuery with the paper's game."""
    return [
        finding
        for name, lines in tables(table)
        for finding in (*best_below_all(name, lines, BOTH), *gains_over_the_paper(name, lines))
    ]


HEADLINE = Recipe(
    name="headline",
    title="What a release is worth: errors of all mechanisms",
    setting=(
        "The guarantee of Section 6 of the DualQuery paper, (epsilon, 0.001): answers to 100,000 "
        "random 3-way conjunctions, signed but for the two sparse tables, where positive ones ask "
        "about the first 100 columns; neighbours replace one row; the rules that set parameters "
        "have constants that were chosen on such tables. Tables that are not given with --data are "
        "left out. The quick form asks 10,000 queries about Adult."
    ),
    plan=plan_headline,
    perform=perform,
    summarise=means("data", "epsilon", "contender", of=(*BOTH, "rmse", "seconds")),
    expect=expect_headline,
    options=(CONTENDER, TABLE),
)


# --- three kinds of workloads ---------------------------------------------------------------------

DELTAS = {"0.001": (0.001, 3), "1/n^2": (None, 1)}
"""Deltas and their runs: the smaller one is there to show that the order stays."""
WORKLOADS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "signed conjunctions": ({"queries": 100_000}, {"queries": 5_000}),
    "positive conjunctions": (
        {"queries": 50_000, "signed": False},
        {"queries": 5_000, "signed": False},
    ),
    "whole marginals": ({"marginals": 64}, {"marginals": 8}),
}
"""Three-way, all of them; the full and the quick form."""
COMPARED = (BEST, OURS, "Gaussian noise", "independent columns", "uniform", "zero record")
SHOWN = 1.0
"""Epsilon of the summary."""


def plan_accuracy(choices: Choices) -> Sequence[Run]:
    """Plan a run for each data set, workload, delta, mechanism and seed; it covers all epsilons."""
    quick = choices.quick
    usual = [name for name in WORKLOADS if not quick or name != "positive conjunctions"]
    return [
        run
        for table in chosen(choices, ("adult", "kdd99", "plants", "pumsb_star", "mushroom"))
        for workload in choices.named("workload", WORKLOADS) or usual
        for allowed, (delta, seeds) in DELTAS.items()
        if not quick or delta is not None
        for run in _runs(
            choices, table, (0.1, 0.5) if quick else (0.1, 0.25, 0.5, 1.0, 2.0, 5.0), seeds,
            {**WORKLOADS[workload][quick], "workload": workload, "allowed": allowed,
             "delta": delta},
            COMPARED[:4] if quick else COMPARED,
        )
    ]  # fmt: skip


def summarise_accuracy(table: pl.DataFrame) -> pl.DataFrame:
    """Return errors, time and memory at epsilon 1 (or the largest there is) and delta 0.001."""
    epsilon = table["epsilon"].max() if SHOWN not in table["epsilon"] else SHOWN
    of = [x for x in (*BOTH, "rmse", "mean_l1", "cpu_seconds", "peak_mib") if x in table.columns]
    return means("data", "workload", "contender", of=of, first=["epsilon"])(
        table.filter(pl.col("epsilon") == epsilon, allowed=table["allowed"][0])
    )


def expect_accuracy(table: pl.DataFrame) -> Sequence[Finding]:
    """Say where the best mechanism is not the best."""
    by = ("data", "workload", "allowed")
    return [
        finding
        for (name, workload, delta), lines in table.group_by(by, maintain_order=True)
        for finding in best_below_all(f"{name}, {workload}, delta {delta}", lines, BOTH)
    ]


def draw_accuracy(table: pl.DataFrame) -> Mapping[str, Figure]:
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
            for column in BOTH
        ]  # fmt: skip
        first = name == shown["data"][0]
        pictures["accuracy" if first else f"accuracy-{name}"] = style.picture(charts, 2, 1.9, 3)
    return pictures


ACCURACY = Recipe(
    name="accuracy",
    title="Which mechanism to take: errors against epsilon on three kinds of workloads",
    setting=(
        "Answers to 100,000 signed or 50,000 positive random 3-way conjunctions, or to every cell "
        "of 64 random 3-way marginals, at epsilon 0.1 to 5 and delta 0.001 (drawn here; three runs "
        "if --runs does not say) or 1/n^2 (one run); neighbours replace one row, every mechanism "
        "with its own policy and at the same guarantee. The lower a line, the better. The rules of "
        "auto and DualQuery have constants that were chosen with an eye on these tables. mean_l1 "
        "is the error of a whole marginal, summed over its cells. The quick form: 5,000 "
        "conjunctions or 8 marginals of Adult, epsilon 0.1 and 0.5."
    ),
    plan=plan_accuracy,
    perform=perform,
    summarise=summarise_accuracy,
    expect=expect_accuracy,
    draw=draw_accuracy,
    options=(TABLE, Option("workload", str, f"Only this workload: {', '.join(WORKLOADS)}.")),
    fresh=True,
)
