"""What is planned of two stages, and what is known between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.everything import are_full, departures_of
from dualquery.mechanisms.matrix.expansion import Expansion
from dualquery.mechanisms.matrix.looks import Shares
from dualquery.mechanisms.matrix.measurement import FeatureMeasurement
from dualquery.mechanisms.protocol import Details
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features

Float64 = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TwoStages(Details):
    """What the two stages measure, with how much noise.

    Parameters
    ----------
    expansion
        The queries as sums of features, products of signs; of frequent items a stand-in.
    looked
        What the first stage measures: features of one column.
    full
        What the second stage measures if that is everything; None where it cannot be.
    directly
        Whether the second stage measures queries themselves if columns turn out to be full.
    neighbours, sensitivity
        What neighbouring tables differ in, and the L2 distance between the sums of these features
        of two of them.
    scale
        Standard deviation of the noise on these sums.
    again
        Sensitivity over scale of another look at the columns after a glance; 0 for none.
    ratio
        Sensitivity over scale of the last stage.
    deviation
        Standard deviation of a column's share after the first stage.
    records
        Number of synthetic records.
    """

    expansion: Expansion = field(compare=False)
    looked: Features = field(compare=False)
    full: FeatureMeasurement | None = field(compare=False)
    directly: bool
    neighbours: Neighbours
    sensitivity: float
    scale: float
    again: float
    ratio: float
    deviation: float
    records: int

    def parameters(self) -> Mapping[str, Any]:
        """Return the noise of both stages."""
        return {
            "features": len(self.expansion.features),
            "queries_themselves": self.directly,
            "neighbours": self.neighbours.value,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            **({"look_ratio": self.again} if self.again else {}),
            "second_ratio": self.ratio,
            "deviation": self.deviation,
            "records": self.records,
        }


def sensitivity_of_sign(neighbours: Neighbours) -> float:
    """Return that of a sign's sum: 2, or 1 where a row is added or removed, for each row that
    neighbours differ in.
    """
    return neighbours.furthest(2.0, 1.0)


@dataclass(frozen=True, eq=False)
class Known:
    """What is known between the stages.

    Parameters
    ----------
    planned, n
        What was planned, and the number of rows.
    workload, expansion
        The queries, and what they are made of.
    first
        The first stage's noisy shares.
    shares, uncertain
        float64, one each: what these are likely to be, and what that may be off.
    """

    planned: TwoStages
    n: int
    workload: Workload
    expansion: Expansion
    first: Shares
    shares: Float64
    uncertain: Float64

    def at_bits(self, values: Float64) -> Float64:
        """Return values of the columns at their bits, 0 at bits that were not looked at."""
        placed = np.zeros(self.workload.domain.bits)
        placed[self.first.bits] = values
        return placed

    @cached_property
    def shares_at_bits(self) -> Float64:
        """The shares at the columns' bits."""
        return self.at_bits(self.shares)

    @property
    def noise_of_sign(self) -> float:
        """Standard deviation of the noise of a sign's mean, were it measured alone."""
        planned = self.planned
        return sensitivity_of_sign(planned.neighbours) / (planned.ratio * self.n)

    @property
    def noise_of_answer(self) -> float:
        """Standard deviation of the noise of an answer, were it measured alone."""
        planned = self.planned
        return planned.neighbours.furthest(1.0, 1.0) / (planned.ratio * self.n)

    @cached_property
    def columns_full(self) -> bool:
        """Whether columns are full: departures from independence may be large then."""
        return are_full(self.expansion.features, self.planned.looked, self.shares)

    @cached_property
    def departures(self) -> Float64:
        """By how much each answer may differ from that of independent columns."""
        return departures_of(self.workload, self.shares_at_bits)


def measured(
    stage: int, *, columns: int = 0, products: int = 0, weighed: int = 0, queries: int = 0
) -> Mapping[str, int]:
    """Return a trace entry: how many numbers of each kind a stage measured."""
    return {
        "stage": stage,
        "columns": columns,
        "products": products,
        "weighed": weighed,
        "queries": queries,
    }
