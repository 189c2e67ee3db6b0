"""Bought means: priced with the rest, kept, answered with intervals, or refused."""

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data import Numeric, TableSchema
from dualquery.data.schema.grids import Grid
from dualquery.estimates.intervals import Total
from dualquery.estimates.means import BoughtMean, combined
from dualquery.releases.answer.answering import answer_queries
from dualquery.releases.make.beside import SHARE
from dualquery.report.page import report
from dualquery.runtime.errors import BadInputError
from dualquery.verification import verify
from tests.tables import SCHEMA, people

SMALL = {"schema": SCHEMA, "queries": 20, "way": 2, "means": "age"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mechanism": "dualquery", "options": {"rounds": 6, "samples": 9}},
        {"mechanism": "randomized-response", "delta": 0.0},
        {"neighbours": "add-remove", "delta": 1e-6, "epsilon": 30.0},
        {"engine": "stream", "accountant": "zcdp"},
    ],
)
def test_a_release_sells_means_with_every_mechanism(options, tmp_path) -> None:
    table, path = people(), tmp_path / "table.csv"
    table.write_csv(path)
    made = dualquery.release(path, **SMALL | {"epsilon": 4.0} | options)
    made.save(tmp_path / "release")
    assert verify(tmp_path / "release").faults == ()
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
    assert total["answer"] == pytest.approx(answer["answer"] * again.base.amount, rel=0.02)
    if again.measurements is None:
        assert answer["answer"] == np.clip(mean.mean, answer["low"], answer["high"])
    assert answer["low"] <= answer["answer"] <= answer["high"]
    assert "bought" in answer["basis"]
    assert len(made.answers) == 20


def test_the_mechanism_pays_for_the_means() -> None:
    plain = dualquery.release(people(), **SMALL | {"means": None}, mechanism="gaussian")
    with_means = dualquery.release(people(), **SMALL, mechanism="gaussian")
    ratio = with_means.parameters["scale"] / plain.parameters["scale"]
    assert 1.0 < ratio < 1.0 / (1.0 - SHARE) + 1e-6
    assert with_means.proof["schedule"][0]["events"][0]["ground"]["statistic"] == "ColumnSums"
    assert not plain.means


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (people(), {"means": "sex"}, "is not declared numeric"),
        (people(), {"means": "agee"}, "did you mean"),
        (np.ones((5, 3), np.uint8), {"means": "0", "schema": None}, "items have no numbers"),
    ],
)
def test_columns_that_have_no_mean_are_refused(table, options, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        dualquery.release(table, **SMALL | options)


def test_evaluation_and_report_show_what_was_bought() -> None:
    table = people()
    made = dualquery.release(table, **SMALL, mechanism="independent", epsilon=50.0)
    compared = dualquery.compare(made, table)
    (line,) = compared.to_dict()["means"]
    assert line["column"] == "age"
    assert line["truth"] == pytest.approx(float(table["age"].mean()))
    assert line["truth_within"] == made.means[0].rounding == 0.0  # of whole numbers
    assert line["low"] <= line["mean"] <= line["high"]
    assert "Means that were measured by themselves" in report(made)
    assert "Means that were bought" in report(made, compared)
    plain = dualquery.release(table, **SMALL | {"means": None}, mechanism="independent")
    assert dualquery.compare(plain, table).to_dict()["means"] == []
    assert "Means that were" not in report(plain)


def test_two_sources_of_a_mean_count_as_far_as_they_agree() -> None:
    bought = BoughtMean("age", 40.0, 2.0, "gaussian", 0.0, 100.0, 0.0)
    assert combined(bought, 41.0, 2.0) == pytest.approx(40.5)
    assert combined(bought, 41.0, 0.0) == pytest.approx(41.0)
    assert combined(bought, 90.0, 0.1) == pytest.approx(40.0, abs=0.1)  # the buckets are wrong
    assert combined(bought, 41.0, 1e9) == pytest.approx(40.0)
    ends = BoughtMean("age", 40.0, 2.0, "discrete laplace", 0.0, 45.0, 0.0).sum_limits  # 10 ln 40
    ten = Total("weight", "exact", 10, 10.0, of_copy=0.5)
    assert ends(ten) == pytest.approx((163.1112, 225.0))
    low, high = BoughtMean("age", -9.0, 2.0, "gaussian", 0.0, 45.0, 0.0).sum_limits(ten)
    assert (low, high) == (0.0, pytest.approx(19.6, rel=1e-3))  # a mean below all that can be


def test_columns_of_a_long_range_get_most() -> None:
    """Relative errors, weighed alike: costs go with range over typical size."""
    rows = np.random.default_rng(0).integers(0, 2, (400, 2))
    table = pl.DataFrame({"a": rows[:, 0], "pay": 1000.0 * rows[:, 1]})
    edges = (0.0, 1.0, 10.0, 100.0, 1000.0)
    columns = (Numeric("a", (0, 1, 2), integer=True), Numeric("pay", edges))
    asked = {"schema": TableSchema(columns, declared=True), "queries": 4, "way": 1, "epsilon": 3.0}
    made = dualquery.release(table, **asked, means="a,pay", mechanism="gaussian")
    a, pay = (each.scale / (each.high - each.low) for each in made.means)
    needs = 2.0 / 1.0, 1000.0 / 55.0  # over the middle of 0, 2 and of 1, 10, 100, 1000
    assert (a / pay) ** 2 == pytest.approx(needs[1] / needs[0], rel=1e-3)
    pure = dualquery.release(table, **asked, means="a,pay", mechanism="laplace", delta=0.0)
    a, pay = (each.scale / (each.high - each.low) for each in pure.means)
    assert (a / pay) ** 1.5 == pytest.approx(needs[1] / needs[0], rel=1e-3)
    assert Grid.of(Numeric("born", (1940.0, 1970.0, 2005.0))).need == 1.0  # far from 0
    alone = dualquery.release(table, **asked, means="a,pay", mechanism="uniform", delta=0.0)
    assert alone.means[0].scale == pytest.approx(0.1 * pure.means[0].scale, rel=1e-3)  # all of it


@pytest.mark.parametrize("beyond", [10_000.0, 900_000.0])
def test_records_follow_a_bought_mean(beyond: float) -> None:
    """The schema knows nothing of how far the last bucket's numbers lie beyond its lower edge."""
    generator = np.random.default_rng(1)
    low = generator.uniform(0.0, 100_000.0, 4_000)
    high = 200_000.0 + np.minimum(generator.exponential(beyond, 4_000), 1.3e6)
    pay = np.where(generator.random(4_000) < 0.05, high, low)
    edges = (0.0, 1e4, 2e4, 3e4, 4e4, 5e4, 6e4, 7e4, 8e4, 1e5, 2e5, 1.5e6)
    schema = TableSchema((Numeric("pay", edges),), declared=True)
    asked = {"schema": schema, "mechanism": "independent", "epsilon": 30.0, "way": 1}
    plain, made = (
        dualquery.release(pl.DataFrame({"pay": pay}), **asked, queries="all", means=means)
        for means in (None, "pay")
    )
    truth = float(pay.mean())
    assert abs(float(plain.synthetic["pay"].mean()) / truth - 1.0) > 0.03
    for rows in (made.synthetic, made.sample(9_000, seed=0)):
        assert float(rows["pay"].mean()) == pytest.approx(truth, rel=0.03)
