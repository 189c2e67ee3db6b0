"""Figure 2 of the MWEM paper: random range queries against the SVD lower bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.ranges import RangeQueries
from experiments.comparing import curve_means, listed, ratios, tables
from experiments.contenders import Contender
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run
from experiments.measuring import question_about, release
from experiments.mwem_data_sets import NUMERIC, WITHOUT, numeric_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.0125, 0.025, 0.05, 0.1)
ITERATIONS = 10
QUERIES, RUNS = 2_000, 5
_QUICK_QUERIES, _QUICK_RUNS = 300, 2

MWEM = "MWEM (T = 10)"
BOUNDS = {
    "SVD lower bound": Neighbours.REPLACE_ONE,
    "SVD lower bound, one record added or removed": Neighbours.ADD_REMOVE,
}
BOUND = next(iter(BOUNDS))


def plan(choices: Choices) -> Sequence[Run]:
    """Compute the bounds of each table, and run MWEM at each epsilon."""
    runs: list[Run] = []
    for name, numbers in NUMERIC.items():
        path = None if choices.quick else str(choices.data.path(numbers.file, WITHOUT))
        queries = _QUICK_QUERIES if choices.quick else QUERIES
        table = {"table": name, "path": path, "queries": queries}
        runs.append({**table, "method": BOUND, "epsilon": None, "seed": 0})
        runs += [
            {**table, "method": MWEM, "epsilon": epsilon, "seed": seed}
            for epsilon in EPSILONS
            for seed in choices.seeds(RUNS, _QUICK_RUNS)
        ]
    return runs


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Run MWEM once, or compute the bounds at every epsilon."""
    study = numeric_table(run["table"], run["path"])
    queries = random_ranges(study.data.schema.domain, run["queries"])
    shared = {"title": study.title, "n": study.data.n}
    if run["method"] == BOUND:
        return [
            {**shared, "curve": curve, "at": epsilon, "squared_error": bound / epsilon**2}
            for curve, bound in bounds(indicator_matrix(queries), study.data.n).items()
            for epsilon in EPSILONS
        ]
    asked = question_about(study.data, queries, threads)
    contender = Contender("mwem", options={"iterations": ITERATIONS})
    found = release(
        asked, contender, run["seed"], epsilon=run["epsilon"], delta=0.0, threads=threads
    )
    error = (found.errors.rmse * study.data.n) ** 2
    return [{**shared, "curve": MWEM, "at": run["epsilon"], "squared_error": error}]


def bounds(matrix: NDArray[np.float64], n: int) -> dict[str, float]:
    """Return the SVD bounds a query at epsilon 1 and delta 1 / n; they go with 1 / epsilon^2.

    The matrix has a row a query and a column a cell.
    """
    from mwem import svd_bound

    return {
        curve: svd_bound(matrix, epsilon=1.0, delta=1.0 / n, neighbours=neighbours) / len(matrix)
        for curve, neighbours in BOUNDS.items()
    }


@lru_cache(maxsize=1)
def random_ranges(domain: Domain, count: int) -> RangeQueries:
    """Return boxes over all columns: each interval uniform over the intervals of its column.

    One box may come twice.
    """
    generator = np.random.default_rng(0)
    ends = []
    for size in axis_sizes(domain):
        first, last = np.triu_indices(size)
        drawn = generator.integers(len(first), size=count)
        ends.append((first[drawn], last[drawn]))
    low, high = (np.stack(side, axis=1).astype(np.int32) for side in zip(*ends, strict=True))
    columns = np.tile(np.arange(domain.columns, dtype=np.int32), (count, 1))
    return RangeQueries.of_arrays(domain, columns, low, high)


def indicator_matrix(queries: RangeQueries) -> NDArray[np.float64]:
    """Return the value of each box on each cell: float64, shape ``(m, cells)``, C order."""
    matrix = np.ones((len(queries), 1))
    for column, size in enumerate(axis_sizes(queries.domain)):
        value = np.arange(size)
        first, last = queries.first[:, column, None], queries.last[:, column, None]
        inside = ((first <= value) & (value <= last)).astype(np.float64)
        matrix = (matrix[:, :, None] * inside[:, None, :]).reshape(len(queries), -1)
    return matrix


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return the mean squared error of a query, and the bounds on it, in rows²."""
    names = {"title": "mean squared error of", "at": "at epsilon"}
    return (
        table.rename(names)
        .pivot("curve", index=[*names.values()], values="squared_error", aggregate_function="mean")
        .select(*names.values(), MWEM, *BOUNDS)
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """State the paper's two findings for each table."""
    findings = []
    for title, lines in tables(table, "title"):
        means = curve_means(lines, "curve", "at", "squared_error")
        factors = ratios(means[BOUND], means[MWEM])
        first = next(iter(factors.values()))
        findings += [
            Finding(
                f"{title}: MWEM below the SVD lower bound at the smallest epsilon (Figure 2)",
                f"bound over MWEM's mean squared error: {listed(factors)}",
                first > 1,
            ),
            Finding(
                f"{title}: the improvement diminishes from each epsilon to the next (Figure 2)",
                f"the ratios are {listed(factors)}",
                all(after < before for before, after in pairwise(factors.values())),
            ),
        ]
    return findings


def draw(table: pl.DataFrame) -> Mapping[str, Figure]:
    """Draw a panel for each table."""
    from experiments.harness import style

    charts = [
        style.Chart(
            table=lines, x="at", y="squared_error", by="curve", title=title, xlabel="epsilon",
            looks=style.curves([MWEM, *BOUNDS]), ticks=EPSILONS,
        )
        for title, lines in tables(table, "title")
    ]  # fmt: skip
    return {"ranges": style.picture(charts, 2)}


RECIPE = Recipe(
    name="ranges",
    title="MWEM, Figure 2: range queries against the SVD lower bound",
    setting=(
        "The paper's setting: average squared error of random range queries by MWEM (T = 10) and "
        "the SVD lower bound of Li and Miklau on every matrix mechanism at delta = 1/n, epsilon "
        "0.0125 to 0.1. Ours: 2,000 ranges, their ends uniform (the paper does not say); MWEM has "
        "pure epsilon; MWEM and the bound are for neighbours that replace one row; the paper's "
        "bound, for one row added or removed, is shown too. The quick form has 300 ranges, the "
        "30,162 Adult rows of the package and a stand-in for Transfusion."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
    draw=draw,
)
