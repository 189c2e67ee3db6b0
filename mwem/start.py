"""Where a run starts: the uniform distribution, noisy cells, or columns with noisy shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.estimates.measurements import Measurements
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.sensitivity.moves import Moves, table_moves
from dualquery.room.statistics import AllQueries, EveryCell, SomeQueries
from mwem.columns import Columns
from mwem.layout import Layout
from mwem.options import MwemOptions
from mwem.single_bits import WithSingleBits
from mwem.spending import Spending

_UNIFORM_SHARE = 0.01
"""Share of the uniform distribution among noisy cells: none is given up for a noisy zero."""


@dataclass(frozen=True, eq=False)
class Started:
    """A_0, and the noisy numbers that it was made of.

    Parameters
    ----------
    distribution
        Independent columns, or float64, one number a cell; None for the uniform distribution.
    kept
        What a release keeps of the numbers.
    """

    distribution: Columns | NDArray[np.float64] | None = None
    kept: tuple[Measurements, ...] = ()


class Start(Protocol):
    """A way to start."""

    @property
    def held(self) -> Queries:
        """What the room counts: the workload's queries first, then those of the start."""
        ...

    def moves(self, neighbours: Neighbours) -> Moves:
        """Return how far what the start measures moves."""
        ...

    def measure(self, curator: Curator, spending: Spending, n: int) -> Started:
        """Measure what is needed, charged, and return A_0 for a public number of rows."""
        ...


@dataclass(frozen=True)
class Uniform:
    """All cells alike, as in Figure 1: nothing is measured."""

    held: Queries

    def moves(self, neighbours: Neighbours) -> Moves:  # noqa: ARG002
        """Return that nothing moves."""
        return Moves(0.0, 0.0, proof="nothing is measured")

    def measure(self, curator: Curator, spending: Spending, n: int) -> Started:  # noqa: ARG002
        """Return the uniform distribution."""
        return Started()


@dataclass(frozen=True)
class NoisyCells:
    """A noisy count of every cell (section 2.3.2)."""

    held: Queries

    def moves(self, neighbours: Neighbours) -> Moves:
        """Return how far a histogram moves."""
        return table_moves(neighbours)

    def measure(self, curator: Curator, spending: Spending, n: int) -> Started:  # noqa: ARG002
        """Cut negative counts off, and mix in a little of the uniform distribution."""
        counts = spending.measure_start(curator, EveryCell())
        positive = np.maximum(counts, 0).astype(np.float64)
        total = positive.sum()
        share = positive / total if total > 0 else np.full(counts.shape, 1.0 / counts.size)
        return Started((1.0 - _UNIFORM_SHARE) * share + _UNIFORM_SHARE / counts.size)


@dataclass(frozen=True, eq=False)
class NoisyColumns:
    """The shares of all columns that the queries mention; columns are independent then.

    Parameters
    ----------
    workload
        The queries.
    """

    workload: Workload

    @cached_property
    def _counted(self) -> WithSingleBits:
        return WithSingleBits.of(self.workload)

    @property
    def held(self) -> Workload:
        """The queries, then single bits."""
        return self._counted.held

    def moves(self, neighbours: Neighbours) -> Moves:
        """Return how far the counts of single bits move."""
        return AllQueries().moves(self._counted.single, neighbours)

    def measure(self, curator: Curator, spending: Spending, n: int) -> Started:
        """Measure single bits; other columns are uniform."""
        layout = Layout.of(self.workload)
        places = self._counted.places
        counts = spending.measure_start(curator, SomeQueries(places)).astype(np.float64)
        assert spending.start_scale is not None
        noise = spending.noise(spending.start_scale)
        columns = Columns.uniform(axis_sizes(layout.domain))
        base = layout.base(counts / n, noise.deviation / n)
        for place, column in enumerate(layout.columns.tolist()):
            columns.of(column)[:] = base[layout.values_of(place)]
        literals = 2 * layout.bits[:, None]
        kept = Measurements.of_literals(literals, counts / n, noise.deviation / n, noise.kind)
        return Started(columns, (kept,))


def start_of(queries: Queries, options: MwemOptions) -> Start:
    """Return the start that options ask for.

    Raises
    ------
    BadInputError
        If columns are to be measured and the queries are no conjunctions.
    """
    if options.noisy_init:
        return NoisyCells(queries)
    if options.start == "independent":
        return NoisyColumns(require_conjunctions(queries))
    return Uniform(queries)
