"""The experiments' command line."""

from __future__ import annotations

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
