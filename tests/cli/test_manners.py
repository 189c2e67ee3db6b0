"""How the program talks to people: first steps, progress in a log, what a shell completes."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

import dualquery
from dualquery.cli.main import main
from dualquery.room.ledger import Ledger
from dualquery.runtime import progress
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import Lines
from tests.tables import SCHEMA, people, reseal, write_people


def test_a_log_hears_how_far_a_long_phase_is(monkeypatch, capsys) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = Lines()
    lines.phase("running matrix")
    for done in range(1, 400):
        now[0] += 1.0
        lines.step(done, 400)
    told = capsys.readouterr().err.splitlines()
    assert told[:3] == [
        "running matrix",
        "running matrix: 3 of 400, about 7 min left of these",
        "running matrix: 63 of 400, about 6 min left of these",
    ]
    assert len(told) == 1 + 7
    for total in (5, 9, 9):  # three counts, each with an estimate of its own
        for done in range(total):
            now[0] += 60.0
            lines.step(done, total)
        said = capsys.readouterr().err.splitlines()
        assert said[0] == f"running matrix: 1 of {total}, about {total - 1} min left of these"
    lines.phase("sampling the records")
    for done in range(1, 12):
        now[0] += 1.0
        lines.step(done, 12)
    assert capsys.readouterr().err == "sampling the records\n"  # over before one reads more


@pytest.mark.parametrize("quiet", [False, True])
def test_a_weak_budget_is_warned_of_before_it_is_spent(
    tmp_path: Path, monkeypatch, caplog, quiet: bool
) -> None:
    def drawn(*_arguments: object) -> None:
        raise BadInputError("drawn")

    monkeypatch.setattr(Ledger, "draw", drawn)
    table, schema = write_people(tmp_path, rows=100)
    asked = ["release", str(table), "--schema", str(schema), "--queries", "5", "--way", "1"]
    asked += ["--mechanism", "gaussian", "--out", str(tmp_path / "out"), *["--quiet"] * quiet]
    assert main([*asked, "--delta", "0.5", "--epsilon", "20"]) == 2
    told = caplog.messages
    assert [each.partition(" is ")[0] for each in told] == ["epsilon = 20", "delta = 0.5"]
    assert "each of the 100 records, whole, with a chance of 0.5" in told[1]
    caplog.clear()
    assert main([*asked, "--epsilon", "10"]) == 2
    assert caplog.messages == []


def test_a_release_of_another_version_says_what_differs(tmp_path: Path, caplog) -> None:
    made = dualquery.release(people(), schema=SCHEMA, mechanism="uniform", queries=5)
    made.save(tmp_path / "r")
    with caplog.at_level(logging.WARNING):
        dualquery.load_release(tmp_path / "r")
    assert caplog.text == ""
    shutil.copytree(tmp_path / "r", tmp_path / "old")
    record = json.loads((tmp_path / "old" / "release.json").read_text())
    record["versions"] |= {"dualquery": "0.0.7", "numpy": "1.0"}
    (tmp_path / "old" / "release.json").write_text(json.dumps(record))
    reseal(tmp_path / "old")
    dualquery.load_release(tmp_path / "old")
    assert f"dualquery 0.0.7 (here {dualquery.__version__}), numpy 1.0 (here" in caplog.text
