"""Parities: in how many rows each set of bits has an odd sum (Barak et al., PODS 2007).

**Lemma.** Replacing a record moves the number of a set by 1 at most, and only where the parities of
the two records differ: at most `dualquery.room.sensitivity.parities.parities_apart` of them.
Adding a record moves ``2 o_b + N - n``, o_b being the rows with an odd sum, by +1 or -1 in every
set b: the room adds noise of twice the scale to it, and gives out the half.
"""

from __future__ import annotations

from dataclasses import dataclass

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Statistic
from dualquery.queries.forms.fourier import odd_counts
from dualquery.room.exact import Exact, Numbers
from dualquery.room.private_data import PrivateData, as_conjunctions
from dualquery.room.sensitivity.moves import Moves, parity_moves


@dataclass(frozen=True, slots=True)
class Parities:
    """The rows with an odd sum of each query's bits.

    The queries are positive conjunctions and hold all their subsets.
    """

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how the numbers move, in rows."""
        return parity_moves(as_conjunctions(queries), neighbours)

    def exact(self, data: PrivateData) -> Exact:
        """Return the numbers of rows, or twice these and the excess of the public number."""
        odd = odd_counts(data.conjunctions, data.counts)
        moves = self.moves(data.queries, data.neighbours)
        return (
            Exact(type(self).__name__, odd, moves, unit=2.0)
            if data.rows_public
            else Exact(type(self).__name__, 2 * odd + data.excess, moves, 2.0)
        )

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:
        """Return the numbers of rows that noisy ones stand for."""
        return noisy if data.rows_public else noisy / 2
