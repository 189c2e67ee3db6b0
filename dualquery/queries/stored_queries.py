"""Families of queries as they stand in the table of a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Queries
from dualquery.queries.parities import FactorParities, Parities
from dualquery.queries.ranges import RangeQueries, SeriesRangeQueries
from dualquery.queries.tabulated import HistogramQueries
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

FAMILIES: Mapping[str, Any] = {
    "parities": Parities,
    "ranges": RangeQueries,
    "matrix": HistogramQueries,
}
"""By the ``kind`` of their description. A family whose releases can be read again has a line here,
but for conjunctions, which have literals."""

BUILT_IN = (Workload, *FAMILIES.values(), FactorParities, SeriesRangeQueries)
"""Families whose range, grid and spread are proven."""


def queries_of_table(
    columns: Mapping[str, pl.Series], domain: Domain, description: Mapping[str, Any]
) -> Queries:
    """Return the queries that ``to_columns`` of their family wrote; other columns are ignored.

    `BadInputError` if the columns do not hold queries of the family and the domain.
    """
    kind = description.get("kind")
    family = Workload if "literal_1" in columns else FAMILIES.get(str(kind))
    if family is None:
        raise BadInputError(
            f"the queries have no column literal_1; those of kind {kind!r} are not built in, and "
            "only the code that made them can read them"
        )
    made: Queries = family.from_columns(columns, domain, description)
    return made
