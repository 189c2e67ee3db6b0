"""The schema of item lists: numbered items, one bit each, cheap for hundreds of thousands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.data.schema.checks import check_max_ones, check_shape, header
from dualquery.data.schema.column_choice import ColumnChoice, format_items, select_items
from dualquery.data.schema.columns import Binary, Column
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.grids import Grid


LONG_FORM_BITS = 10_000
"""Records with more items than this are written as lists."""


@dataclass(frozen=True, eq=False)
class ItemSchema:
    """Numbered items, one bit each.

    Parameters
    ----------
    items
        int64, not negative, strictly increasing, at least one: the id of each bit's item.
    name
        For messages and for the release.
    declared
        False when the items were taken from the data. It has no default: say which.
    outside
        What an item that is not listed does: it is an error, or is left out of the record.
    max_ones_per_row
        Rows with more items than this are cut to this many (see `data.encoding.truncation`);
        None for no cut.
    names
        What each item is called in queries and tables, all different; None for the ids.

    Raises
    ------
    BadInputError
        If the ids or the names are not as said.
    """

    items: NDArray[np.int64]
    name: str = "items"
    declared: bool = field(kw_only=True)
    outside: Literal["error", "drop"] = "error"
    max_ones_per_row: int | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_max_ones(self.name, self.max_ones_per_row)
        if not len(self.items):
            raise BadInputError(f"schema {self.name!r}: it has no items, so records have no bits")
        if self.items[0] < 0 or np.any(np.diff(self.items) <= 0):
            raise BadInputError(
                f"schema {self.name!r}: item ids must increase from 0 or more, found "
                f"{self.items[:6].tolist()}{' ...' if len(self.items) > 6 else ''}"
            )
        if self.outside not in ("error", "drop"):
            raise BadInputError(
                f"schema {self.name!r}: outside is {self.outside!r}; it must be error or drop"
            )
        if self.names is not None:
            self._check_names(self.names)

    def _check_names(self, names: tuple[str, ...]) -> None:
        fault = ""
        if len(names) != len(self.items):
            fault = f"{len(names):,} names for {len(self.items):,} items"
        for bit, (item, name) in enumerate(zip(self.items.tolist(), names, strict=False)):
            if self._bit_of_name[name] != bit:
                fault = fault or f"two items have the name {name!r}"
            if not name or (name.isdigit() and name != str(item)):
                fault = fault or (
                    f"item {item} has the name {name!r}, which is empty or the id of another"
                )
        if fault:
            raise BadInputError(f"schema {self.name!r}: {fault}")

    @staticmethod
    def numbered(bits: int, name: str) -> ItemSchema:
        """Return the schema of the items 0 .. ``bits - 1``."""
        return ItemSchema(np.arange(bits, dtype=np.int64), name, declared=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ItemSchema):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    @cached_property
    def domain(self) -> Domain:
        """One binary column an item."""
        return replace(Domain.binary(len(self.items)), max_ones=self.max_ones_per_row)

    @property
    def scores(self) -> None:
        """No item stands for a number."""

    @property
    def column_names(self) -> Sequence[str]:
        """The items' names, or ids as texts: made on each call, so ask once."""
        return list(map(str, self.items.tolist())) if self.names is None else self.names

    def bit_labels(self) -> pl.Series:
        """Return the names or ids of all bits, String."""
        import polars as pl

        if self.names is not None:
            return pl.Series("label", self.names, dtype=pl.String)
        return pl.Series("label", self.items).cast(pl.String)

    def literal(self, column: str, value: str | None) -> int:
        """Return the literal code of an item being there, or not if ``value`` is "0".

        ``column`` is its name or its id.
        """
        if value not in (None, "0", "1"):
            raise BadInputError(f"query: item {column} is 0 or 1, never {value!r}")
        return 2 * self.column(column)[0] + (value == "0")

    def column(self, name: str) -> tuple[int, Column]:
        """Return the bit of an item, given by its name or id, as a binary column."""
        named = self._bit_of_name.get(name)
        return int(self._bits(_item(name))[0]) if named is None else named, Binary(name)

    def missing_in(self, column: Column) -> tuple[str, ...]:  # noqa: ARG002
        """Return no texts: an item that is not listed is absent."""
        return ()

    def select(self, choice: ColumnChoice) -> NDArray[np.int64]:
        """Return the bits of the selected items: int64, increasing."""
        return self._bits(select_items(choice))

    def restrict(self, choice: ColumnChoice) -> ItemSchema:
        """Return the schema of the selected items only; all others are left out of the records."""
        bits = self.select(choice)
        names = None if self.names is None else tuple(self.names[bit] for bit in bits.tolist())
        return replace(self, items=self.items[bits], outside="drop", names=names)

    def with_max_ones(self, most: int | None) -> ItemSchema:
        """Return the schema whose rows are cut to at most ``most`` 1s; None for no cut."""
        return replace(self, max_ones_per_row=most)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """Items have no numbers."""
        return ()

    @property
    def record_bits(self) -> int:
        """Bits of a row."""
        return self.domain.bits

    def with_sums(self, choice: ColumnChoice) -> ItemSchema:
        """Refuse: items have no numbers to sum."""
        raise BadInputError(
            f"--means is {choice!r}, but rows of items have no numbers; leave it out"
        )

    def decode(
        self,
        records: NDArray[np.uint8],
        generator: np.random.Generator | None = None,  # noqa: ARG002
    ) -> pl.DataFrame:
        """Return records as one 0/1 column an item, or above 10,000 items one list a record.

        The list's column is ``items`` and holds item ids (int32 where all ids fit, else int64).
        """
        import polars as pl

        check_shape(records, len(self.items))
        if len(self.items) <= LONG_FORM_BITS:
            schema = dict.fromkeys(self.column_names, pl.UInt8)
            return pl.DataFrame(np.asfortranarray(records), schema=schema)
        row, bit = np.nonzero(records)
        small = self.items[-1] <= np.iinfo(np.int32).max
        items = self.items[bit].astype(np.int32 if small else np.int64)
        lists = np.split(items, np.searchsorted(row, np.arange(1, len(records))))
        dtype = pl.List(pl.Int32 if small else pl.Int64)
        return pl.DataFrame({"items": pl.Series(lists[: len(records)], dtype=dtype)})

    def to_dict(self) -> dict[str, object]:
        """Return the schema as JSON-able values, the items as ranges."""
        most = self.max_ones_per_row
        return {
            **header(self.name, self.declared, "items"),
            "outside": self.outside,
            "items": format_items(self.items),
            **({} if most is None else {"max_ones_per_row": most}),
            **({} if self.names is None else {"names": list(self.names)}),
        }

    @cached_property
    def _bit_of_name(self) -> Mapping[str, int]:
        """Bit of each named item."""
        return {name: bit for bit, name in enumerate(self.names or ())}

    def _bits(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bits of items, all of which must be listed."""
        bits = np.searchsorted(self.items, items)
        unknown = self.items[np.minimum(bits, len(self.items) - 1)] != items
        if np.any(unknown):
            raise BadInputError(
                f"there is no item {items[unknown][0]}; schema {self.name!r} lists "
                f"{len(self.items):,} items from {self.items[0]} to {self.items[-1]}"
            )
        return bits.astype(np.int64)


def _item(column: str) -> NDArray[np.int64]:
    if not (column.isascii() and column.isdigit() and len(column) <= 18):
        raise BadInputError(
            f"query: {column!r} is no item id; the columns of this data are numbers"
        )
    return np.array([int(column)], np.int64)
