"""The experiments' command line."""

from __future__ import annotations

import json

import pytest

from dualquery.cli.main import guarded
from experiments.commands import app


@pytest.fixture
def run(capsys):
    def call(*arguments: str) -> tuple[int, str, str]:
        code = guarded(app, [*arguments], "python -m experiments")
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_no_name_prints_the_help(run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "headline" in out


@pytest.mark.parametrize("data", ["foo:bar", "kdd98"])
def test_headline_names_the_data_that_it_takes(run, data) -> None:
    code, out, err = run("headline", "--data", data, "--quick")
    assert (code, out) == (2, "")
    assert err == f"error: --data is {data!r}; this experiment takes adult or kdd99:PATH\n"


def test_policy_compares_with_the_best_of_its_grid(run, tmp_path) -> None:
    code, out, _ = run("policy", "--quick", "--out", str(tmp_path))
    assert code == 0
    assert "the policy's error over the best of the grid" in out
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert len(found["lines"]) == 3
    for ratio in found["policy_over_best"]["adult"].values():
        assert 1.0 <= ratio < 3.0
