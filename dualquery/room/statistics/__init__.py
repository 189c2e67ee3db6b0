"""Statistics: vectors of exact whole numbers with a proven bound on how far they move.

The set is closed: the room measures these types and no others, so that nobody can hand it a
statistic whose moves are not what is proven here. Each of them has

- ``moves(queries, neighbours)``: how far the vector moves between neighbours, for a plan;
- ``exact(data)``: the vector itself and its moves, for the room only;
- ``published(noisy, data)``: what a noisy vector stands for, by public facts.
"""

from __future__ import annotations

from typing import get_args

from dualquery.room.statistics.counts import AllQueries, OneQuery, SomeQueries
from dualquery.room.statistics.features import FeatureSums
from dualquery.room.statistics.parities import Parities
from dualquery.room.statistics.sums import ColumnSums
from dualquery.room.statistics.tables import EveryCell, OneCuboid, QueryTable
from dualquery.room.statistics.total import RowTotal

PrivateStatistic = (
    AllQueries
    | SomeQueries
    | OneQuery
    | OneCuboid
    | QueryTable
    | EveryCell
    | Parities
    | FeatureSums
    | ColumnSums
    | RowTotal
)
"""What can be measured."""

STATISTICS = get_args(PrivateStatistic)
"""Their types: a statistic must be exactly one of them, not a subclass."""

__all__ = [
    "STATISTICS",
    "AllQueries",
    "ColumnSums",
    "EveryCell",
    "FeatureSums",
    "OneCuboid",
    "OneQuery",
    "Parities",
    "PrivateStatistic",
    "QueryTable",
    "RowTotal",
    "SomeQueries",
]
