"""Many problems about the same conjunctions: what they share is worked out once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import LinearConstraint
from solvers.errors import InvalidProblemError
from solvers.groups import Groups
from solvers.problem import BestResponse
from solvers.terms import is_canonical, sorted_runs


class TermPool:
    """Conjunctions that problems choose from.

    Parameters
    ----------
    attributes
        Number of attributes of a record.
    terms
        int32, shape ``(m, k)``: literal codes as in :class:`BestResponse`. Rows are not empty,
        padded on the right, and ascend in distinct attributes; they may repeat.
    groups, constraints
        Those of every problem.

    Raises
    ------
    InvalidProblemError
        If rows are not so, and as :class:`BestResponse`.
    """

    def __init__(
        self,
        attributes: int,
        terms: NDArray[np.int32],
        groups: Groups | None = None,
        constraints: Sequence[LinearConstraint] = (),
    ) -> None:
        # As they came, so that bad codes are reported before they are packed into keys.
        BestResponse(attributes, terms, np.zeros(len(terms)))
        if not is_canonical(terms):
            raise InvalidProblemError(
                "a row of the terms is empty, holds an attribute twice, or does not ascend"
            )
        order, first = sorted_runs(attributes, terms)
        self._number = np.empty(len(terms), np.int64)
        self._number[order] = np.cumsum(first) - 1
        # Checked as a problem: of all its terms, of no weight.
        self._all = BestResponse(
            attributes,
            terms[order[first]],
            np.zeros(np.count_nonzero(first)),
            Groups.none() if groups is None else groups,
            constraints,
        )

    def problem(
        self, rows: NDArray[np.int64], weights: NDArray[np.number[Any]], constant: float = 0.0
    ) -> BestResponse:
        """Return the problem of weighted rows of the pool; those that are equal add up.

        It is that of :meth:`BestResponse.merging`.

        Parameters
        ----------
        rows
            int64, shape ``(s,)``: positions in the pool's terms, with repetitions.
        weights
            Finite numbers, shape ``(s,)``.
        constant
            Added to the objective.
        """
        every = self._all
        numbers = self._number[rows]
        totals = np.bincount(numbers, weights, minlength=len(every.terms)).astype(
            np.float64, copy=False
        )
        kept = np.flatnonzero(totals != 0.0)
        return BestResponse(
            every.attributes, every.terms[kept], totals[kept], every.groups, every.rows, constant
        )
