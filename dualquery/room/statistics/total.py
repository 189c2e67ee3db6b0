"""The number of rows, where it is private.

**Lemma.** Replacing a record leaves it as it is; adding or removing one moves it by 1. Between
neighbours by a unit of at most K rows it moves by K at most (`dualquery.privacy.neighbours`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Statistic
from dualquery.room.exact import Exact, Numbers
from dualquery.room.private_data import PrivateData
from dualquery.room.sensitivity.moves import Moves


@dataclass(frozen=True, slots=True)
class RowTotal:
    """The number of rows: a vector of one number."""

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:  # noqa: ARG002
        """Return how the number moves, whatever the queries are."""
        return Moves.of_entries(1, neighbours.steps, "definition")

    def exact(self, data: PrivateData) -> Exact:
        """Return the number of rows."""
        moves = self.moves(data.queries, data.neighbours)
        return Exact(type(self).__name__, np.array([data.rows.n], np.int64), moves)

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:  # noqa: ARG002
        """Return the noisy number as it is."""
        return noisy
