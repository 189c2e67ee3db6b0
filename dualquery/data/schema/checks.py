"""What schemas and columns check of their own description, and how they are written."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError

MISSING_LABEL = "(missing)"
OTHER_LABEL = "(other)"

NO_OPEN_END = (
    "every bucket needs two ends: write the last number that matters as the edge; with "
    '"outside": "clip" numbers beyond it count in the nearest bucket'
)
"""What to do about an edge that is no number, or infinite."""

SCHEMA_VERSION = 1
"""Of schema files; a newer one is refused."""

FORMAT_NAME = "dualquery-schema"


def check_choice(where: str, key: str, found: object, allowed: tuple[str, ...]) -> None:
    """Refuse a word that a key does not take."""
    if found not in allowed:
        raise BadInputError(f"{where}: {key} is {found!r}; it must be {' or '.join(allowed)}")


def header(name: str, declared: bool, kind: str, max_ones: int | None) -> dict[str, object]:
    """Return the entries that every schema file has."""
    named = {"name": name, "declared": declared}
    cut = {} if max_ones is None else {"max_ones_per_row": max_ones}
    return {"format": FORMAT_NAME, "version": SCHEMA_VERSION, "kind": kind, **named, **cut}


def check_max_ones(name: str, most: object) -> None:
    """Raise `BadInputError` unless ``max_ones_per_row`` is None or a whole number from 1 on."""
    if most is not None and not (type(most) is int and 1 <= most < 2**31):
        raise BadInputError(
            f"schema {name!r}: max_ones_per_row is {most!r}; a whole number from 1 to 2^31 - 1 is "
            "needed"
        )


def check_shape(records: NDArray[np.uint8], bits: int) -> None:
    """Raise `ValueError` unless records have the shape ``(records, bits)``."""
    if records.ndim != 2 or records.shape[1] != bits:
        raise ValueError(f"records of {bits} bits expected, found shape {records.shape}")


class Described:
    """A column of a table, as a dataclass whose fields are its keys in a schema file."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    KIND: ClassVar[str]
    OUTSIDE: ClassVar[str] = ""
    """What the key ``outside`` may say besides ``error``."""

    name: str

    @property
    def where(self) -> str:
        """What messages call the column."""
        return f"schema, column {self.name!r}"

    def check_choices(self) -> None:
        """Refuse an empty name, and words that the keys do not take."""
        if not self.name:
            raise BadInputError("schema: a column has an empty name")
        others = {"missing": "category", "outside": self.OUTSIDE, "unparsable": "missing"}
        for key, other in others.items():
            if key in self.__dataclass_fields__:
                check_choice(self.where, key, getattr(self, key), ("error", other))

    def to_dict(self) -> dict[str, object]:
        """Return the column as JSON-able values; keys that hold nothing are left out."""
        found = ((key.name, getattr(self, key.name)) for key in fields(self))
        held = {key: _plain(value) for key, value in found if value not in (None, ())}
        return {"name": self.name, "kind": self.KIND, **held}


def _plain(value: Any) -> Any:
    """Return a value of a column with lists for tuples, and whole numbers without a point."""
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


class OneHot(Described):
    """A column of several bits, exactly one of which is 1; "(missing)" is the last, if declared."""

    missing: Literal["error", "category"]

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of each bit."""
        raise NotImplementedError

    @property
    def bits(self) -> int:
        """Number of bits, at least 2."""
        return len(self.labels)

    @property
    def missing_bit(self) -> int | None:
        """Local bit of missing values, or None where they are errors."""
        return self.bits - 1 if self.missing == "category" else None

    @property
    def extra_labels(self) -> tuple[str, ...]:
        """Labels of the bits that the choices for missing and outside values add."""
        other = (OTHER_LABEL,) if getattr(self, "outside", "") == "other" else ()
        return (*other, MISSING_LABEL) if self.missing == "category" else other

    def check_bits(self, what: str) -> None:
        """Refuse fewer than two bits: a group of one bit is no group."""
        if self.bits < 2:
            raise BadInputError(
                f"{self.where}: {self.bits} {what}{'' if self.bits == 1 else 's'} declared; a "
                "group needs at least two bits, so declare another or leave the column out"
            )
