"""Sums of features over the rows, each with noise of its own scale (the matrix mechanism).

**Lemma.** ``Strategy.sensitivity`` bounds the Euclidean length by which the sums over their scales
move; its proof is in `dualquery.room.strategy`. No L1 bound is proven, so Laplace noise is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Statistic
from dualquery.room.exact import Exact, Numbers
from dualquery.room.features import Features
from dualquery.room.private_data import PrivateData
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.strategy import Strategy


@dataclass(frozen=True, slots=True)
class FeatureSums:
    """The sums of features; rows above the strategy's limit are left out.

    They take another pass over the rows.
    """

    strategy: Strategy
    """The features, the scales of their noise up to a factor, and the limit, all public."""

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how the sums over their scales move."""
        return _moves(self._remade(queries, neighbours))

    def exact(self, data: PrivateData) -> Exact:
        """Return the sums."""
        strategy = self._remade(data.queries, data.neighbours)
        sums = strategy.sums(data.rows, data.threads)
        return Exact(type(self).__name__, sums, _moves(strategy), strategy.scales)

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:  # noqa: ARG002
        """Return the noisy sums as they are."""
        return noisy

    def _remade(self, queries: Statistic, neighbours: Neighbours) -> Strategy:
        """Make the strategy anew, for the room's own neighbours: its sensitivity is what this
        room's own code makes of it.
        """
        given = self.strategy
        features = Features(given.features.bits, queries.domain, given.features.centred)
        return Strategy(features, given.scales, neighbours, given.limit)


def _moves(strategy: Strategy) -> Moves:
    return Moves(math.inf, strategy.sensitivity, proof="dualquery.room.strategy")
