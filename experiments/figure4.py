"""Figure 4 of the DualQuery paper: error and run time against the number of attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dualquery.requests import WorkloadRequest
from experiments.contenders import AS_PUBLISHED, CONTENDERS, OURS, RECOUNTED, Contender
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import question, release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, DELTA = 1.0, 0.001
ROWS, QUERIES, RUNS = 100_000, 100_000, 3
ATTRIBUTES = (50, 500, 4_000, 16_000, 128_000, 512_000)
SAMPLES = {50: 200, 500: 1_000, 4_000: 4_000, 16_000: 7_000, 128_000: 25_000, 512_000: 70_000}
"""Attributes -> samples a round in the authors' runs, roughly."""
LISTED = "Algorithm 1, the authors' samples"
"""The paper's Algorithm 1 with these samples; rounds and step as the policy chooses them."""
BASELINES = ("Gaussian noise", "independent columns", "uniform")
COMPARED = (OURS, LISTED, *BASELINES)

_QUICK_ATTRIBUTES = (50, 4_000)
_QUICK_ROWS, _QUICK_QUERIES = 10_000, 10_000


def plan(choices: Choices) -> Sequence[Run]:
    """Release tables of every width, once a seed; the baselines once a width."""
    widths = choices.options.get("attributes", _QUICK_ATTRIBUTES if choices.quick else ATTRIBUTES)
    groups = [([OURS], seed) for seed in choices.seeds(RUNS)]
    if not choices.quick:
        groups += [([LISTED], seed) for seed in choices.seeds(RUNS)]
    groups += [(list(BASELINES), 1)]
    return [
        {
            "attributes": attributes,
            "rows": _QUICK_ROWS if choices.quick else ROWS,
            "queries": _QUICK_QUERIES if choices.quick else QUERIES,
            "contenders": contenders,
            "epsilon": EPSILON,
            "delta": DELTA,
            "seed": seed,
        }
        for attributes in widths
        for contenders, seed in groups
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Make the table and count the queries, then release; a seed has its own table."""
    source = f"biased:{run['rows']},{run['attributes']},{run['seed']}"
    asked = question(source, None, None, WorkloadRequest(queries=run["queries"]), threads)
    rows = []
    for label in run["contenders"]:
        found = release(
            asked,
            _contender(label, run["attributes"]),
            run["seed"],
            epsilon=run["epsilon"],
            delta=run["delta"],
            threads=threads,
        )
        chosen = found.plan.parameters
        rows.append(
            {
                "contender": label,
                "rounds": chosen.get("rounds"),
                "samples": chosen.get("samples"),
                "eta": chosen.get("eta"),
                "max_error": found.errors.max_error,
                "mean_error": found.errors.mean_error,
                "overhead_s": found.seconds,
                "evaluation_s": asked.evaluation_s,
                "rounds_at_limit": found.rounds_at_limit,
            }
        )
    return rows


def _contender(label: str, attributes: int) -> Contender:
    """Return a contender; in the games unmentioned attributes are coins, as in the paper."""
    if label in BASELINES:
        return CONTENDERS[label]
    listed = {**AS_PUBLISHED, "samples": samples_for(attributes)} if label == LISTED else {}
    return Contender("dualquery", options={"free": "coins", **listed})


def samples_for(attributes: int) -> int:
    """Return the samples a round, between the authors' values in a straight line of logarithms."""
    known = np.log(list(SAMPLES)), np.log(list(SAMPLES.values()))
    return round(math.exp(np.interp(math.log(attributes), *known)))


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return mean errors, seconds and peak memory of every curve."""
    return (
        table.group_by("attributes", "contender", maintain_order=True)
        .agg(
            pl.col("rounds", "samples").first(),
            pl.col("max_error", "mean_error", "overhead_s", "evaluation_s", "peak_mib").mean(),
            runs=pl.len(),
        )
        .rename({"contender": "answers from"})
    )


def headline(table: pl.DataFrame) -> Mapping[str, Any]:
    """Return the means of DualQuery at the largest number of attributes."""
    widest = table.filter(
        pl.col("contender") == OURS, pl.col("attributes") == pl.col("attributes").max()
    )
    columns = ("overhead_s", "evaluation_s", "peak_mib", "max_error", "mean_error")
    return {
        "attributes": widest["attributes"][0],
        **{name: float(widest[name].to_numpy().mean()) for name in columns},
    }


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """State the widest table, where the time goes, and who is better."""
    found = headline(table)
    widest = table.filter(pl.col("attributes") == found["attributes"])
    games = table.filter(pl.col("contender").is_in([OURS, LISTED]))
    limits = int(games["rounds_at_limit"].to_numpy().sum())
    rounds = int(games["rounds"].to_numpy().sum()) - len(games)
    rivals = {
        label: widest.filter(pl.col("contender") == label)["max_error"].to_numpy().mean()
        for label in BASELINES
    }
    listed = ", ".join(f"{label} {error:.3f}" for label, error in rivals.items())
    return [
        Finding(
            "512,000 attributes with about 30 minutes of overhead (Section 7)",
            f"at {found['attributes']:,} attributes max error {found['max_error']:.3f}, mean "
            f"{found['mean_error']:.4f}, {found['overhead_s']:.1f} s of overhead on top of "
            f"{found['evaluation_s']:.1f} s of counting",
            found["overhead_s"] < 1800 if found["attributes"] == max(ATTRIBUTES) else None,
        ),
        Finding(
            "the limit of 20 s a best response is rarely reached (Section 6)",
            f"{limits} of {rounds:,} rounds",
            limits <= 0.05 * rounds,
        ),
        Finding(
            "at the widest table the max error is below that of every baseline",
            f"DualQuery {found['max_error']:.3f}; {listed}",
            found["max_error"] < min(rivals.values()),
        ),
    ]


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw errors, and overhead in the same panel as counting."""
    from experiments.harness import style

    figure, axes = style.panels(1, 3, height=2.3)
    looks = style.curves(list(CONTENDERS))
    looks[LISTED] = style.Curve(LISTED, looks[RECOUNTED].number)
    for panel, column in zip(axes, ("max_error", "mean_error", "overhead_s"), strict=True):
        shown = COMPARED if column != "overhead_s" else (OURS, LISTED)
        style.lines_with_bands(
            panel,
            table,
            "attributes",
            column,
            "contender",
            {label: looks[label] for label in shown},
        )
        panel.set(xscale="log", yscale="log")
    counting = style.Curve("counting the queries", 1)
    ours = table.filter(pl.col("contender") == OURS)
    style.line_with_band(axes[2], ours, "attributes", "evaluation_s", counting)
    axes[0].set(
        title=f"{table['queries'][0]:,} queries, {table['rows'][0]:,} rows, "
        f"epsilon {EPSILON:g}, delta {DELTA:g}",
        ylabel="max error (share of rows)",
    )
    axes[1].set_ylabel("mean error (share of rows)")
    axes[2].set(xlabel="attributes", ylabel="time (s): overhead, counting")
    style.legend_below(figure, axes, 2)
    return {"figure4": figure}


RECIPE = Recipe(
    name="figure4",
    title="DualQuery, Figure 4: error and run time against the number of attributes",
    setting=(
        "The paper's setting: (1, 0.001)-private answers to 100,000 3-way marginals of 100,000 "
        "rows, each attribute 1 with a probability of its own, drawn uniformly; 50 to 512,000 "
        "attributes, counting reported apart. Overhead is planning, sampling, best responses and "
        "the fit of shares. Independent columns are the truth of this table. Attributes that no "
        "sampled query mentions are drawn as fair coins. The quick form has 10,000 rows and "
        "queries, 50 and 4,000 attributes."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    headline=headline,
    options=(Option("attributes", int, "Only this number of attributes."),),
    timed=True,
)
