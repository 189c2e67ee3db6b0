"""What the room holds: the private rows, and the exact answers counted from them."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.grids import Grid
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.derived_queries import Cuboids
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import Statistic
from dualquery.room.exclusive import require_exclusive
from dualquery.rows.row_sums import Rows, RowSum
from dualquery.runtime.errors import BadInputError


@dataclass(frozen=True, eq=False)
class PrivateData:
    """The rows, the queries and their counts. Private: made by the curator, and never leaves it.

    `TypeError` or `BadInputError` if the queries derive from conjunctions, are sums of conjunctions
    that are not proven to exclude each other, or declare no grid (`require_grid`). `ValueError` if
    the number of rows is public and another one, or the rows are not those of the queries' domain.
    """

    rows: Rows
    queries: Statistic
    neighbours: Neighbours
    public_rows: int  # N, which everything public uses: the true number where that is public
    threads: int = 1
    grids: tuple[Grid, ...] = ()  # of the numbers that the rows carry behind their bits

    def __post_init__(self) -> None:
        if self.rows_public and self.public_rows != self.rows.n:
            raise ValueError(f"there are {self.rows.n} rows, not {self.public_rows}")
        queries = self.queries
        if isinstance(queries, Workload | Disjunctions):
            # Their sensitivity is proven from their literals: a subclass may count otherwise.
            if type(queries) not in (Workload, Disjunctions):
                raise TypeError(f"{type(queries).__name__} may not derive from conjunctions")
            if isinstance(queries, Disjunctions):
                require_exclusive(queries)
        require_grid(queries)
        bits = queries.domain.bits + sum(grid.digits for grid in self.grids)
        if self.rows.bits != bits:
            raise ValueError(f"rows of {bits} bits expected, not {self.rows.bits}")

    @property
    def rows_public(self) -> bool:
        """Whether the number of rows is public: neighbours differ in one record replaced."""
        return self.neighbours.rows_public

    @property
    def excess(self) -> int:
        """The public number of rows less the true one: private, unless 0 by definition."""
        return self.public_rows - self.rows.n

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The exact counts of the queries, in one pass when first asked for: int64, ``(m,)``."""
        counts = self.queries.counts(self.rows, threads=self.threads)
        if counts.dtype != np.int64 or counts.shape != (len(self.queries),):
            # What moves was proven of as many whole numbers as there are queries.
            name = type(self.queries).__name__
            raise TypeError(f"{name}.counts() must return one int64 for each query")
        return counts

    def total(self, of: RowSum) -> NDArray[np.int64]:
        """Return a sum over the rows, exactly, in a pass of its own."""
        return self.rows.total(of, self.threads)

    @property
    def conjunctions(self) -> Workload:
        """The queries, which must be conjunctions."""
        return as_conjunctions(self.queries)

    @cached_property
    def cuboids(self) -> Cuboids:
        """The cells of marginals among the queries, checked to exclude each other."""
        return Cuboids.of(self.queries)


def as_conjunctions(queries: Statistic) -> Workload:
    """Return the queries; `TypeError` unless they are conjunctions."""
    if not isinstance(queries, Workload):
        raise TypeError(f"conjunctions are needed, not {type(queries).__name__}")
    return queries


def require_grid(queries: Statistic) -> None:
    """Refuse a range, grid or spread that no sensitivity follows from.

    `BadInputError` if the step is no power of two, the range is not finite or upside down, or the
    spread is no whole number from 1 on.
    """
    name, step, spread = type(queries).__name__, queries.step, queries.spread
    if not (0.0 < step < math.inf and math.frexp(step)[0] == 0.5):
        raise BadInputError(f"{name}: the step is {step}; a power of two is needed")
    if not -math.inf < queries.low <= queries.high < math.inf:
        raise BadInputError(
            f"{name}: the range is {queries.low} to {queries.high}; two finite numbers are needed, "
            "the lower one first"
        )
    if not (1 <= spread < math.inf and spread == int(spread)):
        raise BadInputError(f"{name}: the spread is {spread}; a whole number from 1 on is needed")
