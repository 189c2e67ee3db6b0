"""Enumeration of all legal records: the reference on tiny problems."""

import math

import numpy as np
from numpy.typing import NDArray

from solvers.errors import ProblemTooLargeError
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability

MOST_RECORDS = 2**22
"""Largest number of legal records of a kernel that is enumerated."""

_CHUNK_CELLS = 2**22  # term values held at a time


class Exhaustive(KernelSolver):
    """Evaluates every legal record of the kernel; takes no argument."""

    name = "exhaustive"
    capabilities = KernelSolver.capabilities | {Capability.EXACT}

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Enumerate in blocks until done or the deadline has passed.

        Raises
        ------
        ProblemTooLargeError
            If the kernel has more than 2**22 legal records.
        """
        free = np.setdiff1d(np.arange(kernel.attributes), kernel.groups.members)
        sizes = np.diff(kernel.groups.indptr)
        records = math.prod(sizes.tolist()) << len(free)
        if records > MOST_RECORDS:
            raise ProblemTooLargeError(
                f"exhaustive enumerates at most {MOST_RECORDS} records; this problem has "
                f"{kernel.attributes} attributes that matter and about "
                f"2^{records.bit_length() - 1} records: use another solver"
            )
        best: NDArray[np.uint8] | None = None
        best_value = -math.inf
        found = 0.0
        chunk = max(_CHUNK_CELLS // max(len(kernel.terms), kernel.attributes), 1)
        for first in range(0, records, chunk):
            if best is not None and limits.remaining() == 0.0:
                return SearchResult(Ending.STOPPED, best, found=found)
            numbers = np.arange(first, min(first + chunk, records))
            block = _legal_records(kernel, free, sizes, numbers)
            values = _values(kernel, block)
            top = int(values.argmax())
            if values[top] > best_value:
                best = block[:, top].copy()
                best_value = values[top]
                found = limits.elapsed()
        if best is None:
            return SearchResult(Ending.INFEASIBLE)
        return SearchResult(Ending.PROVEN, best, best_value, found)


def _legal_records(
    kernel: BestResponse,
    free: NDArray[np.int64],
    sizes: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> NDArray[np.uint8]:
    """Return records by number in mixed radix, uint8 of shape ``(attributes, numbers)``."""
    block = np.zeros((kernel.attributes, len(numbers)), np.uint8)
    for attribute in free:
        block[attribute] = numbers & 1
        numbers = numbers >> 1
    for group, size in enumerate(sizes):
        numbers, digit = np.divmod(numbers, size)
        block[kernel.groups[group][digit], np.arange(len(numbers))] = 1
    return block


def _values(kernel: BestResponse, block: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the value of each record of a block, ``-inf`` of one that a constraint forbids."""
    truth = np.ones((2 * kernel.attributes + 1, block.shape[1]), np.bool_)
    truth[0:-1:2] = block == 1
    truth[1:-1:2] = block == 0
    satisfied = np.ones((len(kernel.terms), block.shape[1]), np.bool_)
    for literals in kernel.terms.T:
        satisfied &= truth[literals]
    values = kernel.constant + kernel.weights @ satisfied
    for constraint in kernel.rows:
        activity = constraint.coefficients @ block[constraint.attributes]
        values[activity < constraint.lower - constraint.slack] = -math.inf
        values[activity > constraint.upper + constraint.slack] = -math.inf
    return values
