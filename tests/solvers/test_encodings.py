"""OPB and WCSP: every record of small problems costs in a file what the problem says."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from solvers import BestResponse, ProblemTooLargeError
from solvers.compact import compact
from solvers.formats.opb import pseudo_boolean
from solvers.formats.wcsp import cost_network
from tests.solvers.instances import constrained_problem, groups_of, problem, random_problem

COMPARISONS = {">=": operator.ge, "=": operator.eq}


def kernels() -> Iterator[BestResponse]:
    for seed in range(40):
        for make in (random_problem, constrained_problem):
            kernel = compact(make(seed)).problem
            if len(kernel.terms) > 0 and kernel.attributes <= 8:
                yield kernel


def records(kernel: BestResponse) -> Iterator[NDArray[np.uint8]]:
    for bits in itertools.product((0, 1), repeat=kernel.attributes):
        yield np.array(bits, np.uint8)


def row_holds(line: str, values: list[int]) -> bool:
    words = line.rstrip(" ;").split()
    pairs = zip(words[0:-2:2], words[1:-2:2], strict=True)
    total = sum(int(weight) * values[int(name[1:]) - 1] for weight, name in pairs)
    return COMPARISONS[words[-2]](total, int(words[-1]))


def test_opb_says_what_the_problem_says() -> None:
    looked_at = 0
    for kernel in kernels():
        program = pseudo_boolean(kernel)
        _, objective, *rows = program.text().splitlines()
        words = objective.removeprefix("min: ").rstrip(" ;").split()
        wishes = {int(n[1:]) - 1: int(w) for w, n in zip(words[::2], words[1::2], strict=True)}
        wide = np.flatnonzero((kernel.terms >= 0).sum(axis=1) > 1)
        for record in records(kernel):
            values = [*record.tolist(), *kernel.satisfied(record)[wide].astype(int).tolist()]
            assert len(values) == program.variables
            assert all(row_holds(row, values) for row in rows) == kernel.feasible(record)
            if not kernel.feasible(record):
                continue
            looked_at += 1
            cost = sum(weight * values[number] for number, weight in wishes.items())
            assert program.constant - cost / program.scale == pytest.approx(
                kernel.value(record), abs=1e-9
            )
            # A variable that claims a conjunction to be better than it is breaks a row.
            for column in range(kernel.attributes, len(values)):
                better = values.copy()
                better[column] = int(wishes[column] < 0)
                if better != values:
                    assert not all(row_holds(row, better) for row in rows)
    assert looked_at > 500


def functions(text: str) -> Iterator[tuple[list[int], list[str], list[list[int]]]]:
    lines = iter(text.splitlines()[2:])
    for line in lines:
        words = line.split()
        arity = int(words[0])
        scope, rest = [int(word) for word in words[1 : arity + 1]], words[arity + 1 :]
        tuples = [] if rest[0] == "-1" else [next(lines).split() for _ in range(int(rest[1]))]
        yield scope, rest, [[int(word) for word in words] for words in tuples]


def cost_of(text: str, values: list[int]) -> int | None:
    """Return what an assignment costs, or None if it is forbidden."""
    total = 0
    for scope, rest, tuples in functions(text):
        here = [values[variable] for variable in scope]
        if rest[0] != "-1":
            total += next((each[-1] for each in tuples if each[:-1] == here), int(rest[0]))
            continue
        assert rest[1] == "knapsackp"
        words = iter(rest[3:])
        weight = 0
        for value in here:
            pairs = [(int(next(words)), int(next(words))) for _ in range(int(next(words)))]
            weight += dict(pairs).get(value, 0)
        if weight < int(rest[2]):
            return None
    return total


def test_wcsp_says_what_the_problem_says() -> None:
    looked_at = 0
    for kernel in kernels():
        network = cost_network(kernel)
        for values in itertools.product(*(range(size) for size in network.sizes)):
            record = network.record(np.array(values, np.int64))
            cost = cost_of(network.text, list(values))
            assert (cost is not None) == kernel.feasible(record)
            if cost is not None:
                looked_at += 1
                objective = network.best - cost / network.scale
                assert objective == pytest.approx(kernel.value(record), abs=1e-9)
    assert looked_at > 500


def test_wcsp_refuses_what_would_explode() -> None:
    wide = problem(
        33, {tuple(~(3 * group) for group in range(11)): 1.0},
        groups_of(*([3 * group + member for member in range(3)] for group in range(11))),
    )  # fmt: skip
    with pytest.raises(ProblemTooLargeError, match="11 negated literals of groups"):
        cost_network(wide)
