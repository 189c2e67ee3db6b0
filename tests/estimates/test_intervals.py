"""Intervals cover what they say they cover, and nothing has one that was not measured."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import dualquery
from dualquery.estimates import intervals
from dualquery.estimates.intervals import LEVEL, Intervals, Total, laplace_half_width
from dualquery.estimates.means import BoughtMean
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.answer.answering import answer_queries
from dualquery.room.row_count import RowCount
from dualquery.rows.engines import load
from tests.tables import SCHEMA, people

AR = Neighbours.ADD_REMOVE


@pytest.mark.parametrize("scale", [0.05, 0.5, 0.51, 1.02, 77.7])
def test_half_widths_cover_the_noise(scale: float) -> None:
    assert LEVEL <= (1 - 2 * norm.sf(intervals.gaussian_half_width(scale) / scale)) < LEVEL + 1e-6
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
    inside = (made.intervals.lower <= truth) & (truth <= made.intervals.upper)
    assert inside.mean() > LEVEL - 6 * np.sqrt(LEVEL * (1 - LEVEL) / 2000)
    assert (made.intervals.upper - made.intervals.lower).max() < 1.0


def test_mwem_has_intervals_for_what_it_measured(tmp_path: Path) -> None:
    """Ten intervals of 95%: seven or more cover, but for a chance of 1e-3."""
    asked = {"queries": "all", "way": 2, "mechanism": "mwem", "options": {"iterations": 10}}
    made = dualquery.release("adult", columns="sex,income,race", seed=1, **asked)
    data = load("adult", columns="sex,income,race")
    truth = made.workload.counts(data.records, threads=1) / data.n
    known = ~np.isnan(made.intervals.lower)
    assert set(np.flatnonzero(known)) == {line["query"] for line in made.trace}
    assert ((made.intervals.lower <= truth) & (truth <= made.intervals.upper))[known].sum() >= 7
    loaded = dualquery.load_release(made.save(tmp_path / "made"))
    np.testing.assert_array_equal(loaded.intervals.lower, made.intervals.lower)
    table = pl.read_parquet(tmp_path / "made" / "answers.parquet")
    assert table["interval_low"].null_count() == len(truth) - 10
    assert made.summary()["intervals"]["answers"] == 10


def test_an_answer_comes_with_its_interval() -> None:
    made = dualquery.release("adult", queries=20, mechanism="gaussian", delta=1e-6)
    (found,) = answer_queries(made, [made.answer_table["query"][3]])
    # No other query says anything of this one, so least squares over all of them say the same.
    assert found["interval"] == pytest.approx(made.intervals.of(3), abs=1e-9)
    assert (found["low"], found["high"]) == found["interval"]
    assert found["level"] == LEVEL
    assert "least squares" in found["basis"]


def test_intervals_of_cut_rows_say_so() -> None:
    made = dualquery.release("biased:300,9,1", queries=20, max_ones_per_row=3, delta=1e-6)
    assert made.intervals.basis.endswith("; of the rows as cut to 3 ones each")


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (0.25, 1.0)])
def test_intervals_allow_for_a_noisy_number_of_rows(low: float, high: float) -> None:
    """Whatever the true answers, and what the rows too many are counted as; by enumeration."""
    errors = norm.ppf((np.arange(200) + 0.5) / 200)
    true, absent, deviation, errors = np.meshgrid(
        np.linspace(low, high, 4), np.linspace(min(low, 0.0), high, 4), [0.005, 0.03], errors
    )
    half = intervals.gaussian_half_width(1.0) * deviation
    added = np.arange(-200, 201)
    chances = np.exp(-np.abs(added) / RowCount(900, AR, 0.05).noise_scale)
    for absent_row_answer in (None, absent):
        held = np.zeros(true.shape[:3])
        for rows, chance in zip(900 + added, chances / chances.sum(), strict=True):
            mean = (900 * true + (rows - 900) * absent) / rows + deviation * errors
            ends = intervals.clipped_interval(mean, half, low, high)
            around = Intervals(*ends, "measured", absent_row_answer=absent_row_answer)
            found = around.for_total(Total.of(RowCount(int(rows), AR, 0.05)), low, high)
            assert np.all((found.lower >= low) & (found.upper <= high))
            held += chance * ((found.lower <= true + 1e-9) & (true - 1e-9 <= found.upper)).mean(-1)
        assert held.min() >= LEVEL - 1e-9
        assert held.max() < 0.99 or absent_row_answer is None
    assert found.level == LEVEL
    # Few rows say next to nothing of shares, and the intervals know.
    lost = Intervals(np.array([0.49]), np.array([0.51]), "measured", absent_row_answer=0.0)
    assert lost.for_total(Total.of(RowCount(80, AR, 0.05)), 0.0, 1.0).of(0) == (0.0, 1.0)


@pytest.mark.parametrize("noise", ["gaussian", "discrete laplace"])
def test_limits_of_a_bought_sum_allow_for_both_noises(noise: str) -> None:
    """4,000 draws of the noise of a mean of 70, and of that of 900 rows, which matter alike."""
    total, rng = Total.of(RowCount(900, AR, 0.05)), np.random.default_rng(0)
    scale, held = total.scale * 50 / 900, 0
    means = (rng.normal if noise == "gaussian" else rng.laplace)(70.0, scale, 4_000)
    for mean, rows in zip(means, rng.laplace(900.0, total.scale, 4_000), strict=True):
        bought = BoughtMean("a", mean, scale, noise, 0.0, 100.0, 0.0)
        low, high = bought.sum_limits(replace(total, estimate=rows))
        held += low <= 63_000.0 <= high
    assert 0.945 <= held / 4_000 < 0.98


def test_intervals_say_that_a_stated_number_of_rows_is_one() -> None:
    known = Intervals(np.array([0.4, np.nan]), np.array([0.6, np.nan]), "measured")
    stated = known.for_total(Total.of(RowCount(8000, AR)), 0.0, 1.0)
    assert stated.basis == "measured; if the number of rows is 8,000, as was stated"
    assert (stated.of(0), stated.of(1), stated.level) == (known.of(0), None, LEVEL)
    assert known.for_total(Total.of(RowCount(8000)), 0.0, 1.0) is known


@pytest.mark.parametrize(
    ("mechanism", "options", "asked"),
    [
        ("gaussian", {}, {"queries": 20, "way": 2}),
        ("mwem", {"iterations": 1, "cuboids": True}, {"marginals": 1, "way": 2}),
        ("matrix", {"components": 0}, {"marginals": 2, "way": 2}),
    ],
)
def test_intervals_cover_where_the_number_of_rows_is_private(mechanism, options, asked) -> None:
    """Coverage in 20 seeded releases; when the noise in the rows was forgotten, it was 80%."""
    table, inside = people(1000), []
    for seed in range(20):
        made = dualquery.release(
            table, schema=SCHEMA, mechanism=mechanism, options=options, epsilon=2.0,
            delta=0.0 if mechanism in ("laplace", "mwem") else 1e-6, neighbours="add-remove",
            seed=seed, **asked,
        )  # fmt: skip
        truth = made.workload.counts(load(table, schema=SCHEMA).records, threads=1) / 1000
        covered = (made.intervals.lower <= truth) & (truth <= made.intervals.upper)
        inside.extend(covered[~np.isnan(made.intervals.lower)].tolist())
    assert np.mean(inside) >= 0.94
    assert made.options["rows"] is None
    assert made.summary()["intervals"]["level"] == LEVEL
