"""Conjunctions by their Fourier coefficients: parities of the bits that they ask about.

The Fourier coefficient of a table at a set b of bits is the mean of ``chi_b(x) = (-1)^(sum of the
bits in b)``, or ``1 - 2 o_b / n`` with o_b the number of rows with an odd sum. A conjunction of
literals on the bits S with values v_j is ``prod_j (1 + s_j chi_j) / 2``, s_j = -1 for a 1 and +1
for a 0, so its answer is a signed mean of the coefficients of the subsets of S (Barak, Chaudhuri,
Dwork, Kale, McSherry and Talwar, PODS 2007, section 3). Two marginals use the same coefficient for
what they share: answers from any coefficients, noisy ones too, agree with each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload
from dualquery.queries.forms.subqueries import Subqueries


def asked_sets(workload: Workload) -> Subqueries:
    """Return the sets of bits whose coefficients determine the answers, as positive conjunctions.

    Signed queries on the same bits need the same coefficients.
    """
    bits = np.where(workload.literals >= 0, workload.literals & ~np.int32(1), np.int32(-1))
    return Subqueries.of(Workload(bits, workload.domain, workload.description, repeats=True))


def odd_counts(sets: Workload, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return in how many rows each set of bits has an odd sum, from counts of conjunctions.

    With c_g the number of rows in which all bits of g are 1,
    ``o_b = sum over non-empty g in b of (-2)^(|g| - 1) c_g``, in whole numbers.

    Parameters
    ----------
    sets
        Positive conjunctions, closed under taking subsets (see `asked_sets`).
    counts
        int64, shape ``(len(sets),)``: rows in which they hold.

    Raises
    ------
    ValueError
        If the conjunctions are not positive, not distinct or not closed under subsets.
    """
    if len(np.unique(sets.literals, axis=0)) != len(sets):
        raise ValueError("parities need distinct conjunctions")
    inside = Subqueries.of(sets)
    positive = bool(((sets.literals < 0) | (sets.literals & 1 == 0)).all())
    if not positive or len(inside.workload) != len(sets):
        raise ValueError("parities need positive conjunctions that hold all their subsets")
    patterns = np.arange(1 << sets.way)
    members = np.bitwise_count(patterns).astype(np.int64)
    factor = np.where(members > 0, (-2) ** np.maximum(members - 1, 0), 0)
    # A pattern with a position that has no literal repeats another one.
    absent = (sets.literals < 0) @ (1 << np.arange(sets.way))
    repeats = (absent[:, None] & patterns) != 0
    # The same conjunctions in another order: their own patterns say which is which.
    whole = np.where(repeats, 0, members).argmax(axis=1)
    own = inside.place[np.arange(len(sets)), whole]
    held = np.zeros(len(sets) + 1, np.int64)
    held[own] = counts
    odd: NDArray[np.int64] = np.where(repeats, 0, factor * held[inside.place]).sum(axis=1)
    return odd


def answers_of(
    workload: Workload, sets: Subqueries, coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the answers that Fourier coefficients determine; float64, shape ``(m,)``.

    Parameters
    ----------
    workload
        The conjunctions.
    sets
        `asked_sets` of the workload.
    coefficients
        float64, shape ``(len(sets.workload),)``, in [-1, 1] when exact.
    """
    way = workload.way
    patterns = np.arange(1 << way)
    # asked_sets keeps the order of literals: by bit, as a workload sorts them.
    positive = (workload.literals >= 0) & (workload.literals & 1 == 0)
    ones = np.bitwise_count((positive @ (1 << np.arange(way)))[:, None] & patterns)
    absent = (workload.literals < 0) @ (1 << np.arange(way))
    present = (absent[:, None] & patterns) == 0
    extended = np.append(coefficients, 1.0)[sets.place]
    total = np.where(present, (1.0 - 2.0 * (ones & 1)) * extended, 0.0).sum(axis=1)
    result: NDArray[np.float64] = total / present.sum(axis=1)
    return result
