"""The solver study: its problems, what it makes of calls, and its findings."""

import pytest

from experiments import solver_findings, solver_problems, solver_study
from experiments.contenders import Contender
from experiments.harness.runner import tidy_table
from experiments.instances import family
from experiments.solver_findings import PLAIN, STRENGTH
from solvers.formats import read_instance


def game(**values):
    return {
        "data": "adult", "source": "adult", "schema": "adult-paper", "columns": None,
        "queries": 500, "samples": 50, "captured": [1, 3], "round": 3, "form": "",
        "solver": "local-search", "setting": PLAIN, "limit": 0.2, "seed": 1,
    } | values  # fmt: skip


def test_the_problems_of_a_game_are_written_for_others(tmp_path) -> None:
    run = game(instances=str(tmp_path / "instances"))
    problem = solver_problems.problem_of(run)
    (folder,) = (tmp_path / "instances").iterdir()
    assert sorted(file.name for file in folder.iterdir()) == [
        f"adult-{number}{form}.lp" for number in (1, 3) for form in ("-no-groups", "-rules", "")
    ]
    assert (problem.attributes, len(problem.groups)) == (235, 15)
    record, seconds = solver_study._hint(problem)
    assert seconds > 0
    assert read_instance(folder / "adult-3.lp").problem.value(record) == problem.value(record)
    assert len(solver_problems.problem_of({**run, "form": "-rules"}).rows) > 20
    solver_problems.problem_of({**run, "queries": run["queries"] - 1})
    assert len([*folder.parent.iterdir()]) == 2  # another game's are others
    bare = solver_problems.problem_of({**run, "form": "-no-groups"})
    assert len(bare.groups) == 0
    assert bare.value(record) == problem.value(record)


def test_problems_are_of_the_file_as_it_is_now(tmp_path) -> None:
    found = []
    for text in ("1 2 3\n" * 9, "1\n3\n1 3\n2\n"):
        family.game_problems.cache_clear()  # as in a run of its own
        (source := tmp_path / "baskets.dat").write_text(text, encoding="utf-8")
        run = game(data="baskets", source=str(source), schema=None, columns="1-40")
        found.append(solver_problems.problem_of({**run, "instances": str(tmp_path / "instances")}))
    assert found[0].weights.tolist() != found[1].weights.tolist()


def test_one_call_becomes_lines_that_can_be_summarised(tmp_path) -> None:
    runs = [game(instances=str(tmp_path)), game(solver="auto", instances=str(tmp_path))]
    table = tidy_table((run, solver_study.perform(run, 1)) for run in runs)
    summary = solver_findings.summarise(table)
    assert summary["solver"].to_list() == ["local-search", "auto"]
    assert summary["solved"].sum() >= 1
    assert {each.solver for each in solver_findings.measurements(table)} == {"local-search", "auto"}
    pytest.importorskip("matplotlib")
    from experiments.harness.style import styled

    with styled("solvers"):
        assert set(solver_findings.draw(table)) == {"profile", "primal-integral"}


@pytest.mark.parametrize(("runs", "decided"), [(2, [None]), (3, [True])])
def test_games_are_compared_if_there_are_enough_of_them(runs, decided) -> None:
    """The clock decides which rounds are stopped: of one game the verdict differed each time."""
    games = [game(setting="game", limit=at, seed=n) for at in (0.02, 0.2) for n in range(runs)]
    table = tidy_table((each, [{"max_error": 0.1, "stopped": 0.3}]) for each in games)
    assert [each.holds for each in solver_findings.expect(table)] == decided


def test_weak_and_strong_solvers_play_at_equal_privacy(monkeypatch) -> None:
    short = Contender("dualquery", options={"rounds": 6, "samples": 50})
    monkeypatch.setattr(solver_study, "CONTENDERS", {"DualQuery": short})
    runs = [
        game(solver=name, setting=STRENGTH, contender="DualQuery", limit=1.0)
        for name in ("best-of-ten", "greedy", "local-search", "auto")
    ]
    table = tidy_table((run, solver_study.perform(run, 1)) for run in runs)
    weak, strong = solver_findings.expect(table)
    assert "best-of-ten" in weak.found
    assert "greedy" in weak.found
    assert "auto" in strong.found
    assert table["rounds"].to_list() == [6] * 4
    pytest.importorskip("matplotlib")
    from experiments.harness.style import styled

    with styled("solvers"):
        assert set(solver_findings.draw(table)) == {"strength"}
