"""Files of problems: what is written is read back, and other programs' files are understood."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from solvers import BestResponse, LinearConstraint, ProblemTooLargeError, SolverError, get_solver
from solvers.formats import is_instance_file, read_instance, write_instance
from solvers.formats.clauses import encode, linear_clauses
from solvers.formats.instance import Instance
from solvers.formats.recognition import recognise
from solvers.formats.scip_reader import read_program
from solvers.formats.wcnf import parse_wcnf
from tests.solvers.instances import problem, random_problem, row


def parsed(text: str, suffix: str) -> Instance:
    return recognise(read_program(text, suffix, "f"))


def assert_equivalent(before: BestResponse, after: BestResponse) -> None:
    """Compare two problems on every record."""
    assert after.attributes == before.attributes
    tolerance = 1e-9 * (1.0 + np.abs(before.weights).sum() + abs(before.constant))
    for bits in itertools.product([0, 1], repeat=before.attributes):
        record = np.array(bits, np.uint8)
        assert after.feasible(record) == before.feasible(record), record
        if before.feasible(record):
            assert abs(after.value(record) - before.value(record)) <= tolerance


@pytest.mark.parametrize("suffix", [".lp.gz", ".lp.xz", ".MPS"])
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"problem{suffix}"
    assert is_instance_file(path)
    nothing = problem(2, {(0,): 1.0}, None, (row([], [], 1.0, np.inf), row([], [], -1.0, 1.0)))
    for original in (nothing, *map(random_problem, range(150))):
        if original.attributes <= 8:
            write_instance(path, original)
            assert_equivalent(original, read_instance(path).problem)


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_small_numbers_are_kept_and_what_cannot_be_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    write_instance(path, problem(2, {(0,): 2e-9, (1,): 3e-10}, constant=1e-10))
    assert read_instance(path).problem.value(np.ones(2, np.uint8)) == pytest.approx(2.4e-9)
    path.unlink()
    for size in (1e21, 1e20, 1e-20):
        for weight, coefficient, upper in ((size, 1.0, 1.0), (1.0, size, 1.0), (1.0, 1.0, size)):
            limit = row([0], [coefficient], -np.inf, upper)
            with pytest.raises(SolverError, match="LP and MPS express 0 and those from"):
                write_instance(path, problem(1, {(0,): weight}, None, (limit,)))
    assert not path.exists()


def test_unknown_suffix_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match=r"expected \.wcnf, \.lp, \.mps"):
        read_instance(tmp_path / "a.cnf")
    with pytest.raises(SolverError, match=r"a\.lp cannot be read: No such file"):
        read_instance(tmp_path / "a.lp")
    with pytest.raises(SolverError, match="cannot be written"):
        write_instance(tmp_path / "no" / "a.lp", problem(1, {(0,): 1.0}))


# WCNF


def test_wcnf_without_clauses_and_rounded(tmp_path: Path) -> None:
    path = tmp_path / "a.wcnf"
    write_instance(path, problem(1, {}))
    assert get_solver("auto").solve(read_instance(path).problem).objective == 0.0
    write_instance(path, problem(2, {(0,): 2.0**53 - 2.0, (1,): 1.0}))
    assert read_instance(path).problem.weights.sum() == 2**53 - 1
    write_instance(path, problem(2, {(0,): 1e18, (1,): 1.0}))  # the second weight becomes 0
    assert ", within " in path.read_text().splitlines()[0]


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
        assert problem_.value(record) == 3 * (not one or not three) + 2 * two + 5 * three + 4


def test_old_wcnf_top_and_declared_variables() -> None:
    top = 2**63
    text = f"p wcnf 4 5 {top}\n{top} 1 2 3 0\n{top} -1 2 -3 0\n{top} -2 3 0\n9 -1 0\n0 4 0\n"
    read = parse_wcnf(text, "f").problem
    assert read.attributes == 4
    assert len(read.constraints) == 3
    assert read.value(np.zeros(4, np.uint8)) == 9
    assert not parse_wcnf("p wcnf 1 1\n10 1 0\n", "f").problem.constraints


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
        assert satisfiable(clauses, bits) == constraint.holds(np.array(bits, np.uint8))


def satisfiable(clauses: list[list[int]], bits: tuple[bool, ...]) -> bool:
    """Decide by unit propagation, which is complete for monotone diagrams once the input is set."""
    true = {variable if bit else -variable for variable, bit in enumerate(bits, 1)}
    units = true
    while units:
        true = true | units
        if any(-x in true for x in units):
            return False
        free = [[x for x in c if -x not in true] for c in clauses if true.isdisjoint(c)]
        if [] in free:
            return False
        units = {clause[0] for clause in free if len(clause) == 1}
    return True


def test_too_many_partial_sums_are_refused() -> None:
    coefficients = np.random.default_rng(0).normal(size=60)
    constraint = LinearConstraint(np.arange(60, dtype=np.int32), coefficients, upper=1.0)
    with pytest.raises(ProblemTooLargeError, match="constraint 1: a linear constraint of 60"):
        encode(problem(60, {(0,): 1.0}, None, (row([0], [1.0], 0.0, 1.0), constraint)))


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
    read = parsed(text, ".lp")
    assert read.variables == ("a", "b", "c", "d", "e")
    assert read.problem.groups[0].tolist() == [1, 2]
    solution = get_solver("exhaustive").solve(read.problem)
    assert read.values(solution.record).tolist() == [0, 1, 0, 0, 1]
    assert solution.objective == 26


def test_minimisation_is_negated() -> None:
    read = parsed("min\n x + 2 y - 7\nst\n x + y >= 1\nbin\n x y\nend", ".lp")
    assert read.minimises
    assert get_solver("exhaustive").solve(read.problem).objective == 6
    mps = "NAME t\nROWS\n N o\n G r\nCOLUMNS\n x o 1 r 1\n y o 2 r -1\n"
    read = parsed(f"{mps}BOUNDS\n BV B x\n BV B y\nENDATA\n", ".mps")  # no right-hand sides
    assert read.minimises
    assert get_solver("exhaustive").solve(read.problem).objective == 0
