"""Families of queries over small domains, and slow but obvious values to hold them against."""

import numpy as np

from dualquery.data.domain import axis_sizes, column_values
from dualquery.queries.parities import Parities
from dualquery.queries.ranges import RangeQueries, SeriesRangeQueries
from dualquery.queries.tabulated import HistogramQueries
from tests.cases import domain_of

MIXED = domain_of(1, 3, 1, 4, 1)
GENERATOR = np.random.default_rng(5)

FAMILIES = {
    "parities of binary columns": Parities(6, 3),
    "all parities": Parities(4, 4),
    "parities of mixed columns": Parities(MIXED, 3),
    "given parities": Parities(9, sets=np.array([[3, 0, 7], [8, -1, -1], [2, -1, 5]])),
    "all intervals": SeriesRangeQueries(7),
    "prefixes": SeriesRangeQueries(9, "prefix"),
    "given intervals": SeriesRangeQueries(9, [(0, 3), (2, 2), (4, 8), (0, 8)]),
    "boxes": RangeQueries(
        MIXED, [{1: (0, 1)}, {0: (1, 1), 3: (1, 3)}, {4: (0, 0), 1: (2, 2), 3: (0, 1)}]
    ),
    "all boxes": RangeQueries.all_products(MIXED, 2, "all"),
    "matrix": HistogramQueries(GENERATOR.normal(size=(6, 12)) * [[1], [30], [0.1], [1], [1], [7]]),
    "0/1 matrix": HistogramQueries(GENERATOR.integers(0, 2, (5, 8)), domain_of(1, 1, 1)),
    "mixed matrix": HistogramQueries(GENERATOR.uniform(-3, 0, (7, 12)), domain_of(1, 3, 1)),
}  # fmt: skip


def obvious_values(queries, records: np.ndarray) -> np.ndarray:
    """Return every query's value on every record, (r, m), straight from the definition."""
    rows = []
    for record, values in zip(records, column_values(records, queries.domain), strict=True):
        if isinstance(queries, Parities):
            row = [(-1) ** sum(int(record[b]) for b in s if b >= 0) for s in queries.sets]
        elif isinstance(queries, RangeQueries):
            row = [
                all(a <= values[c] <= b for c, a, b in zip(*box, strict=True) if c >= 0)
                for box in zip(queries.columns, queries.first, queries.last, strict=True)
            ]
        else:
            shape = tuple(axis_sizes(queries.domain))
            row = queries.values[:, np.ravel_multi_index(tuple(values), shape)]
        rows.append(row)
    return np.array(rows, dtype=np.float64)
