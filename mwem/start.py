"""Where a run starts: the uniform distribution, noisy cells, or columns with noisy shares."""

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes, cells_of
from dualquery.estimates.cell_evidence import MOST_CELLS
from dualquery.estimates.measurements import Measurements
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import require_conjunctions
from dualquery.queries.family import Queries
from dualquery.queries.ranges import RangeQueries
from dualquery.room.curator import Curator
from dualquery.room.sensitivity.moves import Moves, table_moves
from dualquery.room.statistics import AllQueries, EveryCell, SomeQueries
from mwem.columns import Columns
from mwem.layout import Layout, WithSingleBits
from mwem.options import MwemOptions
from mwem.spending import Spending

_UNIFORM_SHARE = 0.01
"""Share of the uniform distribution among noisy cells: none is given up for a noisy zero."""

NO_MOVES = Moves(0.0, 0.0, proof="nothing is measured")


class Start:
    """A_0: all cells alike (Figure 1), a noisy count of every cell (section 2.3.2), or columns.

    Columns are independent then, with noisy shares of those that the queries mention. ``held`` is
    what the room counts: the workload's queries first, then those of the start. `BadInputError` if
    columns are to be measured and the queries are no conjunctions.
    """

    def __init__(self, queries: Queries, options: MwemOptions) -> None:
        self.held = queries
        self._cells = options.noisy_init
        self._bits: WithSingleBits | None = None
        if options.start == "independent":
            self._bits = WithSingleBits.of(require_conjunctions(queries))
            self.held = self._bits.held

    def moves(self, neighbours: Neighbours) -> Moves:
        """Return how far what the start measures moves."""
        if self._bits is not None:
            return AllQueries().moves(self._bits.single, neighbours)
        return table_moves(neighbours) if self._cells else NO_MOVES

    def measure(
        self, curator: Curator, spending: Spending, n: int
    ) -> tuple[Columns | NDArray[np.float64] | None, tuple[Measurements, ...]]:
        """Measure what is needed, charged, for a public number of rows.

        Returns
        -------
        A_0: independent columns, or float64, one number a cell; None for the uniform distribution.
        And what a release keeps of the noisy numbers.
        """
        if self._cells:
            counts = spending.measure_start(curator, EveryCell())
            positive = np.maximum(counts, 0).astype(np.float64)
            total = positive.sum()
            share = positive / total if total > 0 else np.full(counts.shape, 1.0 / counts.size)
            first = (1.0 - _UNIFORM_SHARE) * share + _UNIFORM_SHARE / counts.size
            return first, self._kept_cells(counts.ravel() / n, spending, n)
        if self._bits is None:
            return None, ()
        layout = Layout.of(self._bits.held)
        counts = spending.measure_start(curator, SomeQueries(self._bits.places)).astype(np.float64)
        assert spending.start_scale is not None
        noise = spending.noise(spending.start_scale)
        columns = Columns.uniform(axis_sizes(layout.domain))
        base = layout.base(counts / n, noise.deviation / n)
        for place, column in enumerate(layout.columns.tolist()):
            columns.of(column)[:] = base[layout.values_of(place)]
        literals = 2 * layout.bits[:, None]
        kept = Measurements.of_codes(literals, counts / n, noise.deviation / n, noise.kind)
        return columns, (kept,)

    def _kept_cells(
        self, shares: NDArray[np.float64], spending: Spending, n: int
    ) -> tuple[Measurements, ...]:
        """Return the noisy shares of all cells, unless they are more than questions look at."""
        domain = self.held.domain
        if cells_of(domain) > MOST_CELLS:
            return ()
        assert spending.start_scale is not None
        noise = spending.noise(spending.start_scale)
        whole = {column: (0, size - 1) for column, size in enumerate(axis_sizes(domain).tolist())}
        cells = RangeQueries(domain, [whole]).disjunctions().conjunctions.literals
        return (Measurements.of_codes(cells, shares, noise.deviation / n, noise.kind),)
