"""Figure 1 of the DualQuery paper: the data sets, as our own loaders read them."""

from collections.abc import Sequence

import polars as pl

from dualquery.rows.engines import load
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run

PAPER = {"adult": (30_162, 235), "kdd99": (494_021, 396), "netflix": (480_189, 17_770)}
"""Rows and binary attributes in the paper."""


def plan(choices: Choices) -> Sequence[Run]:
    """Read every table that is at hand; the quick form leaves out files of the user's."""
    chosen = Choices() if choices.quick else choices
    return [dict(table.parameters(chosen)) for table in DATA_SETS.values() if table.at_hand(chosen)]


def perform(run: Run, threads: int) -> Sequence[Row]:  # noqa: ARG001
    """Count rows, columns and bits."""
    data = load(run["source"], run["schema"], run["columns"])
    domain = data.schema.domain
    return [{"rows": data.n, "attributes": domain.columns, "bits": domain.bits}]


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return one line a table."""
    return table.select("data", "rows", "attributes", "bits")


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare with the paper's table."""
    found = {name: (rows, bits) for name, rows, bits in
             table.select("data", "rows", "bits").iter_rows()}  # fmt: skip
    return [
        Finding(
            f"{name}: {PAPER[name][0]:,} rows and {PAPER[name][1]:,} binary attributes (Figure 1)",
            f"{rows:,} and {bits:,}",
            (rows, bits) == PAPER[name],
        )
        for name, (rows, bits) in found.items()
        if name in PAPER
    ]


RECIPE = Recipe(
    name="figure1",
    title="DualQuery, Figure 1: the data sets",
    setting=(
        "Rows, attributes and binary attributes as our loaders find them. Numbers fall into "
        "buckets and each value of an attribute becomes a bit, as the authors did. netflix-like is "
        "a model of the shape of the Netflix Prize data, which may not be passed on; npm-deps "
        "(packages and what they depend on, its 17,770 most frequent columns) is a real wide table."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
)
