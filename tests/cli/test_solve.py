"""``dualquery solve``, ``convert`` and ``solvers``."""

from pathlib import Path

import numpy as np
import pytest

from solvers.formats import read_instance, write_instance
from tests.cli.conftest import Run
from tests.solvers.faulty import Faulty
from tests.solvers.instances import groups_of, problem, row


@pytest.fixture
def instance(here: Path) -> Path:
    path = here / "p.lp"
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


@pytest.mark.parametrize(("solver", "reduce"), [("auto", True), ("local-search", False)])
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


def test_minimisation_is_reported_in_the_files_own_sense(dualquery: Run, here: Path) -> None:
    (here / "m.lp").write_text("min\n 2 a + b + 1\nst\n a + b >= 1\nbin\n a b\nend\n")
    found = dualquery("solve", here / "m.lp", "--json").json
    assert (found["sense"], found["objective"], found["bound"]) == ("min", 2.0, 2.0)
    assert dict(zip(found["variables"], found["record"], strict=True)) == {"a": 0, "b": 1}
    (here / "zero.lp").write_text("min\n a\nst\n a + b >= 1\nbin\n a b\nend\n")
    assert "objective: 0.0\nbound: 0.0\n" in dualquery("solve", here / "zero.lp").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.lp"], "missing.lp cannot be read: No such file"),
        (["bad.lp"], "bad.lp, line 3: expected sign ('+' or '-')"),
        (["p.lp", "--solver", "nonesuch"], "unknown solver 'nonesuch'"),
        (["p.lp", "--solver-timeout", "0"], "time limit"),
        (["no.lp", "--format", "maxsat"], "no.lp has no clauses; give a .wcnf file"),
        (["p.lp", "--format", "maxsat", "--json"], "room for one of them"),
    ],
)
def test_bad_input(dualquery: Run, here: Path, instance: Path, arguments, message: str) -> None:
    (here / "bad.lp").write_text("max\n x y\nst\n x <= 1\nbin\n x y\nend\n")
    (here / "no.lp").write_text("max\n x\nst\n x <= 0\nbin\n x\nend\n")
    assert message in dualquery("solve", *arguments).refusal


def test_what_was_found_is_told(dualquery: Run, here: Path) -> None:
    (here / "a.wcnf").write_text("h -4 1 0\nh -4 -2 0\n7 4 0\n3 -1 0\n2 2 3 0\n")
    found = dualquery("solve", "a.wcnf", "--json").json
    assert found["found"] == ["1 defined variables read as conjunctions"]
    assert found["variables"] == ["1", "2", "3", "4"]
    assert (found["objective"], found["record"]) == (9.0, [1, 0, 1, 1])
    assert found["read_seconds"] > 0
    assert found["solve_seconds"] >= found["seconds"] > 0
    assert "1 defined variables" in dualquery("convert", "a.wcnf", "b.lp").err


@pytest.mark.parametrize(
    ("text", "solver", "code", "lines"),
    [
        ("h -4 1 0\nh -4 -2 0\n7 4 0\n3 -1 0\n2 2 3 0\n", "auto", 30,
         ["o 3", "s OPTIMUM FOUND", "v 1011"]),
        ("h 1 0\nh -1 0\n2 2 0\n", "auto", 20, ["s UNSATISFIABLE"]),
        ("1 1 2 0\n1 -1 0\n1 -2 0\n", "local-search", 10, ["o 1", "s SATISFIABLE"]),
    ],
)  # fmt: skip
def test_lines_of_the_maxsat_evaluations(dualquery, here, text, solver, code, lines) -> None:
    (here / "a.wcnf").write_text(text)
    done = dualquery("solve", "a.wcnf", "--format", "maxsat", "--solver", solver, "--no-reduce")
    assert done.code == code
    assert [line for line in done.out.splitlines() if line[0] != "c"][: len(lines)] == lines


def test_our_files_hold_values_for_variables(dualquery: Run, here: Path, instance: Path) -> None:
    assert dualquery("convert", instance, here / "p.wcnf").code == 0
    done = dualquery("solve", here / "p.wcnf", "--format", "maxsat")
    assert done.code == 30
    values, read = done.out.splitlines()[-1].removeprefix("v "), read_instance(here / "p.wcnf")
    assert len(values) == len(read.variables) > 4
    assert f"o {read.cost(np.array([*values], np.uint8))}" in done.out.splitlines()
    assert dualquery("convert", instance, here / "p.mps.gz").code == 0
    assert dualquery("solve", here / "p.mps.gz", "--json").json["objective"] == 3.5


def test_convert_says_where_and_overwrites_nothing(dualquery: Run, here: Path) -> None:
    (here / "a.lp").write_text("max\n x\nst\nbin\n x\nend\n")
    assert dualquery("convert", "a.lp", "a.mps").out == "written to a.mps\n"
    written, done = (here / "a.mps").read_bytes(), dualquery("convert", "a.lp", "a.mps")
    assert "a.mps exists already" in done.refusal
    assert (here / "a.mps").read_bytes() == written


def test_solvers_json_is_a_list(dualquery) -> None:
    done = dualquery("solvers", "--json")
    found = {line["name"]: line for line in done.json}
    assert {"local-search", "scip", "cpsat", "highs", "exhaustive"} <= found.keys()
    for line in done.json:
        assert line.keys() == {"name", "version", "installed", "capabilities"}
    assert found["scip"]["installed"]
    assert "exact" in found["scip"]["capabilities"]
    assert "local-search" in dualquery("solvers").out


def test_faults_of_plug_ins_name_the_plug_in(
    dualquery: Run, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These were "internal fault: RuntimeError: broken", and tracebacks in a comparison."""
    monkeypatch.setattr("solvers.registry.metadata.entry_points", Faulty.points.select)
    fault, message = "raise", "RuntimeError: broken"
    said = dualquery("solve", instance, "--solver", f"faulty:{fault}").refusal
    assert said == f"error: solver faulty:{fault}: {message}" + said.partition(message)[2]
    done = dualquery("compare-solvers", instance, "--solvers", f"faulty:{fault}", "--out", "out",
                     "--solver-timeout", 1, "--json").ok  # fmt: skip
    assert "Traceback" not in done.err
    (call,) = done.json["measurements"]
    assert call["status"] == "error"
    assert f"solver faulty:{fault}: {message}" in call["message"]
