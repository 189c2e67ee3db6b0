"""A stranger's file to an evaluated release and its report, by the commands of the README."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import polars as pl
import pytest

from dualquery.cli.main import main
from dualquery.data.builtin import dataset_path

README = Path(__file__).resolve().parents[1] / "README.md"
ROWS = 2_000
UNKNOWN = ("workclass", "occupation", "native-country")
"""Columns in which Adult's raw file has ``?``."""


def raw_adult() -> str:
    """Return rows of Adult under its own header, a twentieth of some columns unknown."""
    adult = pl.read_parquet(dataset_path("adult").read_bytes())
    header, *rows = adult.write_csv().splitlines()
    names = header.split(",")
    chosen = random.Random(0)
    lines = [header]
    for row in rows[:ROWS]:
        cells = row.split(",")
        for name in UNKNOWN:
            if chosen.random() < 0.05:
                cells[names.index(name)] = "?"
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def commands() -> list[list[str]]:
    """Return the commands of "Your own table", without the question about the page's own survey."""
    section = README.read_text("utf-8").partition("## Your own table")[2]
    lines = section.partition("```sh\n")[2].partition("```")[0].splitlines()
    return [shlex.split(line) for line in lines if line and " answer " not in line]


@pytest.mark.slow
def test_five_commands_and_one_edit(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("survey.csv").write_text(raw_adult())
    edits = 0
    for command in commands():
        if command[0] == "$EDITOR":
            schema = json.loads(Path(command[1]).read_text())
            assert "?" in schema["missing_values"]
            assert {each["name"] for each in schema["columns"]} >= {*UNKNOWN, "age", "income"}
            schema["declared"] = True
            Path(command[1]).write_text(json.dumps(schema))
            edits += 1
            continue
        assert main(command[1:]) == 0
    assert (edits, len(commands())) == (1, 5)
    assert "max error" in capsys.readouterr().out
    assert "<html" in Path("report.html").read_text("utf-8")
    assert json.loads(Path("survey-release/release.json").read_text())["privacy"]["private"]
