"""OPB files are understood, those that our own writer makes for solvers among them."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from solvers import NoRecordFoundError, SolverError, Status, get_solver
from solvers.compact import compact
from solvers.formats import read_instance, write_instance
from solvers.formats.opb import pseudo_boolean
from solvers.formats.opb_reader import parse_opb
from solvers.formats.recognition import recognise
from tests.solvers.instances import constrained_problem, problem

FOREIGN = """\
* #variable= 5 #constraint= 4
* made by hand
min:+3 x1 -2 ~x2 +4 x1 ~x3 ;
+1 x1 +2 ~x2 +1 x2 >= 2 ;
* a comment between
1 x3 +1 x4
  +1 x5 = 1 ;
-1 x1 -1 x4 >=-1 ; +1 x2<= 1;
"""


def test_a_foreign_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "foreign.opb"
    path.write_text(FOREIGN)
    read = read_instance(path)
    assert read.variables == ("x1", "x2", "x3", "x4", "x5")
    assert read.minimises
    assert len(read.problem.groups) == 1
    for number in range(32):
        x1, x2, x3, x4, x5 = values = [number >> bit & 1 for bit in range(5)]
        record, cost = np.array(values, np.uint8), 3 * x1 - 2 * (1 - x2) + 4 * x1 * (1 - x3)
        assert read.problem.value(record) == -cost
        holds = x1 + 2 * (1 - x2) + x2 >= 2 and x3 + x4 + x5 == 1 and x1 + x4 <= 1
        assert read.problem.feasible(record) == holds


@pytest.mark.parametrize("large", [10**9 - 1, 2**53 - 2])
def test_whole_numbers_are_exact_however_large(tmp_path: Path, large: int) -> None:
    text = f"max: +1 x1 +1 x2 ;\n+{large} x1 -1 x2 >= {large} ;\n"
    read = recognise(parse_opb(text, "whole.opb")).problem
    write_instance(tmp_path / "a.wcnf", read)
    clauses = read_instance(tmp_path / "a.wcnf").problem
    for name in ("auto", "cpsat", "exhaustive", "highs", "scip"):
        for given in (read, clauses):
            found = get_solver(name).solve(given)
            assert found.objective == 1.0
            assert found.status is Status.OPTIMAL or name in ("highs", "scip")  # inexact ones


@pytest.mark.parametrize("name", ["cpsat", "exhaustive", "highs", "scip"])
def test_what_a_tolerance_hides_is_no_contradiction(name: str) -> None:
    text = f"max: +1 x1 x2 x3 +1 x1 x2 ;\n-{2**50} x1 >= -{2**50 - 1} ;\n"
    inexact = (NoRecordFoundError,) if name in ("highs", "scip") else ()
    with suppress(*inexact):
        assert get_solver(name).solve(recognise(parse_opb(text, "")).problem).objective == 0.0


@pytest.mark.parametrize("seed", range(15))
def test_what_is_written_for_solvers_has_the_same_optimum(seed: int) -> None:
    kernel = compact(constrained_problem(seed)).problem
    if len(kernel.terms) == 0:
        return
    program = pseudo_boolean(kernel)
    back = recognise(parse_opb(program.text(), "kernel.opb"))
    reference = get_solver("exhaustive")
    expected, found = reference.solve(kernel), reference.solve(back.problem)
    value = program.constant + found.objective / program.scale
    assert value == pytest.approx(expected.objective, abs=2 * program.error / program.scale + 1e-9)
    values = dict(zip(back.variables, back.values(found.record).tolist(), strict=True))
    # What no row and no weight mentions is not in the file.
    names = [f"x{number + 1}" for number in range(kernel.attributes)]
    record = np.array([values.get(name, 0) for name in names], np.uint8)
    assert kernel.feasible(record)
    assert kernel.value(record) == pytest.approx(value, abs=1e-6)


def test_problems_are_not_written_as_opb(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"can be written; expected \.wcnf, \.lp, \.mps"):
        write_instance(tmp_path / "a.opb", problem(1, {(0,): 1.0}))
