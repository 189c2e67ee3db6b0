"""What a drafted schema costs: errors of releases with drafts, and with schemas made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from experiments.comparing import means, tables
from experiments.contenders import BEST, CONTENDERS
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run

if TYPE_CHECKING:
    from dualquery.data.schema.table import TableSchema
    from dualquery.rows.dataset import Dataset
    from dualquery.rows.packed import Records

DATA = ("adult", "kdd99")
DRAFT, BY_HAND, PAPERS = "draft", "by hand", "the paper's"
QUERIES, RUNS = 100_000, 3
EPSILON, DELTA = 1.0, 0.001
BAR = 1.2
"""Error with a draft, at most, over that with a schema made by hand."""

_QUICK_QUERIES = 5_000


def plan(choices: Choices) -> Sequence[Run]:
    """Release each table with each schema, asked its own questions, once a seed."""
    data = DATA[:1] if choices.quick else DATA
    return [
        {
            **DATA_SETS[table].parameters(choices),
            "made": made,
            "queries": _QUICK_QUERIES if choices.quick else QUERIES,
            "epsilon": EPSILON,
            "delta": DELTA,
            "seed": seed,
        }
        for table in data
        if DATA_SETS[table].at_hand(choices)
        for made in (DRAFT, BY_HAND, PAPERS)
        for seed in choices.seeds(RUNS)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Release the table, and compare with the truth."""
    from dualquery.requests import WorkloadRequest
    from dualquery.rows.dataset import load
    from experiments.measuring import question_about, release

    data = load(run["source"], _schema(run))
    request = WorkloadRequest(queries=run["queries"], seed=run["seed"])
    asked = question_about(data, request.build(data.schema, data.n), threads)
    found = release(
        asked,
        CONTENDERS[BEST],
        run["seed"],
        epsilon=run["epsilon"],
        delta=run["delta"],
        threads=threads,
    )
    return [
        {
            "bits": data.records.bits,
            "told": told(data),
            "max_error": found.errors.max_error,
            "mean_error": found.errors.mean_error,
            "cpu_seconds": found.cpu_seconds,
        }
    ]


def _schema(run: Run) -> TableSchema | str:
    from dualquery.data.drafting import careful_draft
    from dualquery.data.readers.formats import parse_source
    from dualquery.data.readers.source import TableSource
    from experiments.schemas import by_hand

    if run["made"] == DRAFT:
        source = parse_source(run["source"])
        assert isinstance(source, TableSource)
        return careful_draft(source).schema
    return by_hand(run["data"]) if run["made"] == BY_HAND else run["schema"]


def told(data: Dataset[Records]) -> float:
    """Return what a row's values tell, one column at a time: the sum of their entropies, in bits.

    Buckets that hold nearly all rows tell nothing, and are easy to answer about.
    """
    shares = data.records.ones() / data.n
    columns = data.schema.domain.column_of_bit
    alone = np.bincount(columns)[columns] == 1
    shares = np.concatenate((shares, 1.0 - shares[alone]))
    held = shares[shares > 0]
    return float(-(held * np.log2(held)).sum())


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare errors with drafts and with the schemas made by hand."""
    found = []
    averages = table.group_by("data", "made", maintain_order=True).agg(
        pl.col("max_error", "mean_error").mean()
    )
    for name, lines in tables(averages):
        by = {line["made"]: line for line in lines.iter_rows(named=True)}
        for other in (BY_HAND, PAPERS):
            over = [by[DRAFT][kind] / by[other][kind] for kind in ("max_error", "mean_error")]
            found.append(
                Finding(
                    f"{name}: errors with the draft at most {BAR} times those with the schema "
                    f"{other}",
                    f"max {over[0]:.2f}, mean {over[1]:.2f} times",
                    max(over) <= BAR,
                )
            )
    return found


RECIPE = Recipe(
    name="drafts",
    title="What a drafted schema costs, beside schemas made by hand",
    setting=(
        "Errors of auto's answers to 100,000 random 3-way conjunctions about the buckets and "
        "categories of each schema, at epsilon 1 and delta 0.001; neighbours replace one row. The "
        "draft is that of dualquery schema draft, as it comes. The schemas by hand were written "
        "without sight of a draft; the paper's cut most numbers into buckets of equal width. told "
        "is what a row's values tell, the sum of its columns' entropies in bits: errors grow with "
        "it. The quick form asks 5,000 queries about Adult."
    ),
    plan=plan,
    perform=perform,
    summarise=means(
        "data", "made", of=["max_error", "mean_error", "cpu_seconds"], first=["bits", "told"]
    ),
    expect=expect,
)
