"""How the program talks to people: first steps, progress in a log, what a shell completes."""

import json
import logging
import shutil
from pathlib import Path

import pytest

import dualquery
from dualquery.cli.main import main
from dualquery.room.ledger import Ledger
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, people, reseal, write_people


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
    dualquery.release(people(), schema=SCHEMA, mechanism="uniform", queries=5).save(tmp_path / "r")
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
