"""Intervals cover what they say they cover, and nothing has one that was not measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import dualquery
from dualquery.answering import answer_queries
from dualquery.data.load import load
from dualquery.intervals import LEVEL, gaussian_half_width, laplace_half_width


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.5, 0.51, 0.7, 1.0, 1.02, 1.53, 4.0, 77.7])
def test_half_widths_cover_the_noise(scale: float) -> None:
    inside = 1 - 2 * norm.sf(gaussian_half_width(scale) / scale)
    assert LEVEL <= inside < LEVEL + 1e-6
    steps = np.arange(-2000, 2001)
    weights = np.exp(-np.abs(steps) / scale)
    share = weights[np.abs(steps) <= laplace_half_width(scale)].sum() / weights.sum()
    assert share >= LEVEL - 1e-12


@pytest.mark.parametrize(("mechanism", "delta"), [("gaussian", 1e-6), ("laplace", 0.0)])
def test_intervals_of_noisy_answers_cover_the_truth(mechanism: str, delta: float) -> None:
    """Of 2,000 independent intervals 95% cover: six deviations below is 1e-9."""
    made = dualquery.release(
        "adult", queries=2000, mechanism=mechanism, delta=delta, epsilon=5.0, seed=3
    )
    data = load("adult")
    truth = made.workload.counts(data.records, threads=1) / data.n
    assert made.intervals is not None
    inside = (made.intervals.lower <= truth) & (truth <= made.intervals.upper)
    assert inside.mean() > LEVEL - 6 * np.sqrt(LEVEL * (1 - LEVEL) / 2000)
    width = made.intervals.upper - made.intervals.lower
    assert width.max() < 1.0


def test_mwem_has_intervals_for_what_it_measured(tmp_path: Path) -> None:
    """Ten intervals of 95%: seven or more cover, but for a chance of 1e-3."""
    made = dualquery.release(
        "adult",
        columns="sex,income,race",
        queries="all",
        way=2,
        mechanism="mwem",
        options={"iterations": 10},
        seed=1,
    )
    data = load("adult", columns="sex,income,race")
    truth = made.workload.counts(data.records, threads=1) / data.n
    assert made.intervals is not None
    known = ~np.isnan(made.intervals.lower)
    assert set(np.flatnonzero(known)) == {line["query"] for line in made.trace}
    inside = (made.intervals.lower <= truth) & (truth <= made.intervals.upper)
    assert inside[known].sum() >= 7

    loaded = dualquery.load_release(made.save(tmp_path / "made"))
    assert loaded.intervals is not None
    np.testing.assert_array_equal(loaded.intervals.lower, made.intervals.lower)
    table = pl.read_parquet(tmp_path / "made" / "answers.parquet")
    assert table["interval_low"].null_count() == len(truth) - 10
    assert made.summary()["intervals"]["answers"] == 10


def test_what_is_not_measured_has_none(tmp_path: Path) -> None:
    made = dualquery.release("adult", queries=100, mechanism="independent")
    assert made.intervals is None
    loaded = dualquery.load_release(made.save(tmp_path / "made"))
    assert loaded.intervals is None
    assert loaded.answer_table["interval_low"].null_count() == 100
    (found,) = answer_queries(loaded, [made.answer_table["query"][0]])
    assert found["interval"] is None


def test_an_answer_comes_with_its_interval() -> None:
    made = dualquery.release("adult", queries=20, mechanism="gaussian", delta=1e-6)
    (found,) = answer_queries(made, [made.answer_table["query"][3]])
    assert made.intervals is not None
    assert tuple(found["interval"]) == made.intervals.of(3)


def test_sampled_mwem_has_intervals_for_the_tables_it_measured() -> None:
    """Of some 60 intervals of 95%, nearly independent, 48 or more cover but for about 1e-5."""
    made = dualquery.release(
        "adult",
        columns="sex,income,race",
        queries=90,
        way=2,
        mechanism="mwem-sampled",
        options={"rounds": 15, "population": 2000},
        delta=1e-6,
        seed=2,
    )
    data = load("adult", columns="sex,income,race")
    truth = made.workload.counts(data.records, threads=1) / data.n
    assert made.intervals is not None
    known = ~np.isnan(made.intervals.lower)
    measured = {frozenset(made.workload.literals[line["query"]] >> 1) for line in made.trace}
    asked = [frozenset(row >> 1) for row in made.workload.literals]
    np.testing.assert_array_equal(known, [each in measured for each in asked])
    inside = (made.intervals.lower <= truth) & (truth <= made.intervals.upper)
    assert inside[known].mean() >= 0.8
