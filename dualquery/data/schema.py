"""Schemas: how a user's table becomes bits, and bits the user's columns again.

A schema is public. `TableSchema` describes named columns; `ItemSchema` a set of numbered items,
each of which a record has or has not, in a form that stays cheap for hundreds of thousands of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.columns import Binary, Column, column_from_dict, find_bit, suggest
from dualquery.data.domain import Domain
from dualquery.data.selection import Selection, format_items, select_columns, select_items
from dualquery.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 1
_FORMAT = "dualquery-schema"

T = TypeVar("T")


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

    def select(self, selection: Selection) -> NDArray[np.int64]:
        """Return which columns of `domain` a ``--columns`` text means: int64, increasing."""
        ...

    def restrict(self, selection: Selection) -> Schema:
        """Return the schema of the selected columns only."""
        ...

    def with_max_ones(self, most: int | None) -> Schema:
        """Return the schema whose rows are cut to at most so many 1s; None for no cut."""
        ...

    def decode(self, records: NDArray[np.uint8]) -> pl.DataFrame:
        """Return records in the user's columns.

        Encoding the result again gives the same bits.

        Parameters
        ----------
        records
            uint8 0/1, shape ``(records, domain.bits)``, one-hot in every group.

        Raises
        ------
        ValueError
            If the shape is wrong or a record does not obey a one-hot group.
        """
        ...

    def to_dict(self) -> dict[str, object]:
        """Return the schema as JSON-able values; `schema_from_dict` is the inverse."""
        ...


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table.

    Parameters
    ----------
    columns
        In the order of the bits; at least one, no name twice.
    name
        For messages and for the release.
    declared
        False when buckets or categories were taken from the data.
    drop_incomplete
        Whether rows that lack a value in one of these columns are left out before anything else.
        It is a public filter: neighbouring tables are defined after it.
    missing_values
        Texts that stand for a missing value in every column, besides null and NaN.
    max_ones_per_row
        Rows with more 1s are cut to so many of them (see `dualquery.data.truncation`); None for no
        cut. It needs binary columns only.

    Raises
    ------
    BadInputError
        If a name occurs twice, there is no column, a declared value is also in
        ``missing_values``, a column keeps missing values that ``drop_incomplete`` leaves out, or
        rows of one-hot columns are to be cut.
    """

    columns: tuple[Column, ...]
    name: str = "schema"
    declared: bool = True
    drop_incomplete: bool = False
    missing_values: tuple[str, ...] = ("",)
    max_ones_per_row: int | None = None

    def __post_init__(self) -> None:
        _check_max_ones(self.name, self.max_ones_per_row)
        if not self.columns:
            raise BadInputError(f"schema {self.name!r}: it has no columns, so records have no bits")
        seen: set[str] = set()
        for column in self.columns:
            if column.name in seen:
                raise BadInputError(
                    f"schema {self.name!r}: the column {column.name!r} is declared twice"
                )
            seen.add(column.name)
            if self.drop_incomplete and getattr(column, "missing", "error") == "category":
                raise BadInputError(
                    f"schema {self.name!r}, column {column.name!r}: missing is a category, but "
                    "drop_incomplete leaves such rows out; choose one of the two"
                )
            codes = getattr(column, "codes", {})
            for marker in self.missing_values:
                if marker in codes:
                    raise BadInputError(
                        f"schema {self.name!r}, column {column.name!r}: {marker!r} is declared as "
                        "a value and also stands for a missing value; drop one of the two"
                    )
            if self.max_ones_per_row is not None and not isinstance(column, Binary):
                raise BadInputError(
                    f"schema {self.name!r}, column {column.name!r}: a row always has one of its "
                    f"{column.bits} values, so rows cannot be cut; --max-ones-per-row is for "
                    "tables whose columns are all binary"
                )

    @cached_property
    def domain(self) -> Domain:
        """Which bits make up which column."""
        sizes = [column.bits for column in self.columns]
        offsets = np.array([0, *itertools.accumulate(sizes)], np.int64)
        return Domain(offsets, self.max_ones_per_row)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def bit_label(self, bit: int) -> str:
        """Return what a bit means: ``column=label``, or the name of a binary column."""
        number = int(self.domain.column_of_bit[bit])
        column = self.columns[number]
        return _label(column, column.labels[bit - int(self.domain.offsets[number])])

    def bit_labels(self) -> pl.Series:
        """Return the labels of all bits, String."""
        import polars as pl

        labels = [_label(column, text) for column in self.columns for text in column.labels]
        return pl.Series("label", labels, dtype=pl.String)

    def literal(self, column: str, value: str | None) -> int:
        """Return the literal code of ``column=value`` (see `Schema.literal`)."""
        try:
            number = self._numbers[column]
        except KeyError:
            raise BadInputError(
                f"query: there is no column {column!r}; {suggest(column, self.column_names)}"
            ) from None
        found = self.columns[number]
        if value is None and not isinstance(found, Binary):
            raise BadInputError(
                f"query: column {column!r} needs a value, such as {column}={found.labels[0]}"
            )
        bit, negated = (0, False) if value is None else find_bit(found, value)
        return 2 * (int(self.domain.offsets[number]) + bit) + negated

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.column_names)}

    def select(self, selection: Selection) -> NDArray[np.int64]:
        """Return the numbers of the selected columns: int64, increasing."""
        return np.array(select_columns(selection, self.column_names), np.int64)

    def restrict(self, selection: Selection) -> TableSchema:
        """Return the schema of the selected columns only."""
        chosen = select_columns(selection, self.column_names)
        return replace(self, columns=tuple(self.columns[number] for number in chosen))

    def with_max_ones(self, most: int | None) -> TableSchema:
        """Return the schema whose rows are cut to at most so many 1s; None for no cut."""
        return replace(self, max_ones_per_row=most)

    def decode(self, records: NDArray[np.uint8]) -> pl.DataFrame:
        """Return records in the user's columns (see `Schema.decode`).

        A bucket becomes a number near its middle, merged categories the first of them, a missing
        value null.
        """
        from dualquery.data.decode import decode_table

        return decode_table(self, records)

    def to_dict(self) -> dict[str, object]:
        """Return the schema as JSON-able values."""
        return {
            "format": _FORMAT,
            "version": SCHEMA_VERSION,
            "kind": "table",
            "name": self.name,
            "declared": self.declared,
            "drop_incomplete": self.drop_incomplete,
            "missing_values": list(self.missing_values),
            "columns": [column.to_dict() for column in self.columns],
            **_max_ones_entry(self.max_ones_per_row),
        }


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
        False when the items were taken from the data.
    outside
        What an item that is not listed does: it is an error, or is left out of the record.
    max_ones_per_row
        Rows with more of the items are cut to so many of them (see `dualquery.data.truncation`);
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
    declared: bool = True
    outside: Literal["error", "drop"] = "error"
    max_ones_per_row: int | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check_max_ones(self.name, self.max_ones_per_row)
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
        if len(names) != len(self.items):
            raise BadInputError(
                f"schema {self.name!r}: {len(names):,} names for {len(self.items):,} items"
            )
        if len(self._bit_of_name) < len(names):
            again = next(name for bit, name in enumerate(names) if self._bit_of_name[name] != bit)
            raise BadInputError(f"schema {self.name!r}: two items have the name {again!r}")
        for item, name in zip(self.items.tolist(), names, strict=True):
            if not name or (name.isdigit() and name != str(item)):
                raise BadInputError(
                    f"schema {self.name!r}: item {item} has the name {name!r}, which is empty or "
                    "the id of another"
                )

    @staticmethod
    def numbered(bits: int, name: str) -> ItemSchema:
        """Return the schema of the items 0 .. ``bits - 1``."""
        return ItemSchema(np.arange(bits, dtype=np.int64), name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ItemSchema):
            return NotImplemented
        ours = (self.name, self.declared, self.outside, self.names, self.max_ones_per_row)
        theirs = (other.name, other.declared, other.outside, other.names, other.max_ones_per_row)
        return ours == theirs and np.array_equal(self.items, other.items)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    @cached_property
    def domain(self) -> Domain:
        """One binary column an item."""
        return replace(Domain.binary(len(self.items)), max_ones=self.max_ones_per_row)

    @property
    def column_names(self) -> Sequence[str]:
        """The items' names, or ids as texts: made on each call, so ask once."""
        return list(map(str, self.items.tolist())) if self.names is None else self.names

    def bit_label(self, bit: int) -> str:
        """Return the name or id of a bit's item."""
        return str(self.items[bit]) if self.names is None else self.names[bit]

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
        if column in self._bit_of_name:
            return 2 * self._bit_of_name[column] + (value == "0")
        return 2 * int(self._bits(_item(column))[0]) + (value == "0")

    def select(self, selection: Selection) -> NDArray[np.int64]:
        """Return the bits of the selected items: int64, increasing."""
        return self._bits(select_items(selection))

    def restrict(self, selection: Selection) -> ItemSchema:
        """Return the schema of the selected items only; all others are left out of the records."""
        bits = self.select(selection)
        names = None if self.names is None else tuple(self.names[bit] for bit in bits.tolist())
        return replace(self, items=self.items[bits], outside="drop", names=names)

    def with_max_ones(self, most: int | None) -> ItemSchema:
        """Return the schema whose rows are cut to at most so many 1s; None for no cut."""
        return replace(self, max_ones_per_row=most)

    def decode(self, records: NDArray[np.uint8]) -> pl.DataFrame:
        """Return records as one 0/1 column an item, or above 10,000 items one list a record.

        The list's column is ``items`` and holds item ids (int32 where all ids fit, else int64).
        """
        from dualquery.data.decode import decode_items

        return decode_items(self, records)

    def to_dict(self) -> dict[str, object]:
        """Return the schema as JSON-able values, the items as ranges."""
        return {
            "format": _FORMAT,
            "version": SCHEMA_VERSION,
            "kind": "items",
            "name": self.name,
            "declared": self.declared,
            "outside": self.outside,
            "items": format_items(self.items),
            **_max_ones_entry(self.max_ones_per_row),
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


def schema_from_dict(fields: Mapping[str, object]) -> TableSchema | ItemSchema:
    """Return the schema that `Schema.to_dict` or a schema file describes.

    Only ``columns`` (or ``items``) must be there; a schema that does not say otherwise is declared.

    Raises
    ------
    BadInputError
        If a key is unknown or absent, a value has the wrong type, or the version is newer.
    """
    if fields.get("format", _FORMAT) != _FORMAT:
        raise BadInputError(f"schema: format is {fields['format']!r}, expected {_FORMAT!r}")
    version = fields.get("version", SCHEMA_VERSION)
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise BadInputError(
            f"schema: version {version!r} is not known to this program, which reads up to "
            f"{SCHEMA_VERSION}; a newer dualquery may"
        )
    kind = fields.get("kind", "items" if "items" in fields else "table")
    if kind not in ("table", "items"):
        raise BadInputError(f"schema: kind is {kind!r}; it must be table or items")
    common = ("format", "version", "kind", "name", "declared", "max_ones_per_row")
    own = (
        ("drop_incomplete", "missing_values", "columns")
        if kind == "table"
        else ("outside", "items", "names")
    )
    for key in fields:
        if key not in common + own:
            raise BadInputError(f"schema: unknown key {key!r}; {suggest(key, common + own)}")
    name = _typed(fields, "name", str, "schema" if kind == "table" else "items")
    declared = _typed(fields, "declared", bool, True)
    most = fields.get("max_ones_per_row")
    if kind == "items":
        names = _typed(fields, "names", list, []) if "names" in fields else None
        return ItemSchema(
            items=select_items(_typed(fields, "items", str, None)),
            name=name,
            declared=declared,
            outside=fields.get("outside", "error"),  # type: ignore[arg-type]  # checked by the class
            max_ones_per_row=most,  # type: ignore[arg-type]  # checked by the class
            names=None if names is None else tuple(map(str, names)),
        )
    columns = _typed(fields, "columns", list, None)
    if not all(isinstance(column, dict) for column in columns):
        raise BadInputError("schema: every column must be a table of keys and values")
    return TableSchema(
        columns=tuple(map(column_from_dict, columns)),
        name=name,
        declared=declared,
        drop_incomplete=_typed(fields, "drop_incomplete", bool, False),
        missing_values=tuple(map(str, _typed(fields, "missing_values", list, [""]))),
        max_ones_per_row=most,  # type: ignore[arg-type]  # checked by the class
    )


def _check_max_ones(name: str, most: object) -> None:
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise BadInputError(
            f"schema {name!r}: max_ones_per_row is {most!r}; a whole number from 1 on is needed"
        )


def _max_ones_entry(most: int | None) -> dict[str, object]:
    """Return what a schema file says of the cut: nothing if there is none."""
    return {} if most is None else {"max_ones_per_row": most}


def _typed(fields: Mapping[str, object], key: str, kind: type[T], default: T | None) -> T:
    """Return a value of a schema file that must have a type; without a default it must be there."""
    found = fields.get(key, default)
    if not isinstance(found, kind):
        what = "is missing" if key not in fields else f"is {found!r}"
        raise BadInputError(f"schema: {key} {what}; a value of type {kind.__name__} is expected")
    return found


def _label(column: Column, text: str) -> str:
    return f"{column.name}={text}" if text else column.name


def _item(column: str) -> NDArray[np.int64]:
    if not (column.isascii() and column.isdigit() and len(column) <= 18):
        raise BadInputError(
            f"query: {column!r} is no item id; the columns of this data are numbers"
        )
    return np.array([int(column)], np.int64)
