"""Families of queries as they stand in the table of a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dualquery.data.domain import Domain
from dualquery.queries.family import Queries
from dualquery.queries.matrix import HistogramQueries
from dualquery.queries.parities import Parities
from dualquery.queries.ranges import RangeQueries
from dualquery.queries.workload import Workload

if TYPE_CHECKING:
    import polars as pl

_FAMILIES = {"parities": Parities, "ranges": RangeQueries, "matrix": HistogramQueries}
"""By the ``kind`` of their description; all other kinds are conjunctions."""


def queries_of_table(
    columns: Mapping[str, pl.Series], domain: Domain, description: Mapping[str, Any]
) -> Queries:
    """Return the queries that ``to_columns`` of their family wrote; other columns are ignored.

    Raises
    ------
    BadInputError
        If the columns do not hold queries of the family and the domain.
    """
    family = _FAMILIES.get(str(description.get("kind")), Workload)
    made: Queries = family.from_columns(columns, domain, description)
    return made
