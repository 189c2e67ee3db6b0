"""``dualquery table``: to the terminal, to files, as JSON; names from the data stay texts."""

import dataclasses

import polars as pl
import pytest

from dualquery.releases.answer.cross_tables import cross_table
from dualquery.releases.keep.folder import load_release
from tests.tables import people

ODD = "=1+1 & <b>"


@pytest.fixture
def made(dualquery, tmp_path) -> str:
    frame = people().select(
        pl.col("age").alias("answer"), pl.col("sex").replace("Male", "-<i>x").alias(ODD)
    )
    frame.write_csv(tmp_path / "odd.csv")
    assert dualquery(
        "release", tmp_path / "odd.csv", "--mechanism", "gaussian", "--queries", "all", "--way",
        "2", "--delta", "1e-6", "--epsilon", "20", "--out", tmp_path / "odd", "--quiet",
        "--schema-from-data",
    ).code == 0  # fmt: skip
    return str(tmp_path / "odd")


def test_a_table_goes_to_the_terminal_and_to_json(dualquery, released) -> None:
    arguments = ("table", released, "--rows", "sex", "--columns", "flag", "--where", "age>=25")
    shown = dualquery(*arguments).ok
    assert "share by sex and flag where age>=25" in " ".join(shown.out.split())
    assert "Female" in shown.out
    found = dualquery(*arguments, "--json").json
    assert (found["rows"], found["columns"], found["where"]) == ("sex", "flag", "age>=25")
    assert sum(cell["answer"] for cell in found["cells"]) == pytest.approx(1)
    assert {(c["sex"], c["flag"]) for c in found["cells"]} >= {("Male", "0"), ("Female", "1")}
    one = dualquery("answer", released, "sex=Male & !flag given age>=25", "--json").json
    cell = next(c for c in found["cells"] if (c["sex"], c["flag"]) == ("Male", "0"))
    assert cell["answer"] == one["answers"][0]["answer"]


def test_tables_in_files_have_no_formulas(dualquery, made, here) -> None:
    arguments = ("table", made, "--rows", ODD, "--columns", "answer", "--out")
    assert dualquery(*arguments, "t.csv").code == 0
    assert dualquery(*arguments, "t.parquet").code == 0
    csv = pl.read_csv(here / "t.csv")
    assert csv.columns[:2] == [f"'{ODD}", "answer"]
    assert "'-<i>x" in csv.get_column(f"'{ODD}").to_list()
    parquet = pl.read_parquet(here / "t.parquet")
    assert parquet.columns == [ODD, "answer", "answer_", "low", "high", "source", "basis"]
    assert set(parquet[ODD]) == {"-<i>x", "Female"}
    assert (parquet["low"] <= parquet["answer_"]).all()
    both = dataclasses.replace(cross_table(load_release(made), "answer", ODD), columns="answer_")
    assert [*both.lines()[0]][:3] == ["answer", "answer_", "answer__"]
    assert "exists already" in dualquery(*arguments, "t.csv").refusal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "colour"], "there is no column 'colour'"),
        (["--rows", "sex", "--columns", "sex"], "name two columns"),
        (["--rows", "sex", "--where", "mean(age)"], "a condition is needed"),
        (["--rows", "sex", "--value", "flag"], "--value is 'flag'; it must be share, count"),
        (["--rows", "sex", "--out", "x.txt"], "ends in .csv or .parquet"),
    ],
)
def test_bad_tables(dualquery, released, arguments, message) -> None:
    assert message in dualquery("table", released, *arguments).refusal
