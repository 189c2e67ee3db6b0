"""Sloped buckets: what their neighbours tell of how numbers lie, in records and in answers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import expon, norm

import dualquery
from dualquery.data.schema.columns import Numeric
from dualquery.data.schema.files import schema_from_dict
from dualquery.data.schema.within import SLOPED
from dualquery.releases.slopes import with_slopes

EDGES = tuple(range(0, 101, 10))


def parts(column: Numeric, bucket: int, at: np.ndarray) -> np.ndarray:
    """Return which part of a bucket's numbers is at most some."""
    rule = column.rules[bucket]
    if rule == "uniform":
        low, high = column.edges[bucket : bucket + 2]
        return np.clip((at - low) / (high - low), 0, 1)
    return (np.array(rule)[:, None] <= at).mean(axis=0)


@pytest.mark.parametrize("law", [expon(scale=20), norm(50, 15)])
def test_they_halve_the_distance_from_a_smooth_law(law) -> None:
    sums = law.cdf(EDGES)
    shares = np.diff(sums) / (sums[-1] - sums[0])
    column = with_slopes(Numeric("x", EDGES, within=SLOPED), shares)
    sloped, even = 0.0, 0.0
    for bucket in range(1, 9):
        at = np.linspace(EDGES[bucket], EDGES[bucket + 1], 51)
        true = (law.cdf(at) - sums[bucket]) / (sums[bucket + 1] - sums[bucket])
        sloped += shares[bucket] * np.abs(parts(column, bucket, at) - true).sum()
        even += shares[bucket] * np.abs(np.linspace(0, 1, 51) - true).sum()
    assert sloped < 0.45 * even


def test_lines_stay_between_their_neighbours() -> None:
    """Exact where densities lie on a line; level at peaks, ends and beside stated numbers."""
    line = np.arange(1.0, 11.0)
    column = with_slopes(Numeric("x", EDGES, within=SLOPED), line / line.sum())
    middle = np.array([45.0])
    # From density 4.5 at 40 to 5.5 at 50, in a bucket of density 5: half of it has (4.5 + 5) / 20.
    assert parts(column, 4, middle) == pytest.approx(0.475, abs=2e-3)
    assert column.rules[0] == column.rules[9] == "uniform"
    peak = np.array([1.0, 2, 9, 1, 0, 0, 5, 5, 1, 1])
    column = with_slopes(Numeric("x", EDGES, within=SLOPED), peak / peak.sum())
    assert [rule == "uniform" for rule in column.rules].count(False) == 2  # the 2, and the first 1
    steep = np.array(column.rules[3])
    assert steep.min() >= 30
    assert steep.max() < 40
    stated = Numeric("x", EDGES, within=(*[SLOPED] * 4, 45.0, *[SLOPED] * 5))
    found = with_slopes(stated, line / line.sum()).rules
    assert (found[3], found[4], found[5]) == ("uniform", 45.0, "uniform")
    nothing = with_slopes(Numeric("x", EDGES, within=SLOPED), np.zeros(10))
    assert set(nothing.rules) == {"uniform"}


@pytest.mark.parametrize("mechanism", ["matrix", "gaussian"])
def test_records_and_answers_follow_them(mechanism, tmp_path) -> None:
    years = np.floor(expon(scale=30).ppf((np.arange(4_000) + 0.5) / 4_000)).clip(0, 99)
    frame = pl.DataFrame({"age": years.astype(int), "sex": ["f", "m"] * 2_000})
    column = {"name": "age", "kind": "numeric", "edges": EDGES, "integer": True, "within": SLOPED}
    sex = {"name": "sex", "kind": "categorical", "values": ["f", "m"]}
    schema = schema_from_dict({"declared": True, "columns": [{**column, "edges": [*EDGES]}, sex]})
    made = dualquery.release(
        frame, schema=schema, queries="all", way=1, epsilon=50.0, mechanism=mechanism, seed=1
    )
    again = dualquery.load_release(made.save(tmp_path / "release"))
    assert again.schema.column("age")[1].rules == (SLOPED,) * 10
    for level in (0.3, 0.5, 0.8):
        assert again.answer(f"quantile(age, {level})") == np.quantile(
            years, level, method="inverted_cdf"
        )
    true = (years <= 14).mean()
    assert again.answer("age<=14") == pytest.approx(true, abs=0.004)
    even = (years < 10).mean() + ((years >= 10) & (years < 20)).mean() / 2
    assert abs(even - true) > 0.008
    if mechanism == "matrix":
        assert (again.synthetic["age"] <= 14).mean() == pytest.approx(true, abs=0.004)


def test_listed_numbers_are_short() -> None:
    column = with_slopes(Numeric("x", (0, 10, 20, 50), within=SLOPED), np.array([0.6, 0.25, 0.15]))
    listed = column.within[1]
    assert isinstance(listed, tuple)
    assert all(len(f"{number!r}") <= 7 for number in listed)
