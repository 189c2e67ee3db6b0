"""Releases that protect units say so everywhere: statement, options, proof, file, report."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery import BadInputError, BudgetFile, Unit
from dualquery.releases.compare.evaluation import compare
from dualquery.verification import verify
from tests.tables import SCHEMA, people
from tests.verification.test_verify import EVENT, edit, put

HOMES = 400
FIVE = Unit("home", max_rows=5)
ASKED = {"schema": SCHEMA, "queries": 40, "way": 2, "epsilon": 8.0}


def homes(rows: int = 1200) -> pl.DataFrame:
    more = np.random.default_rng(4).integers(0, HOMES, rows - HOMES)
    home = np.random.default_rng(3).permutation(np.concatenate((np.arange(HOMES), more)))
    return people(rows).with_columns(home=pl.Series(home))


def release(**asked: Any) -> dualquery.Release:
    """Return a release of people in homes, by Gaussian noise unless another way is asked for."""
    return dualquery.release(homes(), **{"mechanism": "gaussian", **ASKED, **asked})


KEPT = homes().filter(pl.int_range(pl.len()).over("home") < 5).height


@pytest.fixture(scope="module")
def played() -> dualquery.Release:
    return release(mechanism="dualquery", options={"rounds": 10, "samples": 20}, unit=FIVE)


@pytest.mark.parametrize("mechanism", ["dualquery", "laplace"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_release_says_what_it_protects_and_is_confirmed(mechanism, neighbours, tmp_path) -> None:
    delta = None if neighbours == "replace-one" or mechanism == "laplace" else 1e-6
    options = {"rounds": 6, "samples": 9} if mechanism == "dualquery" else {}
    asked = {"mechanism": mechanism, "options": options, "neighbours": neighbours, "delta": delta}
    made = release(unit=FIVE, **asked)
    one = "one unit of column 'home' with at most 5 rows"
    assert made.privacy.private
    assert one in made.privacy.neighbours
    assert one in made.privacy.guarantee()
    assert made.privacy.neighbours.endswith("the number of rows released with noise")
    units = HOMES if neighbours == "replace-one" else None
    assert made.proof["unit"] == {"column": "home", "max_rows": 5, "units": units}
    assert made.proof["rows"]["bought"]["sensitivity"] == 5.0
    if neighbours == "replace-one" and delta is None and made.privacy.delta:
        assert made.privacy.delta == pytest.approx(HOMES**-2)
    assert "home" not in made.schema.column_names
    folder = made.save(tmp_path / "made")
    assert verify(folder).faults == ()
    assert dualquery.load_release(folder).options["unit"] == {"column": "home", "max_rows": 5}


def test_the_number_of_rows_may_be_stated(tmp_path) -> None:
    made = release(unit=FIVE, rows=5 * HOMES)
    assert made.proof["rows"]["bought"] is None
    assert made.base.amount == pytest.approx(KEPT, abs=100)
    assert "the number of rows released with noise" in made.privacy.neighbours
    assert verify(made.save(tmp_path / "made")).faults == ()
    with pytest.raises(BadInputError, match="--rows states a number of rows that"):
        dualquery.release(homes(), rows=100, **ASKED)


def test_the_truth_is_of_all_rows_and_answers_are_near_it() -> None:
    made = release(unit=FIVE, means="age", epsilon=1000.0)
    (mean,) = dualquery.answer_queries(made, ["mean(age)"])
    assert mean["basis"].endswith("of at most 5 rows a unit")
    assert abs(made.n - KEPT) < 20
    found = dualquery.evaluate(made, homes())
    assert found["max_error"] < 0.1
    assert (found["rows"], found["rows_counted"]) == (homes().height, KEPT)
    assert found["rows_of_release"] == made.n
    compared = compare(made, homes())
    assert compared.size == f"{homes().height:,} rows, {KEPT:,} counted: at most 5 of a unit"
    assert compared.protected == "replace-one of units (column 'home')"
    assert "of at most 5 rows a unit" in made.intervals.basis
    whole = release(unit=Unit("home", 100), epsilon=1e4)
    assert dualquery.evaluate(whole, homes())["max_error"] < 0.02


def test_a_mean_with_too_much_noise_is_refused_before_anything_is_paid(tmp_path) -> None:
    budget = BudgetFile.create(tmp_path / "b", epsilon=1.0, delta=1e-5, unit="home")
    asked = {"epsilon": 1e-5, "means": "age", "unit": Unit("home", 100_000), "rows": 10**7}
    with pytest.raises(BadInputError, match="Gaussian noise of scale"):
        release(budget=tmp_path / "b", **asked)
    assert budget.read().spent == (0.0, 0.0)


def test_a_private_number_of_units_decides_nothing_before_it_is_bought() -> None:
    one = people(40).with_columns(home=pl.lit(7))
    asked = {**ASKED, "epsilon": 900.0, "neighbours": "add-remove", "delta": 1e-6}
    assert dualquery.release(one, mechanism="gaussian", unit=Unit("home", 40), **asked)


def test_one_budget_file_has_one_unit(tmp_path) -> None:
    def file(name, **terms):
        return BudgetFile.create(tmp_path / name, epsilon=9.0, delta=1e-3, **terms)

    paid = release(unit=FIVE, budget=file("a", unit="home"))
    assert "It was charged to a budget file" in paid.privacy.guarantee()
    with pytest.raises(BadInputError, match="--unit row, and this release has home"):
        release(unit=FIVE, budget=file("b"))
    with pytest.raises(BadInputError, match="--unit home, and this release has row"):
        release(budget=file("c", unit="home"))
    named = homes().rename({"home": "row"})
    with pytest.raises(BadInputError, match="rename the column"):
        dualquery.release(named, unit=Unit("row", 2), budget=file("d", unit="row"), **ASKED)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("fewer rows in the statement", put("proof", "unit", "max_rows", 6)),
        ("another column", put("proof", "unit", "column", "x")),
        ("no unit", put("proof", "unit", None)),
        ("a hidden number of units", put("proof", "unit", "units", None)),
        ("rows bought as one", put("proof", "rows", "bought", "sensitivity", 1.0)),
        ("a game of rows", put(*EVENT, "rows_per_unit", 1)),
    ],
)
def test_what_does_not_agree_is_found(played, what, change, tmp_path) -> None:
    folder = played.save(tmp_path / "made")
    edit(folder, change, seal=True)
    found = verify(folder)
    assert found.refuted, what
    assert not found.damaged


@pytest.mark.parametrize(("share", "warned"), [(1.0, True), (0.9, False)])
def test_a_delta_is_compared_with_the_number_of_units(share: float, warned: bool) -> None:
    """Not with that of rows: 1/n is what one of the protected may cost to give away whole."""
    made = release(unit=FIVE, delta=share / HOMES)
    assert any("not below 1/n" in note for note in made.notes) == warned
