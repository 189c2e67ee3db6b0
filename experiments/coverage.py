"""How often intervals hold the truth: with noise drawn many times, and of whole releases."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import binom

import dualquery
from dualquery.data.domain import Domain, axis_sizes, column_values
from dualquery.data.schema.any_schema import Schema
from dualquery.data.schema.schema_files import schema_from_dict
from dualquery.estimates.cell_evidence import CellEvidence, Measured
from dualquery.estimates.intervals import Guesses, bounded_interval, guesses_of
from dualquery.estimates.least_squares import LeastSquares
from dualquery.estimates.means import SURELY
from dualquery.mechanisms.protocol import Task
from dualquery.mechanisms.registry import configure
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.questions.linear_form import Bounds, LinearForm
from dualquery.releases.answer.knowledge import Knowledge
from dualquery.releases.keep.folder import Release
from dualquery.releases.make.making import run as run_mechanism
from dualquery.requests import BudgetRequest
from dualquery.room.row_count import RowCount
from dualquery.rows.cached import CachedRows
from dualquery.rows.engines import Dataset, load
from experiments.data_sets import chosen
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run

NAMES = ("adult", "mushroom")
EVERY_TYPE = "every type"
"""A generated table with every kind of column."""

NOISE, WHOLE = "noise and least squares", "whole releases"
DRAWS = {NOISE: 200, WHOLE: 10}
WORKLOADS = {"conjunctions": {"queries": 2_000}, "marginals": {"marginals": 12, "way": 2}}
QUESTIONS = 40
"""Of each form."""

LEVEL, ENDS, CHANCE = 0.95, (0.93, 0.97), 0.05
"""What intervals state; between what their mean coverage is to lie; that of a false alarm."""


def plan(choices: Choices) -> Sequence[Run]:
    """Ask the same questions again and again, of releases and of noise alone."""
    every = {"data": EVERY_TYPE, "source": None, "schema": None, "columns": None}
    tables = [] if choices.quick else [t.parameters(choices) for t in chosen(choices, NAMES)]
    return [
        {
            **table,
            "rows": 2_000 if choices.quick else 20_000,
            "workload": workload,
            "kind": kind,
            "draws": 5 if choices.quick else draws,
            "seed": seed,
        }
        for table in (every, *tables)
        for workload in WORKLOADS
        for kind, draws in DRAWS.items()
        for seed in choices.seeds(1)
    ]


def perform(run: Run, threads: int) -> Sequence[Row]:
    """Count how often each question's interval holds.

    Known are those with an interval, but not a range of all values: its share is 1 whatever the
    table is.
    """
    table, schema = run["source"], run["schema"]
    if run["data"] == EVERY_TYPE:
        table, schema = table_of_every_type(run["rows"])
    data = load(table, schema, run["columns"])
    values = column_values(data.records.dense_rows(0, data.n), data.schema.domain)
    asked: dict[str, Any] = {
        "schema": schema, "columns": run["columns"], "mechanism": "matrix", "threads": threads,
        "workload_seed": run["seed"], **WORKLOADS[run["workload"]],
    }  # fmt: skip
    if run["kind"] == NOISE:
        # Noise and least squares do not look at the fit.
        asked["options"] = {"components": 1, "steps": 1}
    first = dualquery.release(table, **asked)
    generator = np.random.default_rng(run["seed"])
    questions = list(questions_of(require_conjunctions(first.workload), generator))
    truth = np.array([form.on_values(values).mean() for _, form in questions])
    held, width = np.zeros(len(questions), np.int64), np.zeros(len(questions))
    redrawn = Redrawn(first, questions) if run["kind"] == NOISE else None
    for release in _drawn(first, table, data, run, asked):
        found = limits_of(release, questions) if redrawn is None else redrawn.limits_of(release)
        low, high = found.T
        held += (low - 1e-12 <= truth) & (truth <= high + 1e-12)
        width += high - low
    return [
        {"form": name, "held": int(h), "known": bool(0 < w < np.inf), "width": float(w)}
        for (name, _), h, w in zip(questions, held, width / run["draws"], strict=True)
    ]


def _drawn(
    first: Release, table: Any, data: Dataset[Any], run: Run, asked: dict[str, Any]
) -> Iterator[Release]:
    """Yield releases without a seed: whole ones, or one with other noise under the same plan."""
    if run["kind"] == WHOLE:
        for _ in range(run["draws"]):
            yield dualquery.release(table, **asked)
        return
    mechanism = configure("matrix", asked["options"])
    task = Task(first.workload, data.n)
    budget, _ = BudgetRequest().resolve(mechanism, RowCount(data.n))
    plan = mechanism.plan(task, budget)
    counted = replace(data, records=CachedRows(data.records))
    for _ in range(run["draws"]):
        outcome = run_mechanism(counted, task, mechanism, plan, None, asked["threads"])
        yield replace(first, measurements=outcome.measurements)


def limits_of(release: Release, questions: Sequence[tuple[str, LinearForm]]) -> NDArray[np.float64]:
    """Return each question's interval; NaN where there is none."""
    knowledge = Knowledge(release)
    found = [knowledge.limits(Bounds(f, f, f), None, (0.0, 1.0)) for _, f in questions]
    return np.array([(each.low, each.high) for each in found], np.float64)


class Redrawn:
    """The intervals of questions, for noise that is drawn again and again under one plan.

    Which combination of the measured numbers is best does not depend on their noise: it is found
    once, and what comes of it is compared with the program's own intervals of the first release.
    """

    def __init__(self, first: Release, questions: Sequence[tuple[str, LinearForm]]) -> None:
        self.domain = first.schema.domain
        self.columns = [form.columns for _, form in questions]
        evidence = self._evidence(first)
        # About too many cells nothing is said: their deviation is NaN.
        solvers = {columns: LeastSquares(each, True) for columns, each in evidence.items()}
        self.combinations: list[NDArray[np.float64]] = []
        self.rest: list[NDArray[np.float64]] = []
        self.variances, self.critical = np.full(len(questions), np.nan), 0.0
        way = max(len(form.factors) for _, form in questions)
        self.covariances, self.beyond = np.full((2, len(questions), way), np.nan)
        for number, (columns, (_, form)) in enumerate(zip(self.columns, questions, strict=True)):
            forms = (form, *form.factors)
            if columns not in solvers:
                self.combinations.append(np.zeros((0, len(forms))))
                self.rest.append(np.full(len(forms), np.nan))
                continue
            tables = [each.table(columns).ravel() for each in forms]
            found = solvers[columns].estimate(np.stack(tables))
            combinations = found.loadings / evidence[columns].deviations[:, None]
            self.combinations.append(combinations)
            rest = found.values - evidence[columns].values @ combinations
            self.rest.append(np.where(found.spanned, rest, np.nan))
            self.variances[number] = found.covariance[0, 0] if found.spanned[0] else np.nan
            self.covariances[number, : len(forms) - 1] = found.covariance[0, 1:]
            self.critical = found.critical(LEVEL)
            if len(forms) > 2:  # how far the shares of two literals or more may surely lie above
                far = found.critical(1.0 - SURELY) * np.sqrt(np.diag(found.covariance)[1:])
                self.beyond[number, : len(far)] = np.where(found.spanned[1:], far, np.nan)
        np.testing.assert_allclose(self.limits_of(first), limits_of(first, questions), atol=1e-9)

    def _evidence(self, release: Release) -> dict[tuple[int, ...], CellEvidence]:
        assert release.measurements is not None
        measured = Measured(release.measurements, self.domain)
        found = {columns: measured.about(columns) for columns in dict.fromkeys(self.columns)}
        return {columns: each for columns, each in found.items() if each is not None}

    def limits_of(self, release: Release) -> NDArray[np.float64]:
        """Return each question's interval, NaN where there is none: float64, ``(q, 2)``."""
        evidence = self._evidence(release)
        found = np.full((len(self.columns), 1 + self.covariances.shape[1]), np.nan)
        parts = zip(self.columns, self.combinations, self.rest, strict=True)
        for number, (columns, combinations, rest) in enumerate(parts):
            known = evidence[columns].values @ combinations if len(combinations) else 0.0
            found[number, : len(rest)] = rest + known
        guesses = guesses_of(found[:, 0], self.variances, found[:, 1:], self.covariances)
        deviations = np.sqrt(self.variances)
        most = np.clip(np.fmin.reduce(found[:, 1:] + self.beyond, axis=1, initial=1.0), 0.0, 1.0)
        ends = np.empty((len(found), 2))
        for one in np.unique(most):
            at = most == one
            guess = Guesses(guesses.values[at], guesses.spreads[at])
            ends[at] = np.stack(
                bounded_interval(found[at, 0], deviations[at], 0.0, one, self.critical, guess), 1
            )
        return ends


def questions_of(
    queries: Workload, generator: np.random.Generator
) -> Iterator[tuple[str, LinearForm]]:
    """Yield questions of each form, with its name, about columns that queries look at together."""
    domain = queries.domain
    sizes = axis_sizes(queries.domain)
    for _ in range(QUESTIONS):
        codes = queries.literals[generator.integers(len(queries))]
        term = dict(_literal(domain, code) for code in codes[codes >= 0].tolist())
        yield "query", LinearForm(domain, (term,))
        kept = generator.permutation(list(term))[: max(1, len(term) - 1)]
        yield "sub-marginal", LinearForm(domain, ({int(c): term[c] for c in kept},))
        ranges, cell = {}, {}
        for column in list(term)[:2]:
            size = int(sizes[column])
            low, high = np.sort(generator.integers(size, size=2))
            place = np.arange(size)
            ranges[column] = ((low <= place) & (place <= high)).astype(np.float64)
            cell[column] = (place == generator.integers(size)).astype(np.float64)
        yield "range", LinearForm(domain, (ranges,))
        yield "cell of a table", LinearForm(domain, (cell,))


def _literal(domain: Domain, code: int) -> tuple[int, NDArray[np.float64]]:
    """Return the column of a literal, and which of its values satisfy it."""
    bit = code >> 1
    column = int(domain.column_of_bit[code >> 1])
    if domain.sizes[column] == 1:
        return column, np.array([code & 1, 1 - (code & 1)], np.float64)
    here = np.arange(domain.sizes[column]) == bit - domain.offsets[column]
    return column, (here ^ bool(code & 1)).astype(np.float64)


def table_of_every_type(rows: int) -> tuple[pl.DataFrame, Schema]:
    """Return a generated table with each kind of column, and its schema."""
    generator = np.random.default_rng(20_261_121)
    hidden = generator.normal(size=rows)
    age = np.clip(np.rint(45 + 15 * hidden + 5 * generator.normal(size=rows)), 0, 99).astype(int)
    pay = np.exp(9.5 + 0.5 * hidden + 0.5 * generator.normal(size=rows)).clip(0, 1e6)
    places = generator.choice(9, rows, p=generator.dirichlet(np.ones(9)))
    jobs = np.array(["nurse", "clerk", "smith", None, "none of these"], object)
    job = jobs[generator.integers(5, size=rows) * (hidden > -1)]
    months = generator.integers(0, 720, rows)
    frame = pl.DataFrame(
        {
            "age": age,
            "pay": np.where(generator.random(rows) < 0.1, np.nan, pay),
            "smoker": (hidden + generator.normal(size=rows) > 1).astype(int),
            "sex": np.where(generator.random(rows) < 0.5, "f", "m"),
            "place": [f"p{place}" for place in places],
            "job": job.tolist(),
            "since": [date(2020, 1, 1) + timedelta(days=int(day)) for day in months],
            "hour": np.where(age < 20, 0, generator.choice((0, 20, 38, 40), rows)),
        },
        nan_to_null=True,
    )
    columns = [
        {"name": "age", "kind": "numeric", "edges": list(range(0, 101, 10)), "integer": True},
        {
            "name": "pay", "kind": "numeric", "edges": [0, 5e3, 1e4, 2e4, 5e4, 1e6],
            "missing": "category",
        },
        {"name": "smoker", "kind": "binary"},
        {"name": "sex", "kind": "binary", "zero": "f", "one": "m"},
        {"name": "place", "kind": "categorical", "values": [f"p{place}" for place in range(9)]},
        {
            "name": "job", "kind": "categorical", "values": ["nurse", ["clerk", "smith"]],
            "missing": "category", "outside": "other",
        },
        {
            "name": "since", "kind": "date", "by": "quarter", "first": "2020-01-01",
            "last": "2021-12-31",
        },
        {
            "name": "hour", "kind": "numeric", "edges": [0, 1, 35, 41], "integer": True,
            "within": [0, 20, [38, 40]],
        },
    ]  # fmt: skip
    return frame, schema_from_dict({"declared": True, "columns": columns})


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return coverage and width by table, workload, kind of draw and form of question."""
    return (
        table.filter("known")
        .group_by("data", "workload", "kind", "form", maintain_order=True)
        .agg(
            questions=pl.len(),
            coverage=(pl.col("held") / pl.col("draws")).mean().round(4),
            least=(pl.col("held") / pl.col("draws")).min(),
            width=pl.col("width").mean().round(5),
        )
    )


def expect(table: pl.DataFrame) -> Sequence[Finding]:
    """Compare mean coverage with what is stated, and each question's by a binomial test."""
    found = []
    known = table.filter("known")
    for (name, kind), lines in known.group_by("data", "kind", maintain_order=True):
        draws, held = lines["draws"].to_numpy(), lines["held"].to_numpy()
        coverage = float((held / draws).mean())
        few = binom.cdf(held, draws, LEVEL)
        many = binom.sf(held - 1, draws, LEVEL)
        rejected = int((2 * np.minimum(few, many) < CHANCE / len(held)).sum())
        expected = f"{name}, {kind}: mean coverage {ENDS[0]} to {ENDS[1]}, no question rejected"
        figures = f"{coverage:.4f} of {len(held)} questions, {rejected} rejected"
        found.append(Finding(expected, figures, ENDS[0] <= coverage <= ENDS[1] and not rejected))
    return found


RECIPE = Recipe(
    name="coverage",
    title="How often intervals hold the truth",
    setting=(
        "Queries of the workload, their sub-marginals, ranges of values and cells of tables, by "
        "least squares over what matrix measured (epsilon 1, delta 1/n^2, replace one row): of "
        "200 releases with the least fit, which intervals do not look at, and of 10 with the "
        "default fit, all drawn without a seed. A question is rejected by a two-sided binomial "
        "test, corrected for their number (Bonferroni). The quick form has 5 of each."
    ),
    plan=plan,
    perform=perform,
    summarise=summarise,
    expect=expect,
)
