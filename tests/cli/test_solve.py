"""``dualquery solve``, ``convert`` and ``solvers --check``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from solvers import get_solver
from solvers.comparison import check as checks
from solvers.formats import read_instance, write_instance
from tests.cli.conftest import Run
from tests.solvers.instances import groups_of, problem, row, sampled_problem

SCRIPT = Path(__file__).parents[1] / "solvers" / "wcnf_solver.py"


@pytest.fixture
def instance(here: Path) -> Path:
    path = here / "p.wcnf"
    write_instance(
        path,
        problem(
            4,
            {(0, 2): 3.5, (1, 3): 2.0, (2, 3): -1.0},
            groups_of([0, 1]),
            (row([2, 3], [1.0, 1.0], 0.0, 1.0),),
        ),
    )
    return path


@pytest.mark.parametrize("solver", ["auto", "local-search", "cpsat", "scip", "highs", "exhaustive"])
@pytest.mark.parametrize("reduce", [True, False])
def test_json(dualquery: Run, instance: Path, solver: str, reduce: bool) -> None:
    flags = [] if reduce else ["--no-reduce"]
    done = dualquery("solve", instance, "--solver", solver, "--solver-timeout", 5, "--json", *flags)
    assert done.code == 0, done.err
    found = done.json
    assert found["objective"] == 3.5
    assert found["record"] == [1, 0, 1, 0]
    assert found["seconds"] > 0
    if solver != "local-search":
        assert (found["status"], found["bound"]) == ("optimal", 3.5)


def test_text(dualquery: Run, instance: Path) -> None:
    done = dualquery("solve", instance)
    assert done.code == 0
    assert "3.5" in done.out
    assert "optimal" in done.out
    assert "record: 2 of 4 variables are 1: 1 3" in done.out


def test_minimisation_is_reported_in_the_files_own_sense(dualquery: Run, here: Path) -> None:
    (here / "m.lp").write_text("min\n 2 a + b + 1\nst\n a + b >= 1\nbin\n a b\nend\n")
    found = dualquery("solve", here / "m.lp", "--json").json
    assert (found["sense"], found["objective"], found["bound"]) == ("min", 2.0, 2.0)
    assert dict(zip(found["variables"], found["record"], strict=True)) == {"a": 0, "b": 1}


def test_external_command(dualquery: Run, instance: Path) -> None:
    command = shlex.join([sys.executable, str(SCRIPT), "literals"])
    done = dualquery("solve", instance, "--solver", f"maxsat:{command}", "--no-reduce", "--json")
    assert done.json["status"] == "optimal"
    assert done.json["objective"] == 3.5


def test_crash_of_a_command_is_told(dualquery: Run, instance: Path) -> None:
    command = shlex.join([sys.executable, str(SCRIPT), "crash"])
    done = dualquery("solve", instance, "--solver", f"maxsat:{command}", "--no-reduce", "--json",
                     "--solver-timeout", 1)  # fmt: skip
    assert done.code == 0
    assert done.json["status"] == "fallback"


@pytest.mark.parametrize("suffixes", [("lp", "mps", "wcnf"), ("mps", "wcnf", "lp")])
def test_convert_round_trip(
    dualquery: Run, here: Path, instance: Path, suffixes: tuple[str, ...]
) -> None:
    last = instance
    for suffix in suffixes:
        target = here / f"next.{suffix}"
        assert dualquery("convert", last, target).code == 0
        last = target
    before, after = read_instance(instance).problem, read_instance(last).problem
    for number in range(16):
        record = np.array([number >> bit & 1 for bit in range(4)], np.uint8)
        assert before.feasible(record) == after.feasible(record)
        assert before.value(record) == pytest.approx(after.value(record))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.lp"], "missing.lp cannot be read: No such file"),
        (["bad.lp"], "bad.lp, line 3: expected sign ('+' or '-')"),
        (["p.txt"], "expected .wcnf, .lp, .mps"),
        (["p.wcnf", "--solver", "nonesuch"], "unknown solver 'nonesuch'"),
        (["p.wcnf", "--solver", "maxsat:nonesuch"], "there is no command 'nonesuch'"),
        (["p.wcnf", "--solver", "maxsat"], "maxsat needs a command"),
        (["p.wcnf", "--solver-timeout", "0"], "time limit"),
        (["no.lp"], "constraint"),
    ],
)
def test_bad_input(
    dualquery: Run, here: Path, instance: Path, arguments: list[str], message: str
) -> None:
    (here / "bad.lp").write_text("max\n x y\nst\n x <= 1\nbin\n x y\nend\n")
    (here / "no.lp").write_text("max\n x\nst\n x >= 1\n x <= 0\nbin\n x\nend\n")
    done = dualquery("solve", *arguments)
    assert done.code == 2
    assert done.last.startswith("error: ")
    assert message in done.last
    assert "Traceback" not in done.err


def test_convert_says_where_and_overwrites_nothing(dualquery: Run, here: Path) -> None:
    (here / "a.lp").write_text("max\n x\nst\nbin\n x\nend\n")
    assert dualquery("convert", "a.lp", "a.mps").out == "written to a.mps\n"
    written = (here / "a.mps").read_bytes()
    done = dualquery("convert", "a.lp", "a.mps")
    assert done.code == 2
    assert "a.mps exists already" in done.last
    assert (here / "a.mps").read_bytes() == written


def test_convert_refuses_what_the_format_cannot_hold(dualquery: Run, here: Path) -> None:
    rng = np.random.default_rng(0)
    names = " + ".join(f"{rng.random():.17g} x{i}" for i in range(60))
    binaries = " ".join(f"x{i}" for i in range(60))
    (here / "a.lp").write_text(f"max\n x0\nst\n {names} <= 9\nbin\n {binaries}\nend\n")
    done = dualquery("convert", "a.lp", "a.wcnf")
    assert done.code == 2
    assert "too many to be written as clauses" in done.last
    assert not (here / "a.wcnf").exists()


@pytest.mark.slow
def test_check_passes_what_is_installed(dualquery: Run) -> None:
    done = dualquery("solvers", "--check", "--json")
    assert done.code == 0, done.out
    states = {line["name"]: line["check"] for line in done.json}
    assert states["scip"] == "passed"
    assert states["maxsat"].startswith("not checked: needs a command")


def test_check_reports_a_failure(dualquery: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        checks, "check", lambda name, _: "groups: crashed" if name == "scip" else ""
    )
    done = dualquery("solvers", "--check", "--json")
    assert done.code == 1
    states = {line["name"]: line.get("check") for line in done.json}
    assert states["scip"] == "failed: groups: crashed"
    assert states["highs"] == "passed"


def test_check_finds_a_false_optimum() -> None:
    words = [sys.executable, str(SCRIPT), "infeasible"]
    name = f"maxsat:{shlex.join(words)}"
    assert "the optimum is 3" in checks.check(name, get_solver(name).capabilities)


def test_large_problem_through_files(dualquery: Run, here: Path) -> None:
    write_instance(here / "large.wcnf", sampled_problem(2000, 1500, 0))
    found = dualquery("solve", "large.wcnf", "--solver", "auto", "--json").json
    assert found["status"] == "optimal"
