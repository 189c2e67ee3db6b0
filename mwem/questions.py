"""What an iteration asks: one query, or a whole marginal at once (a cuboid, section 3.3)."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.derived_queries import Cuboids
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.scores import WorstCuboid, WorstQuery
from dualquery.room.statistics import OneCuboid, OneQuery
from dualquery.runtime.errors import BadInputError
from mwem.options import MwemOptions
from mwem.representations import Representation
from mwem.spending import Spending


class Questions:
    """Sets of queries, each selected and measured as one.

    Either every query is a question (the algorithm of Figure 1), or every set of cells about the
    same columns. The score of such a marginal is the sum of its cells' absolute errors less the
    number of its cells, which is what the noise would add; its table is measured at the price of
    one histogram. Questions have one of the room's first ``asked`` queries, the workload's.
    ``moves`` is how far the counts of one question move, in steps; ``iterations`` is what is asked
    for, or 10, or all questions if there are fewer.

    Raises
    ------
    BadInputError
        If there are fewer questions than iterations, or cuboids are asked for of other queries.
    """

    def __init__(
        self, queries: Queries, asked: int, options: MwemOptions, neighbours: Neighbours
    ) -> None:
        self._queries = queries
        self._cuboids = Cuboids.of(queries) if options.cuboids else None
        self._together = np.ones(len(queries), np.int64)  # measured with each query, and itself
        self._first = np.arange(len(queries))
        if self._cuboids is None:
            self.moves = OneQuery(0).moves(queries, neighbours)
        else:
            cells = np.diff(self._cuboids.indptr)
            members = self._cuboids.members
            self._together[members] = np.repeat(cells, cells)
            self._first = members[self._cuboids.indptr[:-1]]  # members are in increasing order
            self.moves = OneCuboid(0).moves(queries, neighbours)
        self._own = self._first < asked
        found = int(np.count_nonzero(self._own))
        self.iterations = options.iterations or min(10, max(found, 1))
        if self.iterations > found:
            kind = "marginals" if options.cuboids else "queries"
            raise BadInputError(
                f"iterations is {self.iterations}, but the workload has only {found} {kind}, "
                f"and none is measured twice: take at most {found} iterations"
            )

    def __len__(self) -> int:
        return len(self._first)

    def admitted(self, distribution: Representation) -> NDArray[np.bool_]:
        """Return which questions fit a distribution's memory, each as a whole: bool, one each.

        By public facts alone, before anything is paid. Queries of one question have one scope.
        """
        return distribution.admits(self._together)[self._first] & self._own

    def select(
        self,
        curator: Curator,
        spending: Spending,
        answers: NDArray[np.float64],
        allowed: NDArray[np.bool_],
    ) -> int:
        """Select a question that the answers serve badly; charged."""
        scores = WorstQuery(answers) if self._cuboids is None else WorstCuboid(answers)
        return curator.select(scores, spending.choice, allowed)

    def measure(
        self, curator: Curator, spending: Spending, question: int, n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Measure a question; charged. Return its queries and their noisy answers.

        The cells of a whole marginal add up to the public n.
        """
        noise = spending.noise(spending.measure_scale)
        if self._cuboids is None:
            count = noise.measure(curator, OneQuery(question))
            return np.array([question]), count * self._queries.step / n
        noisy = noise.measure(curator, OneCuboid(question)) / n
        if self._cuboids.whole[question]:
            noisy -= (math.fsum(noisy) - 1.0) / len(noisy)
        return self._cuboids.queries(question), noisy

    def describe(
        self, queries: NDArray[np.int64], before: NDArray[np.float64], noisy: NDArray[np.float64]
    ) -> dict[str, Any]:
        """Return a line of the trace: what was asked, the model's answers, and the noisy ones."""
        if self._cuboids is None:
            return {
                "query": int(queries[0]),
                "answer_before": float(before[0]),
                "measured": float(noisy[0]),
            }
        return {
            "queries": queries.tolist(),
            "answers_before": before.tolist(),
            "measured": noisy.tolist(),
        }
