"""Problems of the tests: named ones with known optima, and random ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, milp
from scipy.optimize import LinearConstraint as Rows

from solvers import BestResponse, Groups, LinearConstraint
from solvers.formulation import Formulation, formulate


def groups_of(*members: Sequence[int]) -> Groups:
    indptr = np.concatenate(([0], np.cumsum([len(group) for group in members]))).astype(np.int64)
    return Groups(indptr, np.array([m for group in members for m in group], np.int32))


def problem(
    attributes: int,
    terms: dict[tuple[int, ...], float] | list[tuple[tuple[int, ...], float]],
    groups: Groups | None = None,
    constraints: tuple[LinearConstraint, ...] = (),
    constant: float = 0.0,
) -> BestResponse:
    """Return a problem whose literals are written as ``a`` or, negated, ``~a``."""
    rows = list(terms.items()) if isinstance(terms, dict) else terms
    width = max((len(literals) for literals, _ in rows), default=0)
    codes = np.full((len(rows), width), -1, np.int32)
    for row, (literals, _) in enumerate(rows):
        codes[row, : len(literals)] = [2 * a if a >= 0 else 2 * ~a + 1 for a in literals]
    weights = np.array([weight for _, weight in rows], np.float64)
    return BestResponse(attributes, codes, weights, groups or Groups.none(), constraints, constant)


def row(
    attributes: list[int], coefficients: list[float], lower: float, upper: float
) -> LinearConstraint:
    return LinearConstraint(
        np.array(attributes, np.int32), np.array(coefficients, np.float64), lower, upper
    )


@dataclass(frozen=True)
class Named:
    """A problem and its optimum; the name says what it tests."""

    name: str
    make: Callable[[], BestResponse]
    optimum: float


def _chain(width: int) -> BestResponse:
    """Four windows of ``width`` attributes all true, against one cheaper wish of zeros."""
    wishes = {tuple(range(first, first + width)): 2.0 for first in range(4)}
    return problem(width + 3, {**wishes, (~0, ~(width + 2)): 1.0})


NAMED = [
    Named("empty", lambda: problem(0, {}), 0.0),
    Named("no terms", lambda: problem(5, {}, groups_of([0, 3]), constant=2.5), 2.5),
    Named("one variable wanted", lambda: problem(1, {(0,): 3.0}), 3.0),
    Named("empty conjunction", lambda: problem(2, [((), 4.0), ((0, 1), 1.0)]), 5.0),
    Named("duplicates add up", lambda: problem(3, [((0, 1), 1), ((1, 0), 1), ((~0,), 1.5)]), 2.0),
    Named("no positive term", lambda: problem(3, {(0, 1): -1.0, (~0,): -1.0, (~1, 2): -2.0}), 0.0),
    Named("negative weight", lambda: problem(3, {(0, 1): 3.0, (0, 1, 2): -5.0, (2,): 1.0}), 3.0),
    Named("groups of one", lambda: problem(2, {(0, ~1): 5.0, (0, 1): 1.0}, groups_of([0], [1])), 1),
    Named(
        "one of a group",
        lambda: problem(3, {(0,): 1.0, (1,): 2.0, (2,): 1.5}, groups_of([0, 1, 2])),
        2.0,
    ),
    Named(
        "at most two",
        lambda: problem(
            4,
            {(a,): a + 1.0 for a in range(4)},
            constraints=(row([0, 1, 2, 3], [1.0] * 4, -np.inf, 2.0),),
        ),
        7.0,
    ),
    Named(
        "knapsack",
        lambda: problem(
            4,
            {(0,): 10.0, (1,): 6.0, (2,): 6.0, (3,): 1.0},
            constraints=(row([0, 1, 2, 3], [6.0, 5.0, 5.0, 0.0], -np.inf, 10.0),),
        ),
        13.0,
    ),
    Named(
        "equality that fixes everything",
        lambda: problem(
            3, {(0,): -1.0, (1, ~2): 5.0}, constraints=(row([0, 1, 2], [1.0, 2.0, 4.0], 5.0, 5.0),)
        ),
        -1.0,
    ),
    Named("huge", lambda: problem(3, {(0, 1): 3e15, (~0,): 2e15, (1, 2): -1e15, (2,): 5e14}), 3e15),
    Named(
        "huge and tiny weights",
        lambda: problem(4, {(0, 1): 1e6, (~0,): 9e5, (1, 2): -1e-3, (2, 3): 1e-2}),
        1e6 + 9e-3,
    ),
    Named(
        "real weights",
        lambda: problem(3, {(0, 1): np.pi, (~0, 2): np.e, (~1,): 0.5, (2,): 1 / 3}),
        np.e + 0.5 + 1 / 3,
    ),
    *(Named(f"windows of {w}", lambda width=w: _chain(width), 8.0) for w in range(1, 9)),
]
"""Every problem with its optimum, found by hand."""


def random_problem(seed: int) -> BestResponse:
    """Return a feasible problem of up to 12 attributes, with all that a problem may have."""
    rng = np.random.default_rng(seed)
    attributes = int(rng.integers(1, 13))
    width = int(rng.integers(1, 9 if rng.random() < 0.4 else 4))
    count = int(rng.integers(0, 40))
    terms = rng.integers(0, 2 * attributes, (count, width)).astype(np.int32)
    terms[rng.random(terms.shape) < rng.choice([0.0, 0.3])] = -1
    whole = rng.random() < 0.6
    weights = rng.integers(-5, 6, count).astype(float) if whole else rng.normal(size=count)
    shuffled, cuts = rng.permutation(attributes), [0]
    while rng.random() < 0.7 and cuts[-1] < attributes:
        cuts.append(min(attributes, cuts[-1] + int(rng.integers(1, 5))))
    groups = Groups(np.array(cuts, np.int64), shuffled[: cuts[-1]].astype(np.int32))
    record = random_record(attributes, groups, rng)
    constraints = []
    for _ in range(rng.integers(0, 3)):
        named = rng.permutation(attributes)[: rng.integers(1, attributes + 1)].astype(np.int32)
        coefficients = (
            rng.integers(-3, 4, len(named)).astype(np.float64)
            if rng.random() < 0.7
            else rng.normal(size=len(named))
        )
        # Bounds around the sum of a legal record, so that something is feasible.
        activity = float(coefficients @ record[named])
        lower = activity - rng.choice([0.0, 1.0, np.inf])
        upper = activity + rng.choice([0.0, 1.0, 2.5, np.inf])
        constraints.append(LinearConstraint(named, coefficients, lower, upper))
    return BestResponse(attributes, terms, weights, groups, tuple(constraints), float(rng.normal()))


def constrained_problem(seed: int) -> BestResponse:
    """Return a feasible problem of up to 12 attributes, with groups and 1 to 20 constraints."""
    rng, plain = np.random.default_rng(seed), random_problem(seed)
    attributes, groups = plain.attributes, plain.groups
    record = random_record(attributes, groups, rng)
    constraints = []
    for _ in range(rng.integers(1, 21)):
        named = rng.permutation(attributes)[: rng.integers(1, min(attributes, 6) + 1)]
        coefficients = rng.integers(-4, 5, len(named)).astype(np.float64)
        activity = float(coefficients @ record[named])
        lower = activity - rng.choice([0.0, 1.0, 2.0, np.inf], p=[0.2, 0.3, 0.2, 0.3])
        upper = activity + rng.choice([0.0, 1.0, 2.0, np.inf], p=[0.2, 0.3, 0.2, 0.3])
        constraints.append(LinearConstraint(named.astype(np.int32), coefficients, lower, upper))
    return BestResponse(
        attributes, plain.terms, plain.weights, groups, tuple(constraints), plain.constant
    )


def random_record(attributes: int, groups: Groups, rng: np.random.Generator) -> np.ndarray:
    """Return a random record that is legal for the groups."""
    record = rng.integers(0, 2, attributes).astype(np.uint8)
    record[groups.members] = 0
    for group in range(len(groups)):
        record[rng.choice(groups[group])] = 1
    return record


def from_sample(
    attributes: int, terms: np.ndarray, signs: np.ndarray, groups: Groups | None = None
) -> BestResponse:
    """Return the problem of sampled queries (sign 1) and complements ``1 - q`` (sign -1)."""
    merged = BestResponse.merging(attributes, terms, np.asarray(signs, np.float64), groups)
    return replace(merged, constant=merged.constant + float(np.count_nonzero(np.less(signs, 0))))


def sampled_problem(
    attributes: int, clauses: int, seed: int, column: int | None = None
) -> BestResponse:
    """Return signed 3-literal conjunctions; each ``column`` attributes make a group."""
    rng = np.random.default_rng(seed)
    size = 1 if column is None else column
    picked = np.stack([rng.choice(attributes // size, 3, replace=False) for _ in range(clauses)])
    bits = picked * size + rng.integers(0, size, picked.shape)
    terms = (2 * bits + rng.integers(0, 2, bits.shape)).astype(np.int32)
    members = () if column is None else np.arange(attributes).reshape(-1, column)
    return from_sample(attributes, terms, rng.choice([-1, 1], clauses), groups_of(*members))


def weighted_maxsat(seed: int, attributes: int | None = None) -> BestResponse:
    """Return a random weighted partial MaxSAT: hard clauses are rows that a hidden record keeps."""
    rng = np.random.default_rng(seed)
    n = attributes or int(rng.integers(60, 151))
    hidden, clauses = rng.integers(0, 2, n), []
    for hard in (False, True):
        for _ in range(int(rng.uniform(0.5, 2.5) * n) if hard else int(rng.integers(3, 8)) * n):
            width = int(rng.integers(2, 4) if hard else rng.integers(1, 4))
            of = np.sort(rng.choice(n, width, replace=False)).astype(np.int32)
            negated = rng.integers(0, 2, width)
            if hard and (hidden[of] == negated).all():
                negated[0] = 1 - hidden[of[0]]
            clauses.append((hard, of, negated))
    soft = [(tuple(np.where(neg, of, ~of).tolist()), -float(rng.integers(1, 51)))
            for hard, of, neg in clauses if not hard]  # fmt: skip
    rows = [LinearConstraint(of, 1.0 - 2.0 * neg, lower=1.0 - float(neg.sum()))
            for hard, of, neg in clauses if hard]  # fmt: skip
    terms = problem(n, soft)
    return BestResponse.merging(n, terms.terms, terms.weights, constraints=tuple(rows))


def relaxed_optimum(kernel: BestResponse, form: Formulation = Formulation.DISAGGREGATED) -> float:
    """Return the optimum of a formulation's linear relaxation."""
    program = formulate(kernel, form)
    rows = Rows(program.sparse_matrix(), program.constraints.lower, program.constraints.upper)
    found = milp(-program.objective, bounds=Bounds(0, 1), constraints=rows)
    return float(program.constant - found.fun)
