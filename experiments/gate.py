"""The gate: errors of `auto` on a fixed grid of small cells, beside the figures kept here.

A change of the mechanisms must not make it worse. Each cell is a table, a workload and an epsilon;
all tables but Adult and those of ``--data`` are generated. Kept figures are `KEPT`. From results in
a folder `python -m experiments.gate FOLDER` finds the factors of `forecast` anew.
"""

import csv
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data import Numeric, TableSchema
from dualquery.mechanisms.adaptive import predictions
from dualquery.mechanisms.registry import configure
from dualquery.releases.compare.evaluation import Errors
from dualquery.requests import WorkloadRequest
from dualquery.rows.cached import CachedRows
from dualquery.rows.engines import Dataset, load
from dualquery.rows.packed import RecordsBuilder
from experiments.contenders import BEST, Contender
from experiments.data_sets import DATA_SETS
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run
from experiments.measuring import Question, question_about, release

Bits = NDArray[np.uint8]

COMPARED = ("max_error", "mean_error")
KEPT = Path(__file__).with_name("gate.csv")
RUNS = 3
MEAN_BAR, MAX_BAR, CELL_BAR = 1.02, 1.03, 1.15
"""Geometric means of ratios of mean and of max errors, and the ratio of a cell, at most."""
TOLD_BAR, WIDEST = 0.9, 8.0
"""Share of errors inside the range told beforehand, at least, and that range's high over low."""

WORKLOADS: Mapping[str, Mapping[str, Any]] = {
    "signed": {"queries": 3_000},
    "positive": {"queries": 3_000, "signed": False},
    "pairs": {"queries": "all", "way": 2},
    "triples": {"queries": "all", "signed": False},
    "marginals": {"marginals": 6},
    "64 marginals": {"marginals": 64},
    "800 marginals": {"marginals": 800},
    "fours": {"queries": 20_000, "way": 4, "signed": False},
    "few": {"queries": 200},
    "many": {"queries": 100_000},
}
"""Three-way unless they are pairs or fours; ``few`` and ``many`` are signed."""

Cell = tuple[str, str, tuple[float, ...]]
GENERATED: Sequence[Cell] = (
    ("adult", "signed", (0.2, 1.0)),
    ("adult", "marginals", (1.0,)),
    ("adult", "few", (1.0,)),
    ("census", "signed", (0.2, 1.0, 5.0)),
    ("census", "marginals", (0.2, 1.0)),
    ("census", "pairs", (1.0,)),
    ("few rows", "signed", (0.5, 2.0)),
    ("few rows", "pairs", (1.0,)),
    ("factors", "signed", (0.2, 1.0, 5.0)),
    ("factors", "triples", (1.0,)),
    ("factors", "marginals", (1.0,)),
    ("chain", "signed", (0.2, 1.0)),
    ("chain", "pairs", (0.2, 1.0)),
    ("chain", "triples", (1.0,)),
    ("independent", "signed", (0.2, 1.0)),
    ("independent", "positive", (1.0,)),
    ("baskets", "signed", (0.2, 1.0)),
    ("baskets", "positive", (0.2, 1.0)),
    ("baskets", "few", (1.0,)),
    ("baskets", "64 marginals", (0.2,)),
    ("bundles", "positive", (0.2, 1.0, 5.0)),
    ("bundles", "fours", (1.0,)),
    ("wide and dense", "signed", (0.2, 1.0, 5.0)),
    ("wide and dense", "positive", (1.0,)),
    ("wide and dense", "few", (1.0,)),
    ("wide and dense", "800 marginals", (1.0,)),
    ("large and dense", "many", (1.0,)),
    ("wide and sparse", "signed", (0.2, 1.0)),
    ("wide and sparse", "positive", (1.0,)),
    ("netflix-like", "signed", (0.2, 1.0)),
    ("netflix-like", "positive", (1.0,)),
)
FILES: Sequence[Cell] = (
    ("plants", "signed", (1.0,)),
    ("mushroom", "signed", (1.0,)),
    ("pumsb_star", "signed", (1.0,)),
    ("groceries", "positive", (1.0,)),
    ("msweb", "signed", (1.0,)),
)
QUICK: Sequence[Cell] = (("census", "signed", (1.0,)), ("baskets", "positive", (1.0,)))


def plan(choices: Choices) -> Sequence[Run]:
    """Plan a run for each cell and seed, of files those that are given."""
    given = [cell for cell in FILES if cell[0] in choices.data]
    return [
        {
            "cell": f"{table}, {workload}, {epsilon:g}",
            "table": table,
            "source": choices.data.source(table, "") if table in choices.data else table,
            "workload": workload,
            "epsilon": epsilon,
            "seed": seed,
        }
        for table, workload, epsilons in (QUICK if choices.quick else (*GENERATED, *given))
        for epsilon in epsilons
        for seed in choices.seeds(RUNS)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Release once; return errors, forecasts of them, misses of intervals, and the records'."""
    asked = _question(run["table"], run["source"], run["workload"])
    made = release(
        asked, Contender(BEST), run["seed"], epsilon=run["epsilon"], delta=None, threads=threads
    )
    outcome, truth = made.outcome, asked.truth
    row: dict[str, Any] = {
        "mechanism": made.plan.mechanism,
        "max_error": made.errors.max_error,
        "mean_error": made.errors.mean_error,
        "cpu_seconds": made.cpu_seconds,
    }
    if outcome.records is not None:
        builder = RecordsBuilder(asked.data.records.bits)
        builder.append_dense(outcome.records)
        answers = asked.workload.counts(builder.build(), threads) / len(outcome.records)
        of_records = Errors.between(answers, truth)
        row |= {"records_max": of_records.max_error, "records_mean": of_records.mean_error}
    if outcome.intervals is not None:
        around = outcome.intervals
        asked_for = ~np.isnan(around.lower)
        off = (truth < around.lower - 1e-12) | (truth > around.upper + 1e-12)
        row |= {
            "missed": float(off[asked_for].mean()),
            "half_width": float((around.upper - around.lower)[asked_for].mean() / 2.0),
        }
    told = configure(BEST, {}).expected_error(asked.task, made.plan)
    assert told is not None
    for name, estimate in (("max", told.max_error), ("mean", told.mean_error)):
        row |= {f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        row[f"{name}_told"] = estimate.about
    return [row]


@lru_cache(maxsize=1)
def _question(table: str, source: str, workload: str) -> Question:
    """Return a table and what is asked of it, its answers counted."""
    data = _table(table, source)
    return question_about(data, WorkloadRequest(**WORKLOADS[workload]).build(data.schema, data.n))


@lru_cache(maxsize=1)
def _table(table: str, source: str) -> Dataset[CachedRows]:
    if table in TABLES:
        data = load(TABLES[table]())
    elif table == "census":
        data = load(census(), CENSUS)
    elif table == "netflix-like":
        data = load("netflix-like:12000,2000")
    else:
        named = DATA_SETS[table]
        data = load(source, named.schema, named.columns)
    return Dataset(CachedRows(data.records), data.schema, data.source)


def _factors(rows: int, columns: int, number: int, strength: float, centre: float) -> Bits:
    """Return columns that share some hidden normal factors."""
    generator = np.random.default_rng(rows + columns)
    hidden = generator.normal(size=(rows, number)).astype(np.float32)
    loadings = generator.normal(size=(number, columns)).astype(np.float32) * strength
    values = hidden @ loadings
    for row in values:
        row += generator.normal(size=columns).astype(np.float32)
    return (values > centre - generator.normal(size=columns)).astype(np.uint8)


def _chain() -> Bits:
    """Return a Markov chain over columns: few pairs are tied, and these strongly."""
    generator = np.random.default_rng(1)
    bits = (generator.random((8_000, 24)) < generator.uniform(0.2, 0.6, 24)).astype(np.uint8)
    for column in range(1, 24):
        same = generator.random(len(bits)) < 0.5
        bits[:, column] = np.where(same, bits[:, column - 1], bits[:, column])
    return bits


def _baskets(rows: int, columns: int) -> Bits:
    """Return baskets of items whose popularity follows Zipf's law, some bought together."""
    generator = np.random.default_rng(rows)
    share = 0.4 / (1.0 + np.arange(columns)) ** 0.9
    size = generator.gamma(2.0, 0.5, rows)[:, None]
    bits = generator.random((rows, columns)) < np.minimum(share * size, 0.95)
    for one, other in generator.integers(0, min(columns, 60), (30, 2)):
        bits[:, other] |= bits[:, one] & (generator.random(rows) < 0.4)
    return bits.astype(np.uint8)


def _bundles(rows: int, columns: int) -> Bits:
    """Return baskets of items by Zipf's law, and of bundles of five that are mostly together."""
    generator = np.random.default_rng(rows)
    bits = generator.random((rows, columns)) < 0.3 / (1.0 + np.arange(columns))
    for _ in range(25):
        items, share = generator.choice(50, 5, replace=False), generator.uniform(0.002, 0.03)
        buyers = np.flatnonzero(generator.random(rows) < share)
        bits[np.ix_(buyers, items)] |= generator.random((len(buyers), 5)) < 0.8
    return bits.astype(np.uint8)


TABLES: Mapping[str, Callable[[], Bits]] = {
    "few rows": lambda: _factors(1_000, 16, 2, 0.8, 0.5),
    "factors": lambda: _factors(20_000, 24, 3, 0.6, 0.5),
    "chain": _chain,
    "independent": lambda: _factors(10_000, 40, 1, 0.0, 0.7),
    "baskets": lambda: _baskets(10_000, 300),
    "bundles": lambda: _bundles(50_000, 120),
    "wide and dense": lambda: _factors(12_000, 1_000, 8, 0.35, 0.5),
    "wide and sparse": lambda: _baskets(12_000, 2_000),
    "large and dense": lambda: _factors(100_000, 1_000, 8, 0.35, 0.5),
}

_VALUES = (9, 12, 5, 8, 2, 6, 10, 3, 2, 4)
CENSUS = TableSchema(
    tuple(
        Numeric(f"c{column}", tuple(np.arange(values + 1) - 0.5), integer=True)
        for column, values in enumerate(_VALUES)
    ),
    declared=True,
)


def census() -> pl.DataFrame:
    """Return ordered categories of normal numbers that depend on each other."""
    generator = np.random.default_rng(2)
    hidden = generator.normal(size=(27_000, 3)) @ generator.normal(size=(3, len(_VALUES)))
    hidden += generator.normal(size=hidden.shape)
    ranks = hidden.argsort(axis=0).argsort(axis=0) / len(hidden)
    skewed = ranks ** generator.uniform(0.7, 2.5, len(_VALUES))
    values = np.floor(skewed * np.array(_VALUES)).astype(int)
    return pl.DataFrame({f"c{column}": values[:, column] for column in range(len(_VALUES))})


def kept() -> Mapping[str, Mapping[str, float]]:
    """Return the kept mean errors by cell."""
    with KEPT.open(encoding="utf-8", newline="") as file:
        return {
            line.pop("cell"): {name: float(value) for name, value in line.items()}
            for line in csv.DictReader(file)
        }


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return a line a cell, the worst ratio to the kept figures first."""
    before = kept()
    means = table.group_by("cell", maintain_order=True).agg(
        pl.col("mechanism").first(),
        pl.col(COMPARED).mean(),
        pl.col("records_max", "records_mean", "missed", "cpu_seconds").mean(),
    )
    ratios = {
        f"{name}_ratio": [
            value / before[cell][name] if cell in before else None
            for cell, value in means.select("cell", name).iter_rows()
        ]
        for name in COMPARED
    }
    worst = pl.max_horizontal(*ratios)
    return means.with_columns(pl.Series(name, values, pl.Float64)
                              for name, values in ratios.items()).sort(
        worst, descending=True, nulls_last=True
    )  # fmt: skip


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare ratios with their bars, and errors with the ranges told beforehand."""
    summary = summarise(table).drop_nulls([f"{name}_ratio" for name in COMPARED])
    findings = []
    for name, bar in zip(COMPARED, (MAX_BAR, MEAN_BAR), strict=True):
        ratios = summary[f"{name}_ratio"].to_numpy()
        mean = math.exp(float(np.log(ratios).mean()))
        said = name.replace("_", " ")
        largest = summary.sort(f"{name}_ratio", descending=True).head(5)
        cells = [f"{cell} {ratio:.2f}" for cell, ratio in largest["cell", f"{name}_ratio"].rows()]
        within = bool(ratios.max() <= CELL_BAR)
        findings += [
            Finding(f"the geometric mean of {said} ratios <= {bar}", f"{mean:.3f}", mean <= bar),
            Finding(f"no cell's {said} ratio above {CELL_BAR}", "; ".join(cells), within),
        ]
    for kind in ("max", "mean"):
        error, low, high = (table[f"{kind}_{end}"].to_numpy() for end in ("error", "low", "high"))
        share = np.mean((error >= low) & (error <= high))
        widest = np.max(high / low)
        expected = f"{kind} error inside the range told beforehand in {TOLD_BAR:.0%}, high / low"
        found = f"{share:.0%} of {len(table)} runs, {widest:.3g}"
        holds = bool(share >= TOLD_BAR and widest <= WIDEST * (1.0 + 1e-9))
        findings.append(Finding(f"{expected} <= {WIDEST:g}", found, holds))
    return findings


RECIPE = Recipe(
    name="gate",
    title="The gate: errors of auto on a fixed grid of small cells, beside the figures kept here",
    setting=(
        "Errors of auto on generated tables (those of --data, too), by workload and epsilon, delta "
        "1/n^2, over those of commit 353c7a3, of the large cell of af43003. A ratio below 1 is "
        "better than it was."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
)


def main(folder: str) -> None:
    """Print the factors of the forecast whose ranges hold the most errors of results."""
    table = pl.read_parquet(Path(folder) / "results.parquet")
    wide = math.log(WIDEST)
    for kind, factor in (("max", predictions.MAX), ("mean", predictions.MEAN)):
        told = table.filter(pl.col(f"{kind}_told") < 1.0)
        logs = np.sort(np.log((told[f"{kind}_error"] / told[f"{kind}_told"]).to_numpy()))
        held = np.searchsorted(logs, logs + wide, side="right") - np.arange(len(logs))
        lowest = float(np.median(logs[held == held.max()]))
        print(f"{kind}: {factor * math.exp(lowest + wide / 2.0):.3g}, now {factor:g}")


if __name__ == "__main__":
    main(sys.argv[1])
