"""Files of problems: what is written is read back, and other programs' files are understood."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from solvers import BestResponse, LinearConstraint, ProblemTooLargeError, SolverError, get_solver
from solvers.formats import is_instance_file, read_instance, write_instance
from solvers.formats.clauses import encode, linear_clauses
from solvers.formats.instance import Instance
from solvers.formats.lp import lp_text, mps_text
from solvers.formats.program import named_program
from solvers.formats.recognition import recognise
from solvers.formats.scip_reader import read_program
from solvers.formats.wcnf import parse_wcnf
from tests.solvers.instances import groups_of, problem, random_problem, row


def parse_lp(text: str, name: str) -> Instance:
    return recognise(read_program(text, ".lp", name))


def parse_mps(text: str, name: str) -> Instance:
    return recognise(read_program(text, ".mps", name))


FORMATS = {
    "lp": (lambda p: lp_text(named_program(p)), parse_lp),
    "mps": (lambda p: mps_text(named_program(p)), parse_mps),
}


def assert_equivalent(before: BestResponse, after: BestResponse) -> None:
    """Compare two problems on every record."""
    assert after.attributes == before.attributes
    tolerance = 1e-9 * (1.0 + np.abs(before.weights).sum() + abs(before.constant))
    for bits in itertools.product([0, 1], repeat=before.attributes):
        record = np.array(bits, np.uint8)
        assert after.feasible(record) == before.feasible(record), record
        if before.feasible(record):
            assert abs(after.value(record) - before.value(record)) <= tolerance


@pytest.mark.parametrize("name", FORMATS)
def test_round_trip(name: str) -> None:
    write, parse = FORMATS[name]
    for seed in range(150):
        original = random_problem(seed)
        if original.attributes <= 8:
            assert_equivalent(original, parse(write(original), "file").problem)


@pytest.mark.parametrize("suffix", [".lp.gz", ".lp.xz", ".MPS"])
def test_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"problem{suffix}"
    original = problem(3, {(0, 1): 2.5, (~2,): -1.0}, groups_of([0, 2]), constant=0.5)
    write_instance(path, original)
    assert is_instance_file(path)
    assert_equivalent(original, read_instance(path).problem)


def test_unknown_suffix_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"expected \.wcnf, \.lp, \.mps"):
        read_instance(tmp_path / "a.cnf")
    with pytest.raises(SolverError, match=r"a\.lp cannot be read: No such file"):
        read_instance(tmp_path / "a.lp")
    with pytest.raises(SolverError, match="cannot be written"):
        write_instance(tmp_path / "no" / "a.lp", problem(1, {(0,): 1.0}))


# WCNF


def test_plain_wcnf_maximises_the_satisfied_weight() -> None:
    # A second hard clause on 2, so that no variable is defined by another one.
    text = "c hello\nh 1 -2 0\nh 2 3 0\n3 -1 -3 0\n2 2 0\n5 3 0\n1 0\n0 1 0\n4 2 -2 0\n"
    read = parse_wcnf(text, "f")
    problem_ = read.problem
    assert read.variables == ("1", "2", "3")
    assert problem_.attributes == 3
    for bits in itertools.product([0, 1], repeat=3):
        one, two, three = (bool(bit) for bit in bits)
        record = np.array(bits, np.uint8)
        assert problem_.feasible(record) == ((one or not two) and (two or three))
        expected = 3 * (not one or not three) + 2 * two + 5 * three + 4
        assert problem_.value(record) == expected


def test_old_wcnf_top_and_declared_variables() -> None:
    text = "p wcnf 4 5 10\n10 1 2 3 0\n10 -1 2 -3 0\n10 -2 3 0\n9 -1 0\n0 4 0\n"
    read = parse_wcnf(text, "f").problem
    assert read.attributes == 4
    assert len(read.constraints) == 3
    assert read.value(np.zeros(4, np.uint8)) == 9
    no_top = parse_wcnf("p wcnf 1 1\n10 1 0\n", "f").problem
    assert not no_top.constraints


@pytest.mark.parametrize("seed", range(12))
def test_decision_diagrams(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    coefficients = rng.integers(-4, 5, size) if seed % 2 else np.round(rng.normal(size=size), 3)
    lower, upper = sorted(rng.uniform(-6, 6, 2))
    constraint = LinearConstraint(np.arange(size, dtype=np.int32), coefficients, lower, upper)
    counter = itertools.count(size + 1)
    clauses = linear_clauses(constraint, range(1, size + 1), lambda: next(counter))
    for bits in itertools.product([False, True], repeat=size):
        holds = constraint.holds(np.array(bits, np.uint8))
        assert satisfiable(clauses, bits) == holds


def satisfiable(clauses: list[list[int]], bits: tuple[bool, ...]) -> bool:
    """Decide by unit propagation, which is complete for monotone diagrams once the input is set."""
    value = dict(enumerate(bits, 1))
    changed = True
    while changed:
        changed = False
        for clause in clauses:
            free = [x for x in clause if abs(x) not in value]
            if any(value.get(abs(x)) == (x > 0) for x in clause):
                continue
            if not free:
                return False
            if len(free) == 1:
                value[abs(free[0])] = free[0] > 0
                changed = True
    return True


def test_too_many_partial_sums_are_refused() -> None:
    coefficients = np.random.default_rng(0).normal(size=60)
    constraint = LinearConstraint(np.arange(60, dtype=np.int32), coefficients, upper=1.0)
    instance = problem(60, {(0,): 1.0}, None, (row([0], [1.0], 0.0, 1.0), constraint))
    with pytest.raises(ProblemTooLargeError, match="constraint 1: a linear constraint of 60"):
        encode(instance)


# LP and MPS


def test_general_lp() -> None:
    text = """\\ a knapsack
Maximise
 profit: 10 a + 6 b
   + 6 c - d + 2 0 e
subject to
 weight: 6 a + 5 b + 5 c <= 10
 low: a - d >= -1
 high: a - d <= 0
 pick: b + c = 1
 a + b <= 2
bounds
 e <= 1
 0 <= d <= 1
 c = 0
binary
 a b c
generals
 d e
end
""".replace("2 0 e", "20 e")
    read = parse_lp(text, "f")
    assert read.variables == ("a", "b", "c", "d", "e")
    assert read.problem.groups[0].tolist() == [1, 2]
    solution = get_solver("exhaustive").solve(read.problem)
    assert read.values(solution.record).tolist() == [0, 1, 0, 0, 1]
    assert solution.objective == 26


def test_minimisation_is_negated() -> None:
    read = parse_lp("min\n x + 2 y - 7\nst\n x + y >= 1\nbin\n x y\nend", "f")
    assert read.minimises
    assert get_solver("exhaustive").solve(read.problem).objective == 6
    mps = "NAME t\nROWS\n N o\n G r\nCOLUMNS\n x o 1 r 1\n y o 2 r -1\n"
    read = parse_mps(f"{mps}BOUNDS\n BV B x\n BV B y\nENDATA\n", "f")  # no right-hand sides
    assert read.minimises
    assert get_solver("exhaustive").solve(read.problem).objective == 0
