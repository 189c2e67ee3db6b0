"""Columns of a table, those of named values, and numbers as people write them.

A column's bits are counted from 0 within the column.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.schema.numbers import exact_number, finite_number, numbers_among
from dualquery.runtime.errors import BadInputError, suggest

MISSING_LABEL = "(missing)"
OTHER_LABEL = "(other)"

SCHEMA_VERSION = 1  # of schema files; a newer one is refused
FORMAT_NAME = "dualquery-schema"

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
"""A whole number that 64 bits hold, as Python writes it."""


def check_choice(where: str, key: str, found: object, allowed: tuple[str, ...]) -> None:
    """Refuse a word that a key does not take."""
    if found not in allowed:
        raise BadInputError(f"{where}: {key} is {found!r}; it must be {' or '.join(allowed)}")


def header(schema: Any, kind: str) -> dict[str, object]:
    """Return the entries that every schema file has; a name of a file may be no text."""
    found = {key: vars(schema)[key] for key in ("name", "declared", "max_ones_per_row", "learned")}
    found["name"] = str(schema.name).encode(errors="replace").decode()
    kept = {key: value for key, value in found.items() if value is not None}
    return {"format": FORMAT_NAME, "version": SCHEMA_VERSION, "kind": kind, **kept}


def check_max_ones(name: str, most: object) -> None:
    """Raise `BadInputError` unless ``max_ones_per_row`` is None or a whole number from 1 on."""
    if most is not None and not (type(most) is int and 1 <= most < 2**31):
        raise BadInputError(
            f"schema {name!r}: max_ones_per_row is {most!r}; a whole number below 2^31 is needed"
        )


def check_shape(records: NDArray[np.uint8], bits: int) -> None:
    """Raise `ValueError` unless records have the shape ``(records, bits)``."""
    if records.ndim != 2 or records.shape[1] != bits:
        raise ValueError(f"records of {bits} bits expected, found shape {records.shape}")


class Column:
    """A column of a table, as a dataclass whose fields are its keys in a schema file.

    Of several bits exactly one is 1; "(other)" and "(missing)" are the last, if declared.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    KIND: ClassVar[str]
    OUTSIDE: ClassVar[str] = ""
    """What the key ``outside`` may say besides ``error``."""

    name: str
    missing_values: tuple[str, ...]

    decoded: Callable[..., pl.Series]
    """Returns values of local bits (of a binary column its values), int32, shape ``(r,)``.

    It takes a generator, and ``avoided`` numbers, or days, that stand for a missing value.
    """

    _place: Callable[[str], int | None]

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of each bit."""
        raise NotImplementedError

    @property
    def means(self) -> NDArray[np.float64]:
        """The number that each declared value stands for, on average; NaN for none: float64."""
        raise NotImplementedError

    @property
    def codes(self) -> Mapping[str, int]:
        """Value for each text that the column may hold; none of a column in buckets."""
        return {}

    @property
    def where(self) -> str:
        """What messages call the column."""
        return f"schema, column {self.name!r}"

    @property
    def bits(self) -> int:
        """Number of bits: 1 of a binary column, else at least 2."""
        return len(self.labels)

    @property
    def missing_bit(self) -> int | None:
        """Local bit of missing values, or None where they are errors."""
        return self.bits - 1 if getattr(self, "missing", "") == "category" else None

    @property
    def extra_labels(self) -> tuple[str, ...]:
        """Labels of the bits that the choices for missing and outside values add."""
        other = (OTHER_LABEL,) if getattr(self, "outside", "") == "other" else ()
        return (*other, MISSING_LABEL) if getattr(self, "missing", "") == "category" else other

    @property
    def texts(self) -> Sequence[str]:
        """What queries may call the values."""
        return (*self.codes, *self.extra_labels) if self.codes else self.labels

    def check_choices(self) -> None:
        """Refuse a name that no file holds, and words that the keys do not take."""
        if not self.name or "\0" in self.name:
            raise BadInputError(f"schema: the column name {self.name!r} is empty or holds a NUL")
        others = {"missing": "category", "outside": self.OUTSIDE, "unparsable": "missing"}
        for key, other in others.items():
            if key in self.__dataclass_fields__:
                check_choice(self.where, key, getattr(self, key), ("error", other))

    def check_bits(self, what: str) -> None:
        """Refuse fewer than two bits: a group of one bit is no group."""
        if self.bits < 2:
            raise BadInputError(
                f"{self.where}: {self.bits} {what}{'' if self.bits == 1 else 's'} declared; a "
                "group needs at least two bits, so declare another or leave the column out"
            )

    def avoided(self, texts: Sequence[str]) -> list[float]:
        """Return the numbers, of dates the days from 1970, among texts: records have none."""
        return numbers_among(texts)

    def check_missing(self, where: str, everywhere: Sequence[str]) -> None:
        """Refuse missing values that the column lists twice or has as values."""
        own = self.missing_values
        for place, text in enumerate(own):
            if text in everywhere or text in own[:place]:
                raise BadInputError(
                    f"{where}: missing_values lists {text!r}, which is listed before, here or for "
                    "all columns; list it once"
                )
        for text in sorted({*self.texts} - {MISSING_LABEL} & {*everywhere, *own}):
            raise BadInputError(
                f"{where}: {text!r} is declared as a value and also stands for a missing value; "
                "drop one of the two"
            )

    def find_bit(self, value: str) -> tuple[int, bool]:
        """Return the local bit that a value of a query's text means, and whether it is negated."""
        named = value in self.labels and self.bits > 1
        place = self.labels.index(value) if named else self._place(value)
        if place is not None:
            return (place, False) if self.bits > 1 else (0, place == 0)
        others = f"; what the schema does not list is {OTHER_LABEL!r}"
        others *= OTHER_LABEL in self.extra_labels
        if "|" in value and "=" in value:
            others += "; between alternatives write 'or', not '|'"
        raise BadInputError(
            f"column {self.name!r} has no value {value!r}; {suggest(value, self.texts)}{others}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the column as JSON-able values; keys that hold nothing are left out."""
        found = ((key.name, getattr(self, key.name)) for key in fields(self))
        held = {key: _plain(value) for key, value in found if value not in (None, ())}
        return {"name": self.name, "kind": self.KIND, **held}


def _plain(value: Any) -> Any:
    """Return a value of a column with lists for tuples; short whole numbers have no point."""
    if isinstance(value, tuple):
        return list(map(_plain, value))
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e22
    return int(value) if whole else value


class Named(Column):
    """A column whose values are texts."""

    values: tuple[tuple[str, ...], ...]

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """Value for each text that the column may hold: of a binary one 0 or 1, else the bit."""
        return {text: code for code, texts in enumerate(self.values) for text in texts}

    @property
    def means(self) -> NDArray[np.float64]:
        """The number that each value is, NaN for a text: float64."""
        return np.array([finite_number(texts[0]) for texts in self.values], np.float64)

    def _place(self, text: str) -> int | None:
        if text in self.codes or (number := exact_number(text)) is None:
            return self.codes.get(text)
        same = {place for each, place in self.codes.items() if exact_number(each) == number}
        return same.pop() if len(same) == 1 else None

    def decoded(
        self, codes: NDArray[np.int32], _: np.random.Generator, avoided: Sequence[float]
    ) -> pl.Series:
        """Return values of local bits: numbers if all are whole ones and none is ``avoided``."""
        names = [texts[0] for texts in self.values]
        whole = all(map(_WHOLE.fullmatch, names)) and not {*map(float, names)} & {*avoided}
        if whole and self.bits == 1 and names == ["0", "1"]:
            return pl.Series(self.name, codes.astype(np.uint8))
        found = pl.Series(self.name, [*names, *self.extra_labels])
        if self.missing_bit is not None:
            found[self.missing_bit] = None
        numbers = whole and OTHER_LABEL not in self.extra_labels
        return (found.cast(pl.Int64) if numbers else found).gather(codes)


@dataclass(frozen=True)
class Binary(Named):
    """A column of two values, held by one bit.

    `BadInputError` if the two values are the same.

    Parameters
    ----------
    name
        Name of the column in the user's table.
    zero, one
        The texts of the values that leave the bit at 0 and set it to 1.
    missing_values
        Texts that stand for a missing value in this column, besides those of all columns.
    """

    KIND: ClassVar[str] = "binary"
    labels = ("",)  # the column's name says it all

    name: str
    zero: str = "0"
    one: str = "1"
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_choices()
        if self.zero == self.one:
            raise BadInputError(f"{self.where}: both values are {self.one!r}; declare two of them")

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:  # type: ignore[override]
        """The texts of each value of the bit, as a categorical column has them."""
        return (self.zero,), (self.one,)

    def _place(self, text: str) -> int | None:
        numbers = any(finite_number(each) is not None for each in self.codes)
        return {**({} if numbers else {"0": 0, "1": 1}), **self.codes}.get(text)


@dataclass(frozen=True)
class Categorical(Named):
    """A column of named categories, one bit each; exactly one of the bits is 1.

    `BadInputError` if fewer than two bits result or a value occurs twice.

    Parameters
    ----------
    name
        Name of the column in the user's table.
    values
        One tuple of texts a bit; a tuple of several texts merges them.
    missing
        What a missing value does: it is an error, or a category of its own.
    outside
        What a value that is not in ``values`` does: it is an error, or falls in "(other)".
    missing_values
        Texts that stand for a missing value in this column, besides those of all columns.
    """

    KIND: ClassVar[str] = "categorical"
    OUTSIDE: ClassVar[str] = "other"

    name: str
    values: tuple[tuple[str, ...], ...]
    missing: Literal["error", "category"] = "error"
    outside: Literal["error", "other"] = "error"
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_choices()
        if not all(self.values):
            raise BadInputError(f"{self.where}: a category without any value")
        seen: set[str] = set()
        for value in (*itertools.chain(*self.values), *("|".join(t) for t in self.values if t[1:])):
            if value in seen:
                raise BadInputError(f"{self.where}: the value {value!r} is declared twice")
            if value in self.extra_labels:
                raise BadInputError(
                    f"{self.where}: the value {value!r} has the name of a bit that the choices for "
                    "missing or outside values add; rename it"
                )
            seen.add(value)
        self.check_bits("value")

    @property
    def other_bit(self) -> int | None:
        """Local bit of values that are not declared, or None where they are errors."""
        return len(self.values) if self.outside == "other" else None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Label of each bit; merged values are joined by a bar."""
        return (*("|".join(texts) for texts in self.values), *self.extra_labels)

    def to_dict(self) -> dict[str, object]:
        """Return the column as JSON-able values."""
        values = [texts[0] if len(texts) == 1 else list(texts) for texts in self.values]
        return {**super().to_dict(), "values": values}
