"""Best responses as cost function networks, written in the format WCSP of toulbar2.

A group is one variable, whose value is the number of the member that is 1; any other attribute is a
variable with the values 0 and 1. A conjunction is a cost on the values that its literals ask for,
so it needs no variable of its own. A negated literal of a group excludes one value only; it is
written by ``not x = 1 - x``, as a difference of two conjunctions.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import LinearConstraint
from solvers.errors import ProblemTooLargeError
from solvers.problem import BestResponse
from solvers.scaling import integer_row, integer_scaled

_BITS = 45
"""Size of the sum of all costs: far below what toulbar2 takes."""

_MOST_NEGATED = 10
"""Most negated literals of groups in a conjunction, which becomes 2 to that power of others."""

_Scope = tuple[tuple[int, int], ...]
"""Variables, ascending, each with the value that a conjunction asks for."""


@dataclass(frozen=True, eq=False)
class CostNetwork:
    """A problem as costs on the values of variables.

    Parameters
    ----------
    text
        The file.
    sizes
        Number of values of each variable.
    variable, value
        int64, shape ``(attributes,)``: an attribute is 1 if this variable has this value.
    best, scale, error
        A record of cost ``c`` has the objective ``best - c / scale``, up to ``error / scale``.
    """

    text: str
    sizes: list[int]
    variable: NDArray[np.int64]
    value: NDArray[np.int64]
    best: float
    scale: float
    error: float

    def record(self, values: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the record of the variables' values."""
        record: NDArray[np.uint8] = (values[self.variable] == self.value).astype(np.uint8)
        return record


def cost_network(problem: BestResponse) -> CostNetwork:
    """Return a problem as a cost function network.

    Raises
    ------
    ProblemTooLargeError
        If a conjunction has more than 10 negated literals of groups.
    """
    variable, value, sizes, grouped = _variables(problem)
    integers, scale, error = integer_scaled(problem.weights, _BITS)
    worth: dict[_Scope, int] = defaultdict(int)
    places = list(zip(variable.tolist(), value.tolist(), grouped.tolist(), strict=True))
    for term, weight in zip(problem.terms.tolist(), integers.tolist(), strict=True):
        for scope, sign in _scopes([code for code in term if code >= 0], places):
            worth[scope] += sign * weight
    certain = worth.pop((), 0)
    functions = [_function(scope, weight) for scope, weight in worth.items() if weight]
    for constraint in problem.rows:
        functions += _linear(constraint, variable, value)
    most = sum(weight for weight in worth.values() if weight > 0)
    top = sum(map(abs, worth.values())) + 1
    head = f"best-response {len(sizes)} {max(sizes, default=0)} {len(functions)} {top}"
    return CostNetwork(
        text="\n".join([head, " ".join(map(str, sizes)), *functions, ""]),
        sizes=sizes,
        variable=variable,
        value=value,
        best=problem.constant + (certain + most) / scale,
        scale=scale,
        error=error,
    )


def _variables(
    problem: BestResponse,
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int], NDArray[np.bool_]]:
    """Return each attribute's variable and value, the variables' sizes, and what is in a group."""
    groups = problem.groups
    variable = np.zeros(problem.attributes, np.int64)
    value = np.ones(problem.attributes, np.int64)
    sizes = np.diff(groups.indptr).tolist()
    variable[groups.members] = np.repeat(np.arange(len(groups)), sizes)
    for group in range(len(groups)):
        value[groups[group]] = np.arange(sizes[group])
    grouped = np.zeros(problem.attributes, np.bool_)
    grouped[groups.members] = True
    free = int((~grouped).sum())
    variable[~grouped] = len(sizes) + np.arange(free)
    return variable, value, [*sizes, *[2] * free], grouped


def _scopes(
    literals: Sequence[int], places: Sequence[tuple[int, int, bool]]
) -> list[tuple[_Scope, int]]:
    """Return a conjunction as a signed sum of conjunctions of single values."""
    asked: list[tuple[int, int]] = []
    excluded: list[tuple[int, int]] = []
    for code in literals:
        variable, value, grouped = places[code >> 1]
        if not code & 1:
            asked.append((variable, value))
        elif grouped:
            excluded.append((variable, value))
        else:
            asked.append((variable, 0))
    if len(excluded) > _MOST_NEGATED:
        raise ProblemTooLargeError(
            f"a conjunction has {len(excluded)} negated literals of groups; a cost function "
            f"network takes {_MOST_NEGATED} at most"
        )
    found = []
    for size in range(len(excluded) + 1):
        for chosen in itertools.combinations(excluded, size):
            values = dict([*asked, *chosen])
            if all(values[v] == x for v, x in (*asked, *chosen)):  # else never true
                found.append((tuple(sorted(values.items())), -1 if size % 2 else 1))
    return found


def _function(scope: _Scope, weight: int) -> str:
    """Return the costs of a conjunction: of not satisfying it, or of satisfying it."""
    variables = " ".join(str(variable) for variable, _ in scope)
    values = " ".join(str(value) for _, value in scope)
    otherwise, there = (weight, 0) if weight > 0 else (0, -weight)
    return f"{len(scope)} {variables} {otherwise} 1\n{values} {there}"


def _linear(
    constraint: LinearConstraint, variable: NDArray[np.int64], value: NDArray[np.int64]
) -> list[str]:
    """Return a linear constraint as ``knapsackp`` rows: a sum of weights of values is enough."""
    coefficients, lower, upper = integer_row(constraint, _BITS)
    total = int(np.abs(coefficients).sum())
    weights: dict[int, dict[int, int]] = defaultdict(dict)
    for attribute, coefficient in zip(constraint.attributes, coefficients.tolist(), strict=True):
        weights[int(variable[attribute])][int(value[attribute])] = coefficient
    rows = []
    if lower > -total or lower > upper:
        rows.append(_at_least(weights, lower))
    if upper < total or lower > upper:
        negated = {v: {x: -c for x, c in of.items()} for v, of in weights.items()}
        rows.append(_at_least(negated, -upper))
    return rows


def _at_least(weights: dict[int, dict[int, int]], least: int) -> str:
    words = [str(len(weights)), *map(str, weights), "-1", "knapsackp", str(least)]
    for of_one in weights.values():
        words.append(str(len(of_one)))
        words += [f"{value} {weight}" for value, weight in of_one.items()]
    return " ".join(words)
