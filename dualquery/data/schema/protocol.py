"""What every schema offers. A schema is public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.data.schema.column_choice import ColumnChoice
from dualquery.data.schema.columns import Column
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.grids import Grid

SCHEMA_VERSION = 1
"""Of schema files; a newer one is refused."""

FORMAT_NAME = "dualquery-schema"


class Schema(Protocol):
    """What every schema offers."""

    @property
    def name(self) -> str:
        """Name of the schema, for messages and for the release."""
        ...

    @property
    def declared(self) -> bool:
        """False when buckets, categories or items were taken from the data.

        A release made with such a schema is not private.
        """
        ...

    @property
    def domain(self) -> Domain:
        """Which bits make up which column."""
        ...

    @property
    def column_names(self) -> Sequence[str]:
        """Names of the columns; item ids as texts."""
        ...

    def bit_label(self, bit: int) -> str:
        """Return what a bit means, such as ``age=30-35``, ``flag`` or ``17``."""
        ...

    def bit_labels(self) -> pl.Series:
        """Return the labels of all bits, String."""
        ...

    def literal(self, column: str, value: str | None) -> int:
        """Return the literal code (``2 * bit + negated``) of one term of a query's text.

        Parameters
        ----------
        column
            Name of a column, or an item id.
        value
            A label or a value of it; None only for binary columns and items, meaning 1.

        Raises
        ------
        BadInputError
            If the column or the value is unknown; close matches are listed.
        """
        ...

    def column(self, name: str) -> tuple[int, Column]:
        """Return the number of a column in the domain, and what it holds; an item is binary.

        Raises
        ------
        BadInputError
            If there is no such column; close matches are listed.
        """
        ...

    def missing_in(self, column: Column) -> Sequence[str]:
        """Return the texts that stand for a missing value in one of its columns.

        Null and NaN are missing in all of them. `dualquery.data.encode.local_codes` compares.
        """
        ...

    def select(self, choice: ColumnChoice) -> NDArray[np.int64]:
        """Return which columns of `domain` a ``--columns`` text means: int64, increasing."""
        ...

    def restrict(self, choice: ColumnChoice) -> Schema:
        """Return the schema of the selected columns only."""
        ...

    def with_max_ones(self, most: int | None) -> Schema:
        """Return the schema whose rows are cut to at most ``most`` 1s; None for no cut."""
        ...

    @property
    def grids(self) -> tuple[Grid, ...]:
        """Where the numbers lie that rows carry besides their bits."""
        ...

    @property
    def record_bits(self) -> int:
        """Bits of a row: the domain's, and the digits of the numbers that it carries."""
        ...

    def with_sums(self, choice: ColumnChoice) -> Schema:
        """Return the schema whose rows carry the numbers of the selected columns.

        Raises
        ------
        BadInputError
            If a column is unknown, has no numbers, or rows without one.
        """
        ...

    def decode(
        self, records: NDArray[np.uint8], generator: np.random.Generator | None = None
    ) -> pl.DataFrame:
        """Return records in the user's columns.

        Encoding the result again gives the same bits.

        Parameters
        ----------
        records
            uint8 0/1, shape ``(records, domain.bits)``, one-hot in every group.
        generator
            Source of the values within buckets (public); None for the same values each time.

        Raises
        ------
        ValueError
            If the shape is wrong or a record does not obey a one-hot group.
        """
        ...

    def to_dict(self) -> dict[str, object]:
        """Return the schema as JSON-able values; `schema_from_dict` is the inverse."""
        ...


def check_max_ones(name: str, most: object) -> None:
    """Raise `BadInputError` unless ``max_ones_per_row`` is None or a whole number from 1 on."""
    if most is not None and (
        isinstance(most, bool) or not isinstance(most, int) or not 1 <= most < 2**31
    ):
        raise BadInputError(
            f"schema {name!r}: max_ones_per_row is {most!r}; a whole number from 1 to 2^31 - 1 is "
            "needed"
        )


def max_ones_entry(most: int | None) -> dict[str, object]:
    """Return the entry of a schema file for the cut: none if there is no cut."""
    return {} if most is None else {"max_ones_per_row": most}


def header(schema: Schema, kind: str) -> dict[str, object]:
    """Return the entries with which every schema file begins."""
    named = {"name": schema.name, "declared": schema.declared}
    return {"format": FORMAT_NAME, "version": SCHEMA_VERSION, "kind": kind, **named}


def check_shape(records: NDArray[np.uint8], bits: int) -> None:
    """Raise `ValueError` unless records have the shape ``(records, bits)``."""
    if records.ndim != 2 or records.shape[1] != bits:
        raise ValueError(f"records of {bits} bits expected, found shape {records.shape}")
