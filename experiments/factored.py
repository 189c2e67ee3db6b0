"""Section 4 of the MWEM paper: factored distributions, time and memory as attributes grow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.schema.items import ItemSchema
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals, random_conjunctions
from dualquery.rows.engines import Dataset, load
from dualquery.rows.packed import Records
from experiments.contenders import Contender
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run
from experiments.measuring import question_about, release
from experiments.mwem_data_sets import CATEGORICAL_ADULT, WITHOUT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON = 1.0
ITERATIONS = (10, 20, 30)
RUNS = 3
REPRESENTATIONS = ("junction-tree", "factored")
GROWTH = (50, 100, 250, 500, 1_000)
BITS, COINS = 27, 50
"""Binary attributes of Adult, and independent ones beside them."""

_INDEPENDENT_ROWS, _INDEPENDENT_QUERIES = 10_000, 20_000
_QUICK_GROWTH = (50, 200)
_MOST_ITERATIONS_FACTORED = 10
"""On Adult: later its one component would have all cells, 2^27."""

PAPER_SECONDS = {"Adult": 80.0, "independent": 19.0}
"""What section 4 reports for the 27 attributes, and for 1,000 independent ones."""
STEEPER = 1.5
"""Time counts as linear if the last attributes cost at most this many times the mean."""


def plan(choices: Choices) -> Sequence[Run]:
    """Run both representations on Adult, Adult with 50 coins, and on more and more coins."""
    path = None if choices.quick else choices.data.source("mcsherry-adult", WITHOUT)
    settings: list[Run] = [
        {"table": name, "path": path, "attributes": attributes, "iterations": iterations}
        for name, attributes in (("Adult", BITS), ("Adult and coins", BITS + COINS))
        for iterations in (ITERATIONS[:1] if choices.quick else ITERATIONS)
    ]
    settings += [
        {"table": "independent", "path": None, "attributes": attributes, "iterations": 10}
        for attributes in (_QUICK_GROWTH if choices.quick else GROWTH)
    ]
    return [
        {**setting, "representation": representation, "seed": seed}
        for setting in settings
        for representation in REPRESENTATIONS
        if representation != "factored"
        or setting["table"] == "independent"
        or setting["iterations"] <= _MOST_ITERATIONS_FACTORED
        for seed in choices.seeds(RUNS)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Run MWEM once; the runner adds the memory that it took."""
    data = rows_of(run["table"], run["path"], run["attributes"])
    question = question_about(data, asked(run["table"], data), threads)
    options = {name: run[name] for name in ("iterations", "representation")}
    found = release(
        question, Contender("mwem", options=options), run["seed"],
        epsilon=EPSILON, delta=0.0, threads=threads,
    )  # fmt: skip
    last = found.outcome.trace[-1]
    return [
        {
            **found.row(),
            "rows": data.n,
            "queries": len(question.truth),
            "cells": last["cells"],
            "largest": last["largest"],
        }
    ]


@lru_cache(maxsize=1)
def rows_of(name: str, path: str | None, attributes: int) -> Dataset[Records]:
    """Return the rows of ``Adult`` (binary-coded), ``Adult and coins``, or ``independent``.

    The path is that of the 27-bit Adult of the paper's authors; None for the package's own rows,
    coded alike. ``attributes`` counts all binary attributes.
    """
    generator = np.random.default_rng(1)
    if name == "independent":
        share = generator.random(attributes)
        drawn = generator.random((_INDEPENDENT_ROWS, attributes), np.float32) < share
        rows = drawn.astype(np.uint8)
    else:
        adult = binary_adult()
        if path is not None:
            theirs = load(path)
            adult = theirs.records.dense_rows(0, theirs.n)
        shape = (len(adult), attributes - adult.shape[1])
        rows = np.hstack((adult, generator.integers(0, 2, shape, dtype=np.uint8)))
    return load(rows, ItemSchema.numbered(attributes, name))


def binary_adult() -> NDArray[np.uint8]:
    """Return the categorical attributes of Adult as binary codes: ``(30162, 27)``.

    Attributes and codes are in the order of the authors' file: a category's code is its order of
    first appearance.
    """
    from dualquery.data.builtin import dataset_path

    frame = pl.read_parquet(dataset_path("adult").read_bytes(), columns=list(CATEGORICAL_ADULT))
    parts = []
    for name in reversed(CATEGORICAL_ADULT):
        _, first, code = np.unique(frame[name].to_numpy(), return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(first))[code]
        width = math.ceil(math.log2(len(first)))
        parts.append(order[:, None] >> np.arange(width - 1, -1, -1) & 1)
    return np.hstack(parts).astype(np.uint8)


def asked(name: str, data: Dataset[Records]) -> Workload:
    """Return all 3-way marginals of the attributes of Adult, or random conjunctions."""
    if name == "independent":
        return random_conjunctions(data.schema.domain, _INDEPENDENT_QUERIES, 3)
    return all_marginals(data.schema.domain, 3, columns=range(BITS))


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return time, memory and size of the distribution for each setting."""
    setting = ("table", "attributes", "iterations", "representation")
    return table.group_by(setting, maintain_order=True).agg(
        pl.col("seconds", "cpu_seconds").median(),
        pl.col("peak_mib", "cells").max(),
        pl.col("max_error").mean(),
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """State the three findings of section 4."""
    tree = table.filter(representation="junction-tree", iterations=10)
    medians = tree.group_by("table", "attributes").agg(
        pl.col("seconds", "cells").median(), cpu=pl.col("cpu_seconds").median(),
        mib=pl.col("peak_mib").median(),
    )  # fmt: skip
    of = {(line["table"], line["attributes"]): line for line in medians.iter_rows(named=True)}
    adult, wide = of["Adult", BITS], of["Adult and coins", BITS + COINS]
    independent = {d: found for (name, d), found in sorted(of.items()) if name == "independent"}
    widths = list(independent)
    most = widths[-1]
    listed = ", ".join(f"{independent[d]['cpu']:.2f} s for {d:,}" for d in widths)
    return [
        Finding(
            f"the 27 attributes of Adult within {PAPER_SECONDS['Adult']:g} s (section 4)",
            f"{adult['seconds']:.2f} s, {adult['cells']:,.0f} cells of the 2^27 that there are",
            adult["seconds"] <= PAPER_SECONDS["Adult"],
        ),
        Finding(
            "50 more independent attributes have a negligible effect (section 4): below twofold",
            f"CPU time {adult['cpu']:.2f} s without, {wide['cpu']:.2f} s with; peak memory "
            f"{_mib(adult['mib'])} and {_mib(wide['mib'])}",
            wide["cpu"] < 2 * adult["cpu"],
        ),
        Finding(
            f"1,000 independent attributes within {PAPER_SECONDS['independent']:g} s (section 4)",
            f"{independent[most]['seconds']:.2f} s for {most:,}",
            independent[most]["seconds"] <= PAPER_SECONDS["independent"] if most >= 1_000 else None,
        ),
        Finding(
            "time linear in the number of independent attributes (section 4): the last ones cost "
            f"at most {STEEPER:g} times as much each as all on average",
            f"CPU time {listed}",
            _steepening([independent[d]["cpu"] for d in widths], widths) <= STEEPER
            if len(widths) > 2
            else None,
        ),
    ]


def _steepening(seconds: Sequence[float], widths: Sequence[int]) -> float:
    """Return what an attribute of the last step adds, over what all of them add on average."""
    # What every run takes, however small, drops out.
    last = (seconds[-1] - seconds[-2]) / (widths[-1] - widths[-2])
    return last / ((seconds[-1] - seconds[0]) / (widths[-1] - widths[0]))


def _mib(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f} MiB"


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw CPU time and peak memory against the number of independent attributes."""
    from experiments.harness import style

    growth = table.filter(table="independent")
    charts = [
        style.Chart(
            table=growth, x="attributes", y=column, by="representation",
            looks=style.curves(REPRESENTATIONS), xlabel="independent attributes",
            title=f"{growth['queries'][0]:,} queries, T = {growth['iterations'][0]}",
            scales=("log", "linear"),
        )
        for column in ("cpu_seconds", "peak_mib")
    ]  # fmt: skip
    return {"factored": style.picture(charts, 2)}


RECIPE = Recipe(
    name="factored",
    title="MWEM, Section 4: distributions in factored form",
    setting=(
        "The paper's setting: a binarised Adult with 27 attributes (80 seconds), the same with 50 "
        "independent attributes more, and 1,000 independent binary attributes (19 seconds). Ours: "
        "T = 10 to 30, epsilon 1, replace-one, all 23,400 cells of the 3-way marginals of Adult's "
        "attributes, or 20,000 random 3-way conjunctions on 10,000 rows of independent attributes; "
        "the junction tree is the default, factored is the paper's form: independent components, "
        "merged when a query spans several. Times are of planning and the run, answering all "
        "queries included. The quick form codes the package's Adult rows."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
    timed=True,
)
