"""Synthetic rows as the kind of table that went in: Polars, pandas or NumPy, with its types.

Of the table only the kind and the types of its columns are kept. The categories of a categorical
type are not: they may be values of private rows. Their place take the schema's, in its order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dualquery.data.schema.columns import Categorical
from dualquery.data.schema.files import given_schema
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.protocol import Schema


@dataclass(frozen=True)
class FrameKind:
    """What kind of table rows are to be: Polars without types, unless `of` says otherwise."""

    library: Literal["polars", "pandas", "numpy"] = "polars"
    types: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(table: object) -> FrameKind:
        """Return the kind of a user's table; of paths and sparse matrices, Polars without types.

        Its types are taken as public. pandas' own choice of ``float64`` for whole numbers tells
        that some row lacks one.
        """
        import polars as pl

        if isinstance(table, pl.DataFrame | pl.LazyFrame):
            return FrameKind("polars", dict(table.collect_schema()))
        if type(table).__module__.partition(".")[0] == "pandas":
            types: Any = getattr(table, "dtypes", {})
            return FrameKind("pandas", {str(name): kind for name, kind in types.items()})
        return FrameKind("numpy" if isinstance(table, np.ndarray) else "polars")

    def made_of(self, rows: pl.DataFrame, schema: Schema) -> Any:
        """Return rows of a release as this kind of table.

        A column whose values its type cannot hold, such as whole numbers with nulls in pandas,
        stays as it is.
        """
        categories = {
            column.name: list(dict.fromkeys(texts[0] for texts in column.values))
            for column in (schema.columns if isinstance(schema, TableSchema) else ())
            if isinstance(column, Categorical) and column.other_bit is None
        }
        if self.library == "numpy":
            return rows.to_numpy()
        if self.library == "pandas":
            return _pandas(rows, self.types, categories)
        return rows.with_columns(
            _polars(rows[name], kind, categories.get(name))
            for name, kind in self.types.items()
            if name in rows.columns
        )


def as_table(data: Any, schema: Schema | Mapping[str, object] | str | Path | None) -> Any:
    """Return a NumPy matrix of numbers as a table, its columns called by place, if it is one.

    The schema says so: by named columns, not items. Without one, numbers other than 0 and 1 do. All
    other data are returned as they are.
    """
    import polars as pl

    if not (isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iuf"):
        return data
    given = given_schema(schema)
    if np.isin(data, (0, 1)).all() if given is None else isinstance(given, ItemSchema):
        return data
    return pl.DataFrame({str(place): data[:, place] for place in range(data.shape[1])})


def _polars(values: pl.Series, kind: Any, categories: list[str] | None) -> pl.Series:
    import polars as pl

    if kind == pl.Boolean and values.dtype == pl.String:
        return values.str.to_lowercase() == "true"
    named = kind in (pl.Categorical, pl.Enum)
    if kind == pl.Enum:
        if categories is None:
            return values
        kind = pl.Enum(categories)
    with contextlib.suppress(pl.exceptions.PolarsError):
        return values.cast(pl.String).cast(kind) if named else values.cast(kind)
    return values


def _pandas(
    rows: pl.DataFrame, types: Mapping[str, Any], categories: Mapping[str, list[str]]
) -> Any:
    import pandas as pd
    import polars as pl

    table = rows.to_pandas()
    for name in types.keys() & rows.schema.keys():
        kind = types[name]
        if isinstance(kind, pd.CategoricalDtype):
            if name not in categories:
                continue
            # Numbers that were categories are numbers again, and so are the categories.
            listed = pd.Series(categories[name]).astype(table[name].dropna().dtype)
            kind = pd.CategoricalDtype(listed, kind.ordered)
        elif pd.api.types.is_bool_dtype(kind) and rows.schema[name] == pl.String:
            table[name] = table[name].str.lower() == "true"
            continue
        with contextlib.suppress(ValueError, TypeError):
            table[name] = table[name].astype(kind)
    return table
