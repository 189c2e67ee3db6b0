"""``--engine`` on the command line."""

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
