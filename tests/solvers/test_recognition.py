"""Structure in files of other programs: what is read has the file's optimum, and its records."""

import itertools

import numpy as np
import pytest

from solvers import InfeasibleProblemError, get_solver
from solvers.formats import Instance
from solvers.formats.recognition import recognise
from solvers.formats.scip_reader import read_program
from solvers.formats.wcnf import parse_wcnf

Clauses = list[tuple[int | None, list[int]]]  # weight, None for a hard clause, and literals


def satisfied_weight(clauses: Clauses, values: np.ndarray) -> int | None:
    """Return the weight of the satisfied soft clauses; None if a hard one is violated."""
    total = 0
    for weight, literals in clauses:
        if any(values[abs(literal) - 1] == (literal > 0) for literal in literals):
            total += weight or 0
        elif weight is None:
            return None
    return total


def agrees(clauses: Clauses) -> Instance:
    """Check what is read of clauses against all assignments."""
    lines = ((["h"] if w is None else [w]) + [*literals, 0] for w, literals in clauses)
    read = parse_wcnf("".join(" ".join(map(str, line)) + "\n" for line in lines), "file")
    values = [np.array(bits) for bits in itertools.product([0, 1], repeat=len(read.variables))]
    weights = [w for v in values if (w := satisfied_weight(clauses, v)) is not None]
    if not weights:
        with pytest.raises(InfeasibleProblemError):
            get_solver("exhaustive").solve(read.problem)
        return read
    solution = get_solver("exhaustive").solve(read.problem)
    assert solution.objective == max(weights)
    assert satisfied_weight(clauses, read.values(solution.record)) == max(weights)
    return read


HARD = None


@pytest.mark.parametrize(
    ("clauses", "attributes", "groups", "rows"),
    [
        # y implies two literals, and is wanted.
        ([(HARD, [-3, 1]), (HARD, [-3, -2]), (5, [3]), (2, [-1])], 2, 0, 0),
        # It is unwanted: then it is 0, and nothing is tied.
        ([(HARD, [-3, 1, 2]), (HARD, [-3, -2, 1]), (5, [-3]), (2, [1])], 3, 0, 2),
        # Every literal together implies it, and it is unwanted: a relaxed soft clause.
        ([(HARD, [3, -1, -2]), (5, [-3]), (2, [1]), (2, [2])], 2, 0, 0),
        # A disjunction, both ways.
        ([(HARD, [3, -1]), (HARD, [3, -2]), (HARD, [-3, 1, 2]), (4, [-3]), (3, [1])], 2, 0, 0),
        # Nested: 4 is 1 and 3, and 3 is 1 and 2.
        (
            [(HARD, [-3, 1]), (HARD, [-3, 2]), (HARD, [3, -1, -2]), (HARD, [-4, 3]),
             (HARD, [-4, -5]), (7, [4]), (3, [-1]), (2, [5])],
            3, 0, 0,
        ),
        # Exactly one, pair by pair; at most one stays as it is.
        (
            [(HARD, [1, 2, 3]), (HARD, [-1, -2]), (HARD, [-3, -1]), (HARD, [-2, -3]), (1, [1, 2]),
             (HARD, [-4, -5]), (HARD, [-6, -4]), (HARD, [-5, -6]), (2, [4, 1]), (3, [5, 3]),
             (1, [6, 2])],
            6, 1, 3,
        ),
        # Contradictory clauses.
        ([(HARD, [1]), (HARD, [-1]), (1, [2])], 2, 0, 2),
    ],
)  # fmt: skip
def test_structure(clauses: Clauses, attributes: int, groups: int, rows: int) -> None:
    problem = agrees(clauses).problem
    found = problem.attributes, len(problem.groups), len(problem.rows)
    assert found == (attributes, groups, rows)


def random_clauses(rng: np.random.Generator) -> Clauses:
    """Return clauses of up to nine variables with definitions, sets, and what looks like them."""
    base, clauses = int(rng.integers(2, 6)), []
    variables = base

    def literals(count: int) -> list[int]:
        chosen = rng.permutation(variables)[:count] + 1
        return (chosen * rng.choice([-1, 1], len(chosen))).tolist()

    while variables < base + 3:
        body = literals(int(rng.integers(1, 4)))
        variables += 1
        head, forms = int(variables * rng.choice([-1, 1])), rng.integers(1, 4)
        if forms & 1:
            clauses += [(None, [-head, literal]) for literal in body]
        if forms & 2:
            clauses.append((None, [head, *(-literal for literal in body)]))
        if rng.random() < 0.8:
            clauses.append((int(rng.integers(1, 6)), [int(head * rng.choice([-1, 1]))]))
    for _ in range(rng.integers(0, 3)):
        clauses.append((None, literals(int(rng.integers(1, 4)))))
    if rng.random() < 0.4:
        chosen = (rng.permutation(variables)[:3] + 1).tolist()
        clauses += [(None, [-a, -b]) for a, b in itertools.combinations(chosen, 2)]
        if rng.random() < 0.5:
            clauses.append((None, chosen))
    for _ in range(rng.integers(1, 6)):
        clauses.append((int(rng.integers(0, 6)), literals(int(rng.integers(1, 4)))))
    number = np.concatenate(([0], rng.permutation(variables) + 1))
    shuffled: Clauses = [
        (weight, [int(number[abs(x)]) * (1 if x > 0 else -1) for x in rng.permutation(clause)])
        for weight, clause in clauses
    ]
    return [shuffled[n] for n in rng.permutation(len(shuffled))]


def test_random_clauses() -> None:
    defined = 0
    for seed in range(150):
        read = agrees(random_clauses(np.random.default_rng(seed)))
        defined += sum(len(each.variables) for each in read.definitions)
    assert defined > 120


def test_products_and_sets_in_lp() -> None:
    text = """max
 o: 3 y1 - 2 y2 + 4 y3 + a - b - c - d
st
 y1 - a <= 0
 y1 - b <= 0
 y2 - a - b >= -1
 2 y3 - c - d <= 0
 one: e + f + g = 1
 most: h + i + j <= 1
 card: a + b + c + d <= 3
 t: e + h <= 1
 u: f - i - c <= 0
 v: j - g - c <= 0
bin
 y1 y2 y3 a b c d e f g h i j
end
"""
    read = recognise(read_program(text, ".lp", "file"))
    assert read.found == (
        "3 defined variables read as conjunctions",
        "1 groups of exactly one",
        "5 other linear constraints",
    )
    problem = read.problem
    assert (problem.attributes, len(problem.groups), len(problem.rows)) == (10, 1, 5)
    solution = get_solver("exhaustive").solve(problem)
    values = dict(zip(read.variables, read.values(solution.record).tolist(), strict=True))
    assert solution.objective == 3.0
    assert values["y3"] == values["c"] * values["d"]
    assert values["y1"] == values["a"] * values["b"] == values["y2"]
