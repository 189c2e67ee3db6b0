"""Counts, shares and sums are of the true rows, or their weight, whatever number was stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery import Unit, Weight
from dualquery.data.schema.columns import Binary, Categorical, Numeric
from dualquery.data.schema.table import TableSchema
from dualquery.releases.answer.answering import answer_queries
from dualquery.releases.answer.cross_tables import cross_table
from dualquery.report import report
from dualquery.rules.reading import rules_of
from dualquery.verification import verify

ROWS = 6000
SCHEMA = TableSchema(
    (
        *map(Binary, ("smoker", "a", "b", "c", "d")),
        Categorical("sex", (("f",), ("m",))),
        Categorical("edu", tuple((value,) for value in "uvwxyz")),
        Numeric("age", tuple(float(edge) for edge in range(0, 81, 10)), integer=True),
    ),
    name="survey",
    declared=True,
)
HOMES = Unit("home", max_rows=3)
LINKED = {"schema": SCHEMA, "delta": 1e-7, "neighbours": "add-remove"}


def survey(rows: int = ROWS) -> pl.DataFrame:
    """Return persons in households, columns of which depend on each other."""
    rng = np.random.default_rng(0)
    latent = rng.random(rows)
    return pl.DataFrame(
        {
            "smoker": (rng.random(rows) < 0.15 + 0.2 * latent).astype(int),
            "a": (rng.random(rows) < 0.5).astype(int),
            "b": (rng.random(rows) < latent).astype(int),
            "c": (rng.random(rows) < 0.9).astype(int),
            "d": (rng.random(rows) < 0.03).astype(int),
            "sex": rng.choice(["f", "m"], rows),
            "edu": rng.choice(list("uvwxyz"), rows, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05]),
            "age": rng.integers(0, 80, rows),
            "home": np.sort(rng.integers(0, rows // 2, rows)),
            "w": rng.choice([0.5, 1.0, 2.5, 7.0], rows),
        }
    )


def kept(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that count where a household has three at most."""
    return table.filter(pl.int_range(pl.len()).over("home") < HOMES.max_rows)


def truths(table: pl.DataFrame, weight: str | None = None) -> dict[str, float]:
    """Return the true answers of some questions, by Polars alone."""
    weights = table[weight].to_numpy() if weight else np.ones(table.height)
    conditions = {
        "smoker=1": pl.col("smoker") == 1,
        "a=0": pl.col("a") == 0,
        "sex=f": pl.col("sex") == "f",
        "edu=u": pl.col("edu") == "u",
        "edu!=u": pl.col("edu") != "u",
        "smoker=1 & b=1": (pl.col("smoker") == 1) & (pl.col("b") == 1),
        "c=1 & d=0 & edu!=z": (pl.col("c") == 1) & (pl.col("d") == 0) & (pl.col("edu") != "z"),
    }
    found = {}
    for text, condition in conditions.items():
        counted = float(weights @ table.select(condition).to_series().to_numpy())
        found[f"count({text})"], found[text] = counted, counted / weights.sum()
    women = table["sex"].to_numpy() == "f"
    found["smoker=1 given sex=f"] = float(
        weights[women] @ table["smoker"].to_numpy()[women] / weights[women].sum()
    )
    return found


def inside(lines: list[dict[str, Any]], true: dict[str, float], times: float) -> list[bool]:
    """Return which true answers lie within so many half-lengths of their intervals' middles."""
    found = []
    for line in lines:
        assert line["low"] is not None, line
        half = (line["high"] - line["low"]) / 2
        apart = abs(true[line["query"]] - (line["high"] + line["low"]) / 2)
        found.append(apart <= times * half + 1e-6 * abs(true[line["query"]]))
    return found


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("name", ["matrix", "probed", "gaussian", "laplace", "auto"])
def test_counts_do_not_rest_on_the_stated_rows(name, factor, tmp_path) -> None:
    """Before, a binary column's count moved halfway to the stated number."""
    asked = {"marginals": "all"} if name in ("gaussian", "laplace") else {"queries": 2000}
    options = {"delta": 0.0} if name == "laplace" else {}
    made = dualquery.release(
        survey(), mechanism=name, epsilon=50.0, rows=round(factor * ROWS), seed=1, way=3,
        **LINKED | options | asked,
    )  # fmt: skip
    true = truths(survey())
    assert all(inside(answer_queries(made, list(true)), true, 4.0))
    assert made.base.known == "measured"
    assert made.base.amount == pytest.approx(ROWS, abs=10)
    assert verify(made.save(tmp_path / "made")).damaged == ()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dualquery", {"rounds": 60, "samples": 300}),
        ("mwem", {"iterations": 5}),
        ("mwem-sampled", {"rounds": 12, "population": 3000}),
        ("independent", {}),
        ("barak", {"fit": "none"}),
        ("staged", {}),
    ],
)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_shares_do_not_rest_on_the_stated_rows(name, options, factor) -> None:
    """Mechanisms that go by the number of rows get the one that is measured first."""
    columns = ("smoker", "a", "b", "c", "d")
    made = dualquery.release(
        survey().select(columns), mechanism=name, options=options, epsilon=50.0, queries="all",
        way=1, signed=False, rows=round(factor * ROWS), seed=1,
        **LINKED | {"schema": TableSchema(SCHEMA.columns[:5], name="five", declared=True)},
    )  # fmt: skip
    for column in columns:
        true = survey()[column].sum()
        assert made.answer(f"count({column})") == pytest.approx(true, abs=0.04 * ROWS)


def test_households_count_persons_as_the_page_says() -> None:
    """The recipe of `dualquery/data/README.md`: K times the number of units is stated."""
    table = survey()
    true = truths(kept(table))
    made = dualquery.release(
        table, mechanism="matrix", epsilon=50.0, unit=HOMES, queries=2000, seed=1,
        rows=3 * table["home"].n_unique(), **LINKED | {"neighbours": "replace-one"},
    )  # fmt: skip
    assert all(inside(answer_queries(made, list(true)), true, 4.0))


def test_weighted_sums_and_forced_counts_are_of_weight() -> None:
    """Before, both were multiplied by copies: a hundred times too much."""
    table = survey()
    ruled = dualquery.data.schema_from_dict(
        {**SCHEMA.to_dict(), "rules": ["d=1 & c=1 => a=1"]} | {"declared": True}
    )
    table = table.filter(~((pl.col("d") == 1) & (pl.col("c") == 1) & (pl.col("a") == 0)))
    made = dualquery.release(
        table, mechanism="matrix", epsilon=50.0, weight=Weight("w", 7.0), queries=2000, seed=1,
        means="age", rows=6000, **LINKED | {"schema": ruled},
    )  # fmt: skip
    assert rules_of(made.schema).boxes
    true = truths(table, "w")
    weights = table["w"].to_numpy()
    true["sum(age)"] = float(weights @ table["age"].to_numpy())
    true["mean(age)"] = true["sum(age)"] / weights.sum()
    true["count(d=1 & c=1 & a=0)"] = 0.0
    true["count(not (d=1 & c=1 & a=0))"] = float(weights.sum())
    lines = answer_queries(made, list(true))
    assert all(inside(lines, true, 4.0))
    for line in lines:
        assert line["low"] <= line["answer"] <= line["high"] or line["source"] == "released"
    cells = cross_table(made, "sex", "smoker", value="count")
    for cell in cells.cells:
        assert cell["answer"] < weights.sum()
    assert f"{made.base.text}" in report(made)
    assert "total weight" in report(made)


def test_one_question_without_an_answer_keeps_the_others_from_none() -> None:
    made = dualquery.release(
        survey(), schema=SCHEMA, mechanism="gaussian", queries=["smoker=1", "a=1 & b=1"], seed=1
    )
    asked = ["smoker=1", "edu=u & c=1", "count(smoker=1)"]
    first, unknown, last = answer_queries(made, asked)
    assert first["answer"] == pytest.approx(survey()["smoker"].mean(), abs=0.05)
    assert last["answer"] is not None
    assert unknown["answer"] is unknown["low"] is None
    assert unknown["basis"].startswith("edu=u & c=1: ")
    with pytest.raises(dualquery.BadInputError):
        answer_queries(made, asked[1:2])


REFERENCE = {
    "count(smoker=1)": (57.2, 171.7),
    "count(a=0)": (56.0, 168.0),
    "count(sex=f)": (51.9, 155.7),
    "count(edu=u)": (61.2, 183.5),
    "count(smoker=1 & b=1)": (66.7, 193.9),
    "count(c=1 & d=0 & edu!=z)": (108.7, 281.7),
    "smoker=1": (0.00954, 0.0321),
    "edu!=u": (0.0102, 0.0343),
    "smoker=1 given sex=f": (0.0193, 0.0647),
}
"""Mean lengths on commit 353c7a3 with the true number stated: of persons, and of households'."""


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0])
@pytest.mark.parametrize("units", [False, True])
def test_intervals_cover_whatever_rows_were_stated(factor, units) -> None:
    """At epsilon 1, over 60 releases: 95%, and no longer than 1.3 times `REFERENCE`."""
    table = survey()
    counted = kept(table) if units else table
    true, hits = truths(counted), []
    lengths = dict.fromkeys(REFERENCE, 0.0)
    unit = {"unit": HOMES} if units else {}
    for seed in range(60):
        made = dualquery.release(
            table if units else table.drop("home"), mechanism="matrix", queries=2000, seed=seed,
            rows=round(factor * counted.height), **unit, **LINKED,
        )  # fmt: skip
        lines = answer_queries(made, list(true))
        hits += inside(lines, true, 1.0)
        for line in lines:
            if line["query"] in lengths:
                lengths[line["query"]] += (line["high"] - line["low"]) / 60
    assert 0.92 <= np.mean(hits) <= 0.98
    ratios = {text: lengths[text] / REFERENCE[text][units] for text in REFERENCE}
    assert max(ratios.values()) <= 1.3, ratios
