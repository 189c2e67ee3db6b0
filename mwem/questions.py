"""What an iteration asks: one query, or a whole marginal at once (a cuboid, section 3.3)."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Queries
from dualquery.queries.forms.cuboids import Cuboids
from dualquery.room.curator import Curator
from dualquery.room.scores import WorstCuboid, WorstQuery
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import OneCuboid, OneQuery
from dualquery.runtime.errors import BadInputError
from mwem.options import MwemOptions
from mwem.spending import Spending


class Questions(Protocol):
    """Ways to learn about queries, each selected and measured as one."""

    moves: Moves
    """How far the counts of one question move, in steps."""

    def __len__(self) -> int: ...

    def admitted(self, queries: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which questions have only admitted queries."""
        ...

    def select(
        self,
        curator: Curator,
        spending: Spending,
        answers: NDArray[np.float64],
        allowed: NDArray[np.bool_],
    ) -> int:
        """Select a question that the answers serve badly; charged."""
        ...

    def measure(
        self, curator: Curator, spending: Spending, question: int, n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Measure a question; charged. Return its queries and their noisy answers."""
        ...

    def describe(
        self, queries: NDArray[np.int64], before: NDArray[np.float64], noisy: NDArray[np.float64]
    ) -> dict[str, Any]:
        """Return a line of the trace: what was asked, the model's answers, and the noisy ones."""
        ...


class SingleQueries:
    """Every query is a question: the algorithm of Figure 1.

    Parameters
    ----------
    queries
        The room's queries.
    asked
        How many of them, from the first on, are the workload's: only these are admitted.
    neighbours
        The relation.
    """

    def __init__(self, queries: Queries, asked: int, neighbours: Neighbours) -> None:
        self._queries = queries
        self._own = np.arange(len(queries)) < asked
        self.moves = OneQuery(0).moves(queries, neighbours)

    def __len__(self) -> int:
        return len(self._queries)

    def admitted(self, queries: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the admitted queries themselves."""
        return queries & self._own

    def select(
        self,
        curator: Curator,
        spending: Spending,
        answers: NDArray[np.float64],
        allowed: NDArray[np.bool_],
    ) -> int:
        """Select a query by its error."""
        return curator.select(WorstQuery(answers), spending.choice, allowed)

    def measure(
        self, curator: Curator, spending: Spending, question: int, n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Measure one query."""
        count = spending.noise(spending.measure_scale).measure(curator, OneQuery(question))
        return np.array([question]), count * self._queries.step / n

    def describe(
        self, queries: NDArray[np.int64], before: NDArray[np.float64], noisy: NDArray[np.float64]
    ) -> dict[str, Any]:
        """Return the query, its answer before the update, and the measurement."""
        return {
            "query": int(queries[0]),
            "answer_before": float(before[0]),
            "measured": float(noisy[0]),
        }


class WholeMarginals:
    """Every set of cells about the same columns is a question.

    The score of a marginal is the sum of its cells' absolute errors less the number of its cells,
    which is what the noise would add; its table is measured at the price of one histogram.
    Parameters are those of `SingleQueries`; marginals with a cell of the workload are admitted.
    """

    def __init__(self, queries: Queries, asked: int, neighbours: Neighbours) -> None:
        self._cuboids = Cuboids.of(queries)
        # Members are in increasing order.
        self._own = self._cuboids.members[self._cuboids.indptr[:-1]] < asked
        self.moves = OneCuboid(0).moves(queries, neighbours)

    def __len__(self) -> int:
        return len(self._cuboids)

    def admitted(self, queries: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the marginals whose columns fit: their cells have one scope."""
        return queries[self._cuboids.members[self._cuboids.indptr[:-1]]] & self._own

    def select(
        self,
        curator: Curator,
        spending: Spending,
        answers: NDArray[np.float64],
        allowed: NDArray[np.bool_],
    ) -> int:
        """Select a marginal by its score."""
        return curator.select(WorstCuboid(answers), spending.choice, allowed)

    def measure(
        self, curator: Curator, spending: Spending, question: int, n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Measure a table. The cells of a whole marginal add up to the public n."""
        noise = spending.noise(spending.measure_scale)
        noisy = noise.measure(curator, OneCuboid(question)) / n
        if self._cuboids.whole[question]:
            noisy -= (math.fsum(noisy) - 1.0) / len(noisy)
        return self._cuboids.queries(question), noisy

    def describe(
        self, queries: NDArray[np.int64], before: NDArray[np.float64], noisy: NDArray[np.float64]
    ) -> dict[str, Any]:
        """Return the queries, their answers before the update, and the measurements."""
        return {
            "queries": queries.tolist(),
            "answers_before": before.tolist(),
            "measured": noisy.tolist(),
        }


def questions_of(
    queries: Queries, asked: int, options: MwemOptions, neighbours: Neighbours
) -> Questions:
    """Return the questions that the user's options ask for; parameters as of `SingleQueries`.

    Raises
    ------
    BadInputError
        If there are fewer questions than iterations, or cuboids are asked for of other queries.
    """
    kinds = WholeMarginals if options.cuboids else SingleQueries
    questions: Questions = kinds(queries, asked, neighbours)
    found = np.count_nonzero(questions.admitted(np.ones(len(queries), np.bool_)))
    if options.iterations > found:
        kind = "marginals" if options.cuboids else "queries"
        raise BadInputError(
            f"iterations is {options.iterations}, but the workload has only {found} {kind}, and "
            f"none is measured twice: take at most {found} iterations"
        )
    return questions
