"""The worked examples run from the first cell to the last, and say what they promise."""

import re
import runpy
from collections.abc import Callable

import matplotlib as mpl
import pytest

from tests.pages import ROOT


@pytest.fixture
def run(monkeypatch, tmp_path, capsys) -> Callable[[str], str]:
    """Runs an example in its small form, in a folder of its own; returns what it printed."""

    def run(name: str) -> str:
        mpl.use("agg")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DUALQUERY_EXAMPLES", "small")
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        runpy.run_path(str((ROOT / "experiments" / "examples") / f"{name}.py"))
        return str(capsys.readouterr().out)

    return run


def test_the_survey_goes_from_the_raw_file_to_a_report(run, tmp_path) -> None:
    said = run("survey")
    assert "22 columns" in said
    assert "smoker=1" in said
    (page,) = tmp_path.rglob("report.html")
    assert "survey 2025" in page.read_text("utf-8")
    assert len(list(tmp_path.rglob("*.svg"))) == 2


def test_the_baskets_stay_within_one_budget_and_show_what_goes_together(run) -> None:
    said = run("baskets")
    assert "spent: epsilon 0.95 of 1, in 1 release" in said
    assert "refused: " in said
    # Each of the first two pairs stands out by twenty deviations of the noise.
    assert {"2 & 7", "4 & 11"} <= set(re.findall(r"items (\d+ & \d+)", said))


@pytest.mark.parametrize(
    ("example", "shown"),
    [
        ("choosing_epsilon", ("from 50% to at most 73.1%", "20,000 rows: epsilon 0.1")),
        ("paper_figures", ("DualQuery, Figure 2", "4 runs")),
    ],
)
def test_epsilon_is_chosen_and_a_figure_of_the_paper_made(run, example, shown) -> None:
    said = run(example)
    assert all(each in said for each in (*shown, "the picture is"))


def test_a_solver_of_ones_own_plays_the_game(run) -> None:
    said = run("own_solver")
    assert "3.0 of 3.0" in said
    assert said.count("max error") == 2
