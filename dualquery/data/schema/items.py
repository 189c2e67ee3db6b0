"""The schema of item lists: numbered items, one bit each, cheap for hundreds of thousands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.data.schema.column_choice import ColumnChoice, format_items, select_items
from dualquery.data.schema.columns import (
    Binary,
    Column,
    check_choice,
    check_max_ones,
    check_shape,
    header,
)
from dualquery.data.schema.grids import Grid
from dualquery.runtime.errors import BadInputError

LONG_FORM_BITS = 10_000  # records with more items than this are written as lists


@dataclass(frozen=True, eq=False)
class ItemSchema:
    """Numbered items, one bit each.

    `BadInputError` if the ids or the names are not as said.

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
        Rows with more items are cut to this many (`data.encoding.truncation`); None for no cut.
    names
        What each item is called in queries and tables, all different; None for the ids.
    learned
        What the list cost, as in `TableSchema`.
    """

    items: NDArray[np.int64]
    name: str = "items"
    declared: bool = field(kw_only=True)
    outside: Literal["error", "drop"] = "error"
    max_ones_per_row: int | None = None
    names: tuple[str, ...] | None = None
    learned: Mapping[str, object] | None = None

    grids: ClassVar[tuple[Grid, ...]] = ()
    drop_incomplete: ClassVar[bool] = False
    """Items have no numbers, and no row of them lacks a value."""

    def __post_init__(self) -> None:
        where = f"schema {self.name!r}"
        check_max_ones(self.name, self.max_ones_per_row)
        if not len(self.items):
            raise BadInputError(f"{where}: it has no items, so records have no bits")
        if self.items[0] < 0 or np.any(self.items[1:] <= self.items[:-1]):
            ids = self.items[:6].tolist()
            raise BadInputError(f"{where}: ids must increase from 0 on, found {ids}")
        check_choice(where, "outside", self.outside, ("error", "drop"))
        if self.names is None:
            return
        if len(self.names) != len(self.items):
            raise BadInputError(f"{where}: {len(self.names):,} names for {len(self.items):,} items")
        for bit, (item, name) in enumerate(zip(self.items.tolist(), self.names, strict=True)):
            if self._bit_of_name[name] != bit:
                raise BadInputError(f"{where}: two items have the name {name!r}")
            if not name or (name.isdigit() and name != str(item)):
                raise BadInputError(
                    f"{where}: item {item} has the name {name!r}, which is empty or another's id"
                )

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
        return pl.Series("label", self.items if self.names is None else self.names).cast(pl.String)

    def literal(self, column: str, value: str | None) -> int:
        """Return the literal code of an item, by name or id, being there; "0": not being there."""
        if value not in (None, "0", "1"):
            raise BadInputError(f"item {column} is 0 or 1, never {value!r}")
        return 2 * self.column(column)[0] + (value == "0")

    def column(self, name: str) -> tuple[int, Column]:
        """Return the bit of an item, given by its name or id, as a binary column."""
        if (bit := self._bit_of_name.get(name)) is None:
            if not (name.isascii() and name.isdigit() and len(name) <= 18):
                raise BadInputError(f"{name!r} is no item id; columns of these data are numbers")
            bit = int(self._bits(np.array([int(name)]))[0])
        return bit, Binary(name)

    def missing_in(self, column: Column) -> tuple[str, ...]:  # noqa: ARG002
        """Return no texts: an item that is not listed is absent."""
        return ()

    def select(self, choice: ColumnChoice, _option: str = "") -> NDArray[np.int64]:
        """Return the bits of the selected items: int64, increasing."""
        return self._bits(select_items(choice))

    def restrict(self, choice: ColumnChoice) -> ItemSchema:
        """Return the schema of the selected items only; all others are left out of the records."""
        bits = self.select(choice)
        names = None if self.names is None else tuple(self.names[bit] for bit in bits.tolist())
        return replace(self, items=self.items[bits], outside="drop", names=names)

    @property
    def record_bits(self) -> int:
        """Bits of a row."""
        return self.domain.bits

    def with_sums(self, choice: ColumnChoice) -> ItemSchema:
        """Refuse: items have no numbers to sum."""
        raise BadInputError(f"--means is {choice!r}, but items have no numbers; leave it out")

    def decode(
        self,
        records: NDArray[np.uint8],
        generator: np.random.Generator | None = None,  # noqa: ARG002
    ) -> pl.DataFrame:
        """Return records as one 0/1 column an item, or above 10,000 items one list a record.

        The list's column is ``items`` and holds item ids (int32 where all ids fit, else int64).
        """
        check_shape(records, len(self.items))
        if len(self.items) <= LONG_FORM_BITS:
            schema = dict.fromkeys(self.column_names, pl.UInt8)
            return pl.DataFrame(np.asfortranarray(records), schema=schema)
        row, bit = np.nonzero(records)
        dtype = pl.List(pl.Int32 if self.items[-1] < 2**31 else pl.Int64)
        lists = np.split(self.items[bit], np.searchsorted(row, np.arange(1, len(records))))
        return pl.DataFrame({"items": pl.Series(lists[: len(records)], dtype=dtype).cast(dtype)})

    def to_dict(self) -> dict[str, object]:
        """Return the schema as JSON-able values, the items as ranges."""
        return {
            **header(self, "items"),
            "outside": self.outside,
            "items": format_items(self.items),
            **({} if self.names is None else {"names": list(self.names)}),
        }

    @cached_property
    def _bit_of_name(self) -> Mapping[str, int]:
        """Bit of each named item."""
        return {name: bit for bit, name in enumerate(self.names or ())}

    def _bits(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bits of items; all must be listed."""
        bits = np.searchsorted(self.items, items)
        if np.any(unknown := self.items[np.minimum(bits, len(self.items) - 1)] != items):
            raise BadInputError(
                f"there is no item {items[unknown][0]}; schema {self.name!r} lists "
                f"{len(self.items):,} items from {self.items[0]} to {self.items[-1]}"
            )
        return bits.astype(np.int64)
