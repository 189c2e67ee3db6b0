"""Bought means: priced with the rest, kept, answered with intervals, or refused."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.estimates.means import BoughtMean
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.answering import answer_queries
from dualquery.releases.means import SHARE
from dualquery.room.row_count import RowCount
from dualquery.runtime.errors import BadInputError
from dualquery.verification import check
from tests.tables import SCHEMA, people

SMALL = {"schema": SCHEMA, "queries": 20, "way": 2, "means": "age"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mechanism": "dualquery", "options": {"rounds": 10}},
        {"mechanism": "laplace", "delta": 0.0},
        {"mechanism": "randomized-response", "delta": 0.0},
        {"mechanism": "zero"},
        {"neighbours": "add-remove", "delta": 1e-6, "epsilon": 30.0},
        {"neighbours": "add-remove", "delta": 1e-6, "rows": 280},
        {"engine": "stream", "accountant": "zcdp"},
    ],
)
def test_a_release_sells_means_with_every_mechanism(options, tmp_path) -> None:
    table = people()
    path = tmp_path / "table.csv"
    table.write_csv(path)
    made = dualquery.release(path, **SMALL | {"epsilon": 4.0} | options)
    made.save(tmp_path / "release")
    assert check(tmp_path / "release").faults == ()
    again = dualquery.load_release(tmp_path / "release")
    assert again.means == made.means
    (mean,) = made.means
    assert mean.column == "age"
    assert mean.rounding == (0.0 if SCHEMA.column("age")[1].integer else mean.rounding)
    answer, total = answer_queries(again, ["mean(age)", "sum(age)"])
    assert answer["source"] == total["source"] == "released"
    if again.records is not None:
        (given,) = answer_queries(again, ["mean(age) given flag"])
        assert given["source"] != "released"
    assert answer["answer"] == mean.likely
    assert total["answer"] == pytest.approx(mean.likely * again.n)
    assert answer["low"] <= answer["answer"] <= answer["high"]
    assert "bought" in answer["basis"]
    assert len(made.answers) == 20


def test_the_mechanism_pays_for_the_means() -> None:
    plain = dualquery.release(people(), **SMALL | {"means": None}, mechanism="gaussian")
    with_means = dualquery.release(people(), **SMALL, mechanism="gaussian")
    ratio = with_means.parameters["scale"] / plain.parameters["scale"]
    assert 1.0 < ratio < 1.0 / (1.0 - SHARE) + 1e-6
    first = with_means.proof["schedule"][0]["events"][0]
    assert first["ground"]["statistic"] == "ColumnSums"
    assert not plain.means


def intervals_of(noise, rows: RowCount, level: float, truth: float, draws: np.ndarray) -> float:
    inside = 0
    for draw in draws:
        mean = BoughtMean("age", truth + draw, 0.5, noise, 0.0, 100.0, 0.0)
        found = mean.interval(rows, level)
        inside += found.lower[0] <= truth <= found.upper[0]
    return inside / len(draws)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_cover_as_often_as_they_say(level: float) -> None:
    generator = np.random.default_rng(0)
    rows = RowCount(100)
    gaussian = intervals_of("gaussian", rows, level, 40.0, generator.normal(0, 0.5, 2000))
    laplace = intervals_of("discrete laplace", rows, level, 40.0, generator.laplace(0, 0.5, 2000))
    assert abs(gaussian - level) < 5 * np.sqrt(level * (1 - level) / 2000)
    assert laplace > level - 5 * np.sqrt(level * (1 - level) / 2000)


def test_intervals_allow_for_the_rows_that_are_not_known() -> None:
    mean = BoughtMean("age", 40.0, 0.5, "gaussian", 0.0, 100.0, 0.0)
    bought = RowCount(100, Neighbours.ADD_REMOVE, 5.0)
    widths = [
        (found.upper - found.lower)[0]
        for found in (mean.interval(RowCount(100)), mean.interval(bought))
    ]
    assert widths[0] < widths[1]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (people(), {"means": "sex"}, "has no numbers"),
        (people(), {"means": "agee"}, "did you mean"),
        (np.ones((5, 3), np.uint8), {"means": "0", "schema": None}, "items have no numbers"),
    ],
)
def test_columns_that_have_no_mean_are_refused(table, options, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        dualquery.release(table, **SMALL | options)


def test_a_damaged_mean_is_told(tmp_path) -> None:
    mean = BoughtMean("age", 40.0, 0.5, "gaussian", 0.0, 100.0, 0.0)
    assert BoughtMean.from_dict(mean.to_dict()) == mean
    wrong = ({"noise": "loud"}, {"scale": 0.0}, {"mean": "40"}, {"low": 200.0}, {"extra": 1})
    for change in wrong:
        with pytest.raises((ValueError, TypeError)):
            BoughtMean.from_dict({**mean.to_dict(), **change})


def test_seeded_means_are_unbiased() -> None:
    table = people()
    truth = float(pl.Series(table["age"]).mean())
    found = [
        dualquery.release(table, **SMALL, mechanism="zero", seed=seed).means[0]
        for seed in range(200)
    ]
    off = (np.array([each.mean for each in found]) - truth) / found[0].scale
    assert abs(off.mean()) < 4 / np.sqrt(len(off))
    assert found[0].noise == "discrete laplace"  # the mechanism is pure
    assert 0.8 < off.std() / np.sqrt(2) < 1.2
    assert len({*itertools.chain(off)}) > 1
