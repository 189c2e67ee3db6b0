"""External MaxSAT and pseudo-Boolean solvers: the protocol, and what goes wrong with commands."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from solvers import BestResponse, Solver, Status, get_solver
from solvers.backends.external import run_command
from solvers.errors import SolverUnavailableError, UnknownSolverError
from solvers.formats.clauses import encode
from solvers.formats.opb import pseudo_boolean
from tests.solvers.instances import groups_of, problem, row

SCRIPT = Path(__file__).with_name("wcnf_solver.py")


def scripted(mode: str, file: str = "{wcnf}") -> Solver:
    return get_solver("maxsat:" + shlex.join([sys.executable, "-S", "-E", str(SCRIPT), mode, file]))


def small() -> BestResponse:
    """Three attributes, a group of two, a constraint; the optimum is 4."""
    return problem(
        3,
        {(0, 2): 3.0, (1, 2): 4.0, (2,): -1.0, (~0, ~2): 0.5, (0,): -0.25},
        groups_of([0, 1]),
        (row([0, 1, 2], [1.0, 1.0, 2.0], 1.0, 3.0),),
        constant=1.0,
    )


@pytest.mark.parametrize(
    ("mode", "file"),
    [("literals", "{wcnf}"), ("literals", "{old}"), ("string", "{wcnf}"), ("lines", "{old}")],
)
def test_both_files_and_both_forms_of_values(mode: str, file: str) -> None:
    solution = scripted(mode, file).solve(small())
    assert solution.objective == 4.0
    assert solution.status is Status.OPTIMAL
    assert solution.bound == solution.objective
    assert solution.record.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("lines", "code", "status"),
    [
        ("o 6|s OPTIMUM FOUND|v 011{rest}", 30, Status.OPTIMAL),
        ("o 9|o 6|s OPTIMUM FOUND|v -1 2 3 0", 0, Status.OPTIMAL),
        ("o 6|s OPTIMUM FOUND|v -1 2 3", 30, Status.OPTIMAL),
        ("o 6|s UNKNOWN|v -1 2 3 0", 0, Status.FEASIBLE),
        ("o 6|s OPTIMUM FOUND|v -1 2 3 0", 1, Status.FEASIBLE),
        ("o 13|s OPTIMUM FOUND|v -1 2 3 0", 30, Status.FEASIBLE),
        ("o 0|s OPTIMUM FOUND|v -1 2 3 0", 30, Status.FEASIBLE),
        ("o 6|s OPTIMUM FOUND|v 111{rest}", 30, Status.FALLBACK),
        ("v one two three|o much|s|v|v 99999", 0, Status.FALLBACK),
        ("s OPTIMUM FOUND", 30, Status.FALLBACK),
        ("s UNSATISFIABLE", 20, Status.FALLBACK),
        ("s UNKNOWN", 0, Status.FALLBACK),
    ],
)
def test_rules_of_the_evaluations(lines, code, status, tmp_path, caplog) -> None:
    instance = small()
    clauses = encode(instance)
    cost = round((clauses.best - 4.0) * clauses.scale)
    said = lines.replace("o 6", f"o {cost}").format(rest="0" * (clauses.variables - 3))
    answer = tmp_path / "answer.py"
    answer.write_text(f"print({said!r}.replace('|', '\\n')); raise SystemExit({code})")
    solution = get_solver(f"maxsat:{shlex.join([sys.executable, str(answer)])}").solve(instance)
    assert solution.status is status
    assert instance.feasible(solution.record)
    assert status is Status.FALLBACK or solution.record.tolist() == [0, 1, 1]
    assert status is Status.OPTIMAL or solution.bound == np.inf
    assert all("answer.py" in message for message in caplog.messages)
    assert status is not Status.FALLBACK or caplog.messages


@pytest.mark.parametrize("claim", ["s OPTIMUM FOUND", "s SATISFIABLE"])
def test_rules_of_the_pseudo_boolean_competitions(claim: str, tmp_path: Path) -> None:
    instance = small()
    program = pseudo_boolean(instance)
    cost = round((program.constant - 4.0) * program.scale)
    answer = tmp_path / "answer.py"
    answer.write_text(
        "import sys; from pathlib import Path; assert 'min:' in Path(sys.argv[2]).read_text()\n"
        f"print('c hello', 'o {cost}', '{claim}', 'v -x1 x2', 'v x3 x4', sep='\\n')"
    )
    command = shlex.join([sys.executable, str(answer), "--", "{opb}"])
    solution = get_solver(f"pb:{command}").solve(instance)
    assert solution.record.tolist() == [0, 1, 1]
    assert solution.status is (Status.OPTIMAL if "OPTIMUM" in claim else Status.FEASIBLE)


def test_better_hint_refutes_a_false_optimum(tmp_path: Path) -> None:
    answer = tmp_path / "answer.py"
    answer.write_text("print('o 2\\ns OPTIMUM FOUND\\nv 1 -2 0')")
    solver = get_solver(f"maxsat:{shlex.join([sys.executable, str(answer)])}")
    solution = solver.solve(problem(2, {(0,): 1.0, (1,): 2.0}), hint=np.array([0, 1], np.uint8))
    assert solution.objective == 2.0
    assert solution.status is Status.FEASIBLE
    assert solution.bound == np.inf


def test_hanging_command_is_stopped() -> None:
    solution = scripted("hang").solve(small(), time_limit=0.5)
    assert solution.status is Status.FALLBACK
    assert solution.seconds < 5  # not 600: generous, because the machine may be busy


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("mode", ["hang-with-incumbent", "polite"])
def test_incumbent_of_a_hanging_command_is_kept(mode: str) -> None:
    solution = scripted(mode).solve(small(), time_limit=2.0)
    assert solution.status is Status.FEASIBLE
    assert solution.objective == 4.0


@pytest.mark.skipif(os.name != "posix", reason="process groups")
@pytest.mark.parametrize("around", [(), ("sh", "-c", '"$@" > out 2>&1; true', "sh")])
def test_children_are_killed_with_the_command(tmp_path: Path, around: tuple[str, ...]) -> None:
    file = tmp_path / "p.wcnf"
    file.write_text("h 1 0\n1 1 0\n")
    began = time.perf_counter()
    lines: list[str] = []
    status, _ = run_command(
        [*around, sys.executable, str(SCRIPT), "hang-deaf", str(file)], tmp_path, lines.append,
        stop=began + 1.5, deadline=began + 2.0, longest_line=1000,
    )  # fmt: skip
    assert status is None
    assert ("v 1\n" in lines) == (not around)  # else they go into a file
    child = int(Path(str(file) + ".child").read_text())
    for _ in range(100):
        if not is_running(child):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the command's child is still running")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return False
        done = subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False)
        return done.returncode == 0
    return state != "Z"


def test_missing_or_empty_command() -> None:
    with pytest.raises(SolverUnavailableError, match="no command 'no-such-solver' on the path"):
        get_solver("maxsat:no-such-solver -x")
    with pytest.raises(UnknownSolverError, match="maxsat needs a command"):
        get_solver("maxsat")
    with pytest.raises(UnknownSolverError, match="quotation"):
        get_solver("maxsat:'unclosed")
    with pytest.raises(UnknownSolverError, match="pb needs a command that reads OPB"):
        get_solver("pb")
