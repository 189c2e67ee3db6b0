"""NIST's benchmark: scores of tiny tables by hand, its schema, where its files are found."""

import functools

import polars as pl
import pytest

from dualquery.data import schema_from_dict
from dualquery.runtime.errors import BadInputError
from experiments import nist
from experiments.harness.data_files import DataFiles
from experiments.harness.recipe import Choices
from experiments.harness.runner import tidy_table
from experiments.nist_scores import inconsistent, k_marginal, pearson, scores, slope, unique_matches

PAIR = pl.DataFrame({"SEX": ["1", "1", "2", "2"], "DEYE": ["1", "1", "2", "2"]})
MIXED = pl.DataFrame({"SEX": ["1", "1", "2", "2"], "DEYE": ["1", "2", "1", "2"]})


def test_the_k_marginal_is_the_distance_of_pairs() -> None:
    assert k_marginal(PAIR, PAIR) == 1000.0
    # two of four cells have 1/2 against 1/4 each way: half of 4 x 1/4
    assert k_marginal(PAIR, MIXED) == pytest.approx(500.0)


def test_the_k_marginal_is_of_pairs_with_the_puma() -> None:
    truth = pl.concat([PAIR.with_columns(PUMA=pl.lit("a")), PAIR.with_columns(PUMA=pl.lit("b"))])
    made = pl.concat([PAIR.with_columns(PUMA=pl.lit("a")), MIXED.with_columns(PUMA=pl.lit("b"))])
    assert k_marginal(truth, made) == pytest.approx(750.0)
    assert k_marginal(truth, PAIR.with_columns(PUMA=pl.lit("a"))) == pytest.approx(500.0)


def test_numbers_are_in_bins_of_the_excerpt() -> None:
    ages = [str(age) for age in range(40)]  # two ages a bin, each full of the smaller ones
    truth = pl.DataFrame({"AGEP": ages, "SEX": ["1"] * 40})
    assert k_marginal(truth, truth.with_columns(pl.col("AGEP").replace({"38": "37"}))) == 1000.0
    assert k_marginal(truth, truth.with_columns(pl.col("AGEP").replace({"38": "0"}))) == 975.0


def test_correlations_and_the_slope_by_hand() -> None:
    assert pearson(PAIR, MIXED) == pytest.approx(1.0)
    texts = pl.DataFrame({"NPF": ["N", "2", "4"], "NOC": ["1", "2", "4"]})
    assert pearson(texts, texts.with_columns(NPF="NOC")) == 0.0  # whose N is 1
    rows = pl.DataFrame({"EDU": ["N", "1", "2", "3"], "PINCP_DECILE": ["N", "2", "4", "6"]})
    assert slope(rows) == pytest.approx(2.0)


def test_records_with_inconsistencies_are_counted_once() -> None:
    rows = pl.DataFrame(
        {
            "AGEP": ["2", "2", "40", "14", "40", "40"],
            "EDU": ["N", "1", "N", "12", "5", "5"],
            "MSP": ["N", "1", "N", "N", "1", "1"],
            "HOUSING_TYPE": ["1", "1", "2", "1", "3", "1"],
            "OWN_RENT": ["1", "2", "0", "1", "1", "2"],
            "NOC": ["0", "1", "N", "N", "N", "3"],
            "NPF": ["N", "2", "N", "N", "N", "3"],
        }
    )
    # sound; EDU and MSP; EDU and MSP; EDU and NOC; owns its quarters; as many children as persons
    assert inconsistent(rows) == 5
    assert inconsistent(rows.select("AGEP", "MSP")) == 2


def test_only_unique_rows_match() -> None:
    truth = pl.DataFrame({"SEX": ["1", "1", "2", "2"], "DEYE": ["1", "1", "1", "2"]})
    assert unique_matches(truth, MIXED) == 100.0
    assert unique_matches(truth, PAIR) == 50.0


generated = functools.cache(nist.generated)


def test_generated_rows_keep_the_rules() -> None:
    table = generated(1_200)
    assert tuple(table.columns) == nist.ALL
    assert inconsistent(table) == 0
    assert scores(table, table)["k_marginal"] == 1000.0


def test_a_schema_of_some_features_has_their_rules() -> None:
    assert schema_from_dict(nist.schema(nist.ALL)).declared
    pumas = [len(nist.schema(["PUMA"], name)["columns"][0]["values"]) for name in nist.EXCERPTS]
    assert pumas == [20, 5, 6]
    some = nist.schema(("AGEP", "MSP", "DENSITY"))
    assert [column["name"] for column in some["columns"]] == ["AGEP", "MSP", "DENSITY"]
    assert some["rules"] == ["AGEP < 15 => MSP = N", "AGEP >= 15 => MSP != N"]
    assert "MSP = N => PINCP_DECILE = N" in nist.schema(("MSP", "PINCP_DECILE"))["rules"]
    adults = pl.DataFrame({"MSP": ["N", "1", "N"], "PINCP_DECILE": ["N", "9", "9"]})
    assert (inconsistent(adults), inconsistent(adults.select("MSP"))) == (1, 0)
    assert inconsistent(adults.with_columns(AGEP=pl.lit("15"))) == 0  # as SDNist counts


def test_an_excerpt_without_rows_or_in_the_quick_form_is_refused(tmp_path) -> None:
    path = tmp_path / "ma2019.csv"
    for text, said in (("", "no column AGEP"), ("AGEP,SEX\n", "no rows")):
        path.write_text(text, "utf-8")
        with pytest.raises(BadInputError, match=said):
            nist.read(str(path), ["AGEP"])
    with pytest.raises(BadInputError, match="--excerpt"):
        nist.plan(Choices(quick=True, options={"excerpt": ["ma2019"]}))


def test_the_quick_form_is_scored(monkeypatch) -> None:
    monkeypatch.setattr(nist, "generated", lambda _: generated(1_200))
    runs = [run for run in nist.plan(Choices(quick=True, runs=1)) if run["contender"] != nist.OURS]
    table = tidy_table((run, nist.perform(run, 1)) for run in runs)
    lines = {line["contender"]: line for line in nist.RECIPE.summarise(table).iter_rows(named=True)}
    assert lines["bootstrap"]["k_marginal"] > lines["independent"]["k_marginal"] > 800
    assert lines["independent"]["inconsistent"] == lines["bootstrap"]["inconsistent"] == 0
    assert lines["permuted"]["inconsistent"] > 0
    assert lines["permuted"]["propensity"] > 5 * lines["bootstrap"]["propensity"]
    assert nist.expect(table.with_columns(contender=pl.lit(nist.OURS), path=pl.lit("ma2019.csv")))


def test_excerpts_are_found_at_any_depth(tmp_path) -> None:
    (deep := tmp_path / "excerpts" / "massachusetts").mkdir(parents=True)
    (deep / "ma2019.csv").write_text("AGEP,SEX\n34.0,2\nN,1\n")
    assert nist.read(str(deep / "ma2019.csv"), ["AGEP"]).rows() == [("34",), ("N",)]
    assert not any(each.endswith(".0") for each in nist.DENSITIES.values())  # as it reads them
    runs = nist.plan(Choices(data=DataFiles([str(tmp_path)])))
    assert {run["path"] for run in runs} == {str(deep / "ma2019.csv")}
    assert {(run["features"], run["epsilon"]) for run in runs if run["contender"] == nist.OURS} == {
        (features, epsilon) for features in ("ten", "all") for epsilon in (0.1, 1.0, 10.0)
    }
