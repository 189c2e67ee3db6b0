"""Synthetic rows as the kind of table that went in: Polars, pandas or NumPy, with its types.

Of the table only the kind and the types of its columns are kept, not the categories of a type: they
may be values of private rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.schema_files import given_schema

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class FrameKind:
    """What kind of table rows are to be: Polars without types, unless `of` says otherwise."""

    library: Literal["polars", "pandas", "numpy"] = "polars"
    types: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(table: object) -> FrameKind:
        """Return the kind of a user's table; of paths and sparse matrices, Polars without types.

        Its types are taken as public: pandas' ``float64`` tells that some row lacks a number.
        """
        import polars as pl

        if isinstance(table, pl.DataFrame | pl.LazyFrame):
            return FrameKind("polars", dict(table.collect_schema()))
        if type(table).__module__.partition(".")[0] == "pandas":
            from pandas.api.types import infer_dtype

            given: Any = getattr(table, "items", dict[str, Any]().items)()
            flags = {str(n) for n, c in given if c.dtype == "O" and infer_dtype(c) == "boolean"}
            types: Any = getattr(table, "dtypes", {}).items()
            return FrameKind("pandas", {str(n): "boolean" if n in flags else k for n, k in types})
        return FrameKind("numpy" if isinstance(table, np.ndarray) else "polars")

    def made_of(self, rows: pl.DataFrame) -> Any:
        """Return rows of a release as this kind; a column that its type cannot hold stays."""
        import polars as pl

        rows = rows.with_columns(
            pl.col(name).str.to_lowercase() == "true"
            for name, kind in self.types.items()
            if str(kind).lower() in ("bool", "boolean") and rows.schema.get(name) == pl.String
        )
        if self.library == "numpy":
            return rows.to_numpy()
        table: Any = rows.to_pandas() if self.library == "pandas" else rows
        for name, kind in self.types.items():
            with contextlib.suppress(ValueError, TypeError, pl.exceptions.PolarsError):
                held = rows.schema.get(name)
                texts = getattr(kind, "kind", "") == "M" and held == pl.String
                if held is None or texts or (kind == "bool" and rows[name].null_count()):
                    continue  # pandas would guess the format, or take null for False
                if self.library == "pandas":
                    table[name] = table[name].astype("category" if kind == "category" else kind)
                elif kind in (pl.Categorical, pl.Enum):
                    table = table.with_columns(table[name].cast(pl.String).cast(pl.Categorical))
                elif zone := getattr(kind, "time_zone", None):  # a cast would take it for UTC
                    local = table[name].cast(pl.Datetime(kind.time_unit)).dt
                    table = table.with_columns(local.replace_time_zone(zone, ambiguous="earliest"))
                else:
                    table = table.with_columns(table[name].cast(kind))
        return table


def as_table(data: Any, schema: Any, most_ones: int | None = None) -> Any:
    """Return a NumPy matrix of numbers as a table, its columns called by place.

    One of items, as its schema says, or ``most_ones`` without one, is returned as it is, as are all
    other data. Which numbers a matrix holds decides nothing: its rows are private.
    """
    import polars as pl

    numbers = isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iuf"
    given = given_schema(schema)
    if not numbers or isinstance(given, ItemSchema) or (given is None and most_ones is not None):
        return data
    return pl.DataFrame({str(place): data[:, place] for place in range(data.shape[1])})
