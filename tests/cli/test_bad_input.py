"""Whatever the user gets wrong: one clear message, exit code 2, no traceback, nothing written."""

from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Done

GOOD = "age,job,flag,sex,constant\n30,nurse,1,Male,a\n60,smith,0,Female,a\n"


def assert_refused(done: Done, here: Path, message: str) -> None:
    assert message in done.refusal
    assert [*here.iterdir()] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "1e308"], "--epsilon is 1e+308; nothing above 10000"),
        (["--solver", "cplux"], "unknown solver 'cplux'; did you mean 'cplex'?"),
        (["-o", "eta=much"], "eta='much' is not a valid float"),
        (["-o", "eta=1", "--eta", "2"], "eta is given twice"),
    ],
)
def test_bad_options_fail_before_reading(dualquery, here, monkeypatch, options, message) -> None:
    monkeypatch.setattr("dualquery.rows.engines.read", None)  # so that nobody can call it
    assert_refused(dualquery("release", "adult", *options), here, message)


def test_an_existing_out_fails_before_any_data_are_read(dualquery, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("dualquery.rows.engines.read", None)  # so that nobody can call it
    (tmp_path / "mine").mkdir()
    assert "exists already" in dualquery("release", "--out", tmp_path / "mine").refusal
    assert [*(tmp_path / "mine").iterdir()] == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("colour=red", "line 2: there is no column 'colour'"),
        ("age=170", "line 2: column 'age': 170 lies outside of its numbers, 0 to"),
    ],
)
def test_bad_lists_of_queries(dualquery, here, files, tmp_path, line, message) -> None:
    (tmp_path / "list.txt").write_text(f"sex=Male\n{line}\n")
    base = ["release", files[0], "--schema", files[1], "--queries", tmp_path / "list.txt"]
    assert_refused(dualquery(*base), here, message)
    assert_refused(dualquery(*base, "--query-columns", "age"), here, "--query-columns")


def test_a_full_disk(dualquery, here, small, monkeypatch) -> None:
    def fail(*_, **__):
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    with monkeypatch.context() as patched:
        patched.setattr("polars.DataFrame.write_parquet", fail)
        done = dualquery(*small, "--out", "new/mine")
    assert "the disk is full" in done.refusal
    # What was paid for is kept: there is room again.
    assert "go on with dualquery release --resume new/mine.unfinished" in done.last
    assert [path.name for path in (here / "new").iterdir()] == ["mine.unfinished"]
    assert dualquery("release", "--resume", "new/mine.unfinished").code == 0
    assert [path.name for path in (here / "new").iterdir()] == ["mine"]


def test_evaluate_against_a_table_that_does_not_fit(dualquery, here, small, tmp_path) -> None:
    dualquery(*small, "--out", tmp_path / "out", "--quiet")
    (tmp_path / "t.csv").write_text(GOOD.replace("job", "jab"))
    done = dualquery("evaluate", tmp_path / "out", tmp_path / "t.csv", "--json")
    assert_refused(done, here, "there is no column 'job'")
    assert_refused(dualquery("evaluate", tmp_path / "out", "no.csv"), here, "no such file")
    (tmp_path / "out" / "release.json").write_text("{}")
    assert_refused(dualquery("evaluate", tmp_path / "out", "adult"), here, "damaged release")
