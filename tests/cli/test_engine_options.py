"""``--engine``, ``--answers-cache`` and ``--explain`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from dualquery.cli.main import BAD_INPUT, DONE, main

ARGUMENTS = ["--queries", "200", "--rounds", "4", "--seed", "1", "--json"]


def test_engines_release_the_same_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for engine in ("memory", "stream"):
        out = tmp_path / engine
        code = main(["release", "adult", *ARGUMENTS, "--engine", engine, "--out", str(out)])
        assert code == DONE
        json.loads(capsys.readouterr().out)
        answers.append(pl.read_parquet(out / "answers.parquet"))
    assert answers[0].equals(answers[1])


def test_explanations_stay_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "release"
    cache = tmp_path / "answers"
    arguments = [*ARGUMENTS, "--explain", "--answers-cache", str(cache), "--out", str(out)]
    assert main(["release", "adult", *arguments]) == DONE
    assert "estimate: counting" in caplog.text
    assert "pass 1: 200 queries on 30,162 rows at " in caplog.text
    assert "passes over the rows: 1, " in caplog.text
    assert "0 answers were known, 200 were counted" in caplog.text
    assert "exact private answers" in caplog.text
    assert cache.exists()
    released = capsys.readouterr().out + (out / "release.json").read_text()
    for word in ("estimate: ", "blocks", "pass ", "GB/s", str(cache)):
        assert word not in released
    caplog.clear()
    again = [*arguments[:-1], str(tmp_path / "again")]
    assert main(["release", "adult", *again]) == DONE
    assert "200 answers were known, 0 were counted" in caplog.text
    assert "passes over the rows: 0, " in caplog.text


def test_times_are_not_told_to_those_who_only_want_to_hear_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "release"
    assert main(["release", "adult", *ARGUMENTS, "--verbose", "--out", str(out)]) == DONE
    assert "evaluating the queries" in caplog.text
    assert "pass 1" not in caplog.text
    assert "estimate" not in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "spark"], "error: --engine is 'spark'"),
        (["--engine", "dask"], "error: --engine dask needs the address of a scheduler"),
        (["--scheduler", "tcp://host:1"], "error: --scheduler goes with --engine dask"),
    ],
)
def test_bad_options_end_in_one_line(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "release"
    assert main(["release", "adult", *ARGUMENTS, *options, "--out", str(out)]) == BAD_INPUT
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith(message)
    assert not out.exists()
