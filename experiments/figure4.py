"""Figure 4 of the DualQuery paper: error and run time against the number of attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from experiments.comparing import means
from experiments.contenders import (
    AS_PUBLISHED,
    BEST,
    CONTENDERS,
    OURS,
    RECOUNTED,
    Contender,
    specified,
)
from experiments.harness.recipe import Choices, Finding, Option, Recipe, Row, Run
from experiments.measuring import perform as release_all

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
MEASURED = ("overhead_s", "evaluation_s", "peak_mib", "max_error", "mean_error")

_QUICK_ATTRIBUTES = (50, 4_000)
_QUICK_ROWS, _QUICK_QUERIES = 10_000, 10_000


def plan(choices: Choices) -> Sequence[Run]:
    """Release tables of every width, once a seed; the baselines once a width."""
    quick = choices.quick
    groups = [
        ((label,), seed)
        for label in ((OURS, BEST) if quick else (OURS, BEST, LISTED))
        for seed in choices.seeds(RUNS)
    ]
    return [
        {
            "attributes": attributes,
            "rows": _QUICK_ROWS if quick else ROWS,
            "queries": _QUICK_QUERIES if quick else QUERIES,
            "contenders": games(attributes, labels) or specified(labels),
            "epsilons": [EPSILON],
            "delta": DELTA,
            "seed": seed,
        }
        for attributes in choices.options.get(
            "attributes", _QUICK_ATTRIBUTES if quick else ATTRIBUTES
        )
        for labels, seed in [*groups, (BASELINES, 1)]
    ]


def games(attributes: int, labels: Sequence[str]) -> dict[str, Any]:
    """Return the games among contenders: attributes that no query mentions are coins."""
    authors = {**AS_PUBLISHED, "samples": samples_for(max(attributes, 1))}  # 0 is refused later
    options = {OURS: {"free": "coins"}, LISTED: {"free": "coins", **authors}}
    return {
        label: asdict(Contender("dualquery", options=options[label]))
        for label in labels
        if label in options
    }


def samples_for(attributes: int) -> int:
    """Return the samples a round, between the authors' values in a straight line of logarithms."""
    known = np.log(list(SAMPLES)), np.log(list(SAMPLES.values()))
    return round(math.exp(np.interp(math.log(attributes), *known)))


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Make the table and count the queries, then release; a seed has its own table."""
    source = f"biased:{run['rows']},{run['attributes']},{run['seed']}"
    rows = release_all({**run, "source": source, "schema": None, "columns": None}, threads)
    return [{**row, "overhead_s": row["seconds"]} for row in rows]


def headline(table: pl.DataFrame) -> Mapping[str, Any]:
    """Return the means of DualQuery at the largest number of attributes."""
    widest = table.filter(contender=OURS).filter(pl.col("attributes") == pl.col("attributes").max())
    return widest.select(pl.col("attributes").first(), pl.col(*MEASURED).mean()).row(0, named=True)


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """State the widest table, where the time goes, and who is better."""
    found = headline(table)
    games = table.filter(pl.col("contender").is_in([OURS, LISTED]))
    limits = int(games["rounds_at_limit"].to_numpy().sum())
    rounds = int(games["rounds"].to_numpy().sum()) - len(games)
    widest = table.filter(attributes=found["attributes"])
    rivals = {
        label: widest.filter(contender=label)["max_error"].to_numpy().mean() for label in BASELINES
    }
    listed = ", ".join(f"{label} {error:.3f}" for label, error in rivals.items())
    errors = ("max_error", "mean_error")
    means = widest.group_by("contender").agg(pl.col(*errors).mean())
    ours = means.filter(contender=BEST).select(errors).row(0)
    best = means.filter(pl.col("contender").is_in(BASELINES)).select(pl.col(*errors).min()).row(0)
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
        Finding(
            "at the widest table auto is within 1.1 times the best baseline, in both errors",
            f"auto {ours[0]:.3f}, {ours[1]:.4f}; the best {best[0]:.3f}, {best[1]:.4f}",
            all(own <= 1.1 * least for own, least in zip(ours, best, strict=True)),
        ),
    ]


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw errors, and overhead in the same panel as counting."""
    from experiments.harness import style

    known = style.curves(CONTENDERS)
    games = {
        OURS: known[OURS],
        BEST: known[BEST],
        LISTED: style.Curve(LISTED, known[RECOUNTED].number),
    }
    errors = {**games, **{label: known[label] for label in BASELINES}}
    counting = "counting the queries"
    counted = table.filter(contender=OURS).with_columns(
        contender=pl.lit(counting), overhead_s="evaluation_s"
    )
    title = (
        f"{table['queries'][0]:,} queries, {table['rows'][0]:,} rows, epsilon {EPSILON:g}, delta "
        f"{DELTA:g}"
    )
    charts = [
        style.Chart(
            table=pl.concat((table, counted)), x="attributes", y=column, by="contender",
            looks=looks, title=title, ylabel=label, scales=("log", "log"),
        )
        for column, label, looks in (
            ("max_error", None, errors),
            ("mean_error", None, errors),
            ("overhead_s", "time (s): overhead, counting",
             {**games, counting: style.Curve(counting, 1)}),
        )
    ]  # fmt: skip
    return {"figure4": style.picture(charts, 1, height=2.3)}


RECIPE = Recipe(
    name="figure4",
    title="DualQuery, Figure 4: error and run time against the number of attributes",
    setting=(
        "The paper's setting: (1, 0.001)-private answers to 100,000 3-way marginals of 100,000 "
        "rows, each attribute 1 with a probability of its own, drawn uniformly; 50 to 512,000 "
        "attributes, counting reported apart. Overhead is planning, sampling, best responses and "
        "the fit of shares. Independent columns are the truth of this table; baselines run once, "
        "on that of seed 1. Attributes that no sampled query mentions are drawn as fair coins. The "
        "quick form has 10,000 rows and queries, 50 and 4,000 attributes."
    ),
    plan=plan,
    perform=perform,
    summarise=means("attributes", "contender", of=MEASURED, first=("rounds", "samples")),
    expect=expect,
    draw=draw,
    headline=headline,
    options=(Option("attributes", int, "Only this number of attributes."),),
    timed=True,
)
