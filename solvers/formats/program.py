"""0-1 programs as files state them, and best responses as programs to be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import Rows
from solvers.errors import SolverError
from solvers.formulation import Formulation, LinearProgram, formulate
from solvers.problem import BestResponse

MARK = "dualquery attributes"
"""Begins the comment that tells how many of a file's columns are attributes."""

_SMALLEST, _LARGEST = 1e-19, 9e19
"""SCIP, which reads and writes with 15 digits, takes 1e-20 for 0 and 1e20 for infinite."""


@dataclass(frozen=True, eq=False)
class Program:
    """Maximise over 0-1 vectors ``z`` under rows: linear weights, and weights of conjunctions.

    Conjunctions of columns are as in :class:`solvers.BestResponse`. ``minimises`` says that the
    file asks for the minimum of the negative; ``attributes``, how many of the columns, the first
    ones, are attributes of a problem that our own writer wrote, None for files of other programs.
    """

    names: tuple[str, ...]
    objective: NDArray[np.float64]
    constant: float
    terms: NDArray[np.int32]
    weights: NDArray[np.float64]
    rows: Rows
    minimises: bool = False
    attributes: int | None = None


class NamedProgram(NamedTuple):
    """A linear program to be written."""

    program: LinearProgram
    columns: list[str]
    rows: list[str]

    @staticmethod
    def numbered(program: LinearProgram) -> NamedProgram:
        """Return a program with numbers for names."""
        columns = [f"z{column}" for column in range(program.columns)]
        return NamedProgram(program, columns, [f"r{row}" for row in range(program.rows)])


def summed_rows(
    indptr: Sequence[int],
    columns: Sequence[int],
    coefficients: Sequence[float],
    bounds: NDArray[np.float64],
    width: int,
) -> Rows:
    """Return rows over ``width`` columns in which every column occurs once.

    The entries of row ``r`` are those from ``indptr[r]`` to ``indptr[r + 1]``; columns may repeat.
    ``bounds``, float64 of shape ``(rows, 2)``, are lower and upper.
    """
    from scipy.sparse import csr_array

    entries = np.array(coefficients, np.float64), np.array(columns, np.int32), np.array(indptr)
    matrix = csr_array(entries, shape=(len(bounds), width))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return Rows(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
        bounds[:, 0],
        bounds[:, 1],
    )


def named_program(problem: BestResponse) -> NamedProgram:
    """Return a problem as a program to be written.

    Its columns are the attributes (``x0``, ...) and the terms (``c0``, ...). Its rows are those
    that tie terms to literals (``t0``, ...), one for each group (``g0``, ...) and one for each
    linear constraint (``r0``, ...).

    Raises
    ------
    SolverError
        If a constraint cannot hold where there is no attribute: no row can say so; or if a number
        is too small or too large for the readers.
    """
    given = problem.rows
    impossible = (np.diff(given.indptr) == 0) & ((given.lower > 0.0) | (given.upper < 0.0))
    if not problem.attributes and impossible.any():
        number = int(impossible.argmax())
        raise SolverError(
            f"constraint {number} mentions no attribute and asks for {given.lower[number]} to "
            f"{given.upper[number]}: no record satisfies it, and LP and MPS cannot express it"
        )
    program = formulate(problem.canonical(), Formulation.DISAGGREGATED)
    sides = given.lower, given.upper
    numbers = np.concatenate((program.objective, [program.constant], given.coefficients, *sides))
    sizes = np.abs(numbers[np.isfinite(numbers) & (numbers != 0.0)])
    wrong = sizes[(sizes < _SMALLEST) | (sizes > _LARGEST)]
    if len(wrong):
        raise SolverError(
            f"the problem has the number {wrong[0]}; LP and MPS express 0 and those from "
            f"{_SMALLEST} to {_LARGEST}: scale the weights or the constraint"
        )
    columns = [f"x{attribute}" for attribute in range(problem.attributes)]
    columns += [f"c{term}" for term in range(program.columns - problem.attributes)]
    last = [f"g{group}" for group in range(len(problem.groups))]
    last += [f"r{constraint}" for constraint in range(len(given))]
    rows = [f"t{row}" for row in range(program.rows - len(last))] + last
    return NamedProgram(program, columns, rows)
