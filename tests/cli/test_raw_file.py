"""A stranger's file to an evaluated release and its report: the README's commands, and one edit."""

from __future__ import annotations

import pytest

from tests.data.shared import SHARED


@pytest.mark.slow
def test_adult_as_it_comes_takes_five_commands_and_one_edit(dualquery, tmp_path) -> None:
    raw = SHARED / "mwem" / "adult_train.csv.gz"
    if not raw.exists():
        pytest.skip("needs the shared data")
    schema, out = tmp_path / "adult.json", tmp_path / "release"
    assert dualquery("schema", raw, "--out", schema).code == 0
    draft = schema.read_text("utf-8")
    schema.write_text(draft.replace('"declared": false', '"declared": true'), encoding="utf-8")
    small = ("--queries", "1000", "--way", "2")
    assert dualquery("release", raw, "--schema", schema, *small, "--out", out).code == 0
    asked = dualquery("answer", out, "workclass=(missing)", "--json").json["answers"][0]
    assert asked["low"] < asked["high"]
    assert asked["answer"] == pytest.approx(0.0564, abs=0.02)  # 1,836 of 32,561 rows have ?
    assert dualquery("report", out, "--out", tmp_path / "report.html").code == 0
    found = dualquery("evaluate", out, raw, "--json").json
    assert found["private"]
    assert found["rows"] == 32_561
    assert found["max_error"] < found["baselines"]["independent"]["max_error"]
