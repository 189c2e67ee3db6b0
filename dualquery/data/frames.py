"""Synthetic rows as the kind of table that went in: Polars, pandas or NumPy, with its types.

Of the table only the kind and the types of its columns are kept, not the categories of a type: they
may be values of private rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.schema_files import given_schema


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
        if isinstance(table, pl.DataFrame | pl.LazyFrame):
            plain = {n: k for n, k in table.collect_schema().items() if not k.is_nested()}
            known = {n: pl.Categorical() if k == pl.Enum else k for n, k in plain.items()}
            return FrameKind("polars", known)
        if type(table).__module__.partition(".")[0] == "pandas":
            types: Any = getattr(table, "dtypes", {}).items()
            kept = {str(n): "category" if k == "category" else k for n, k in types}
            return FrameKind("pandas", kept)
        return FrameKind("numpy" if isinstance(table, np.ndarray) else "polars")

    def made_of(self, rows: pl.DataFrame) -> Any:
        """Return rows of a release as this kind; a column that its type cannot hold stays."""
        rows = rows.with_columns(
            (rows[name].str.to_lowercase() == "true").alias(name)
            for name, kind in self.types.items()
            if str(kind).lower() in ("bool", "boolean", "bool[pyarrow]", "object")  # rows tell
            and rows.schema.get(name) == pl.String
            and rows[name].str.to_lowercase().is_in(["true", "false"]).all()
        )
        if self.library == "numpy":
            return rows.to_numpy()
        table: Any = rows.to_pandas() if self.library == "pandas" else rows
        for name, kind in self.types.items():
            with suppress(ValueError, TypeError, OverflowError, NotImplementedError, PolarsError):
                held = rows.schema.get(name)
                texts = getattr(kind, "kind", "") in ("M", "b") and held == pl.String
                if held is None or texts or (kind == "bool" and rows[name].null_count()):
                    continue  # pandas would guess the format, null is False, or a text True
                values = rows[name]
                whole = str(kind).lower().startswith(("int", "uint", "decimal"))
                own = getattr(kind, "pyarrow_dtype", kind)
                kept = values.round(max(getattr(own, "scale", 0), 0)) if held.is_float() else values
                if whole and (kept != values).any():
                    continue  # other numbers may be in other buckets
                if zone := getattr(own, "time_zone", getattr(own, "tz", None)):
                    local = values.cast(pl.Datetime("us")).dt  # a cast would take it for UTC
                    values = local.replace_time_zone(str(zone), ambiguous="earliest")
                elif isinstance(kind, pl.Categorical) or str(kind).startswith("str"):
                    values = values.cast(pl.String)
                if self.library == "pandas":
                    cast = values.to_pandas().astype(kind)
                    narrow = str(kind).lower().startswith(("int", "uint")) and held != pl.String
                    if not narrow or cast.eq(table[name]).all():  # it would wrap
                        table[name] = cast
                else:
                    table = table.with_columns(values.cast(kind))
        return table


def as_table(data: Any, schema: Any, most_ones: int | None = None) -> Any:
    """Return a NumPy matrix of numbers as a table, its columns called by place.

    One of items, as its schema says, or ``most_ones`` without one, is returned as it is, as are all
    other data. Which numbers a matrix holds decides nothing: its rows are private.
    """
    numbers = isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iuf"
    given = given_schema(schema)
    if not numbers or isinstance(given, ItemSchema) or (given is None and most_ones is not None):
        return data
    return pl.DataFrame({str(place): np.ravel(data[:, place]) for place in range(data.shape[1])})
