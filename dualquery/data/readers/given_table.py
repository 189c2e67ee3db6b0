"""A private table as it is given, and what of it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import DATA, option, require_least

if TYPE_CHECKING:
    from dualquery.data.readers.source import Source


@dataclass(frozen=True)
class Table:
    """A private table, and what of it is read.

    The data are a built-in name, a path, ``FORMAT:PATH``, or a Polars, pandas, Arrow, NumPy or
    SciPy table; each option says what it does.
    """

    data: Any = option(
        MISSING,
        "A built-in table, PATH or FORMAT:PATH; - for CSV from the standard input.",
        DATA,
        flags=(),
        typed="adult",
        metavar="TABLE",
    )
    _: KW_ONLY
    csv: str | None = option(
        None,
        "How a CSV file is written, such as delimiter=;,encoding=latin-1,decimal=, in quotation "
        "marks; spaces=trim removes spaces around cells.",
        DATA,
    )
    columns: Sequence[str | int] | str | None = option(
        None, "Columns to read: names, positions, ranges; !name leaves one out.", DATA
    )
    max_ones_per_row: int | None = option(
        None,
        "Cut rows of 0/1 columns to this many 1s, so that they need less noise. Public.",
        DATA,
        least=1,
    )
    schema_share: float = option(
        0.1, "Without a schema: the share of the budget that learns one.", DATA
    )
    schema_from_data: bool = option(
        False,
        "Draft the schema from the exact data: NOT private.",
        DATA,
        flags=("--schema-from-data",),
    )
    public_types: bool = option(
        False,
        "Take columns' types, as Parquet states them, as public.",
        DATA,
        flags=("--public-types",),
    )

    def __post_init__(self) -> None:
        require_least(self)
        if not 0.0 < self.schema_share < 1.0:
            raise BadInputError(
                f"--schema-share is {self.schema_share!r}; a number between 0 and 1 is needed"
            )

    @property
    def named(self) -> Any:
        """The table as readers take it."""
        if self.csv is None:
            return self.data
        from dualquery.data.readers.dialect import Dialect
        from dualquery.data.readers.formats import parse_source
        from dualquery.data.readers.source import TableSource

        if isinstance(self.data, TableSource):
            return self.data
        if not isinstance(self.data, str | Path):  # as text it would show its rows
            raise BadInputError("csv says how a CSV file is written, but the table is no file")
        return parse_source(str(self.data), Dialect.parse(self.csv))

    @cached_property
    def source(self) -> Source:
        """What `dualquery.data.readers.formats.source_of` returns for the table, and raises."""
        from dualquery.data.readers.formats import source_of

        return source_of(self.named)

    def written_as(self, csv: object) -> Table:
        """Return the table, written as ``csv`` says if it is CSV in files and says nothing itself.

        ``csv`` comes from a release: what is no text says nothing.
        """
        from dualquery.data.readers.formats import is_csv

        if (
            not isinstance(csv, str)
            or self.csv is not None
            or not isinstance(self.data, str | Path)
        ):
            return self
        return replace(self, csv=csv) if is_csv(self.source) else self
