"""What schemas and columns ask of their own description, and how they are written."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

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


def check_name(name: str) -> None:
    """Refuse the empty name."""
    if not name:
        raise BadInputError("schema: a column has an empty name")


def check_choice(column: str, key: str, found: object, allowed: tuple[str, ...]) -> None:
    """Refuse a word that a key does not take."""
    if found not in allowed:
        raise BadInputError(
            f"schema, column {column!r}: {key} is {found!r}; it must be {' or '.join(allowed)}"
        )


def entries(column: Any, kind: str) -> dict[str, object]:
    """Return a column's entries in a schema file; of its own missing values only if it has some."""
    fields = asdict(column)
    own = fields.pop("missing_values")
    listed = {"missing_values": list(own)} if own else {}
    return {"name": column.name, "kind": kind, **fields, **listed}


SCHEMA_VERSION = 1
"""Of schema files; a newer one is refused."""

FORMAT_NAME = "dualquery-schema"


def header(name: str, declared: bool, kind: str) -> dict[str, object]:
    """Return the entries with which every schema file begins."""
    named = {"name": name, "declared": declared}
    return {"format": FORMAT_NAME, "version": SCHEMA_VERSION, "kind": kind, **named}


def check_max_ones(name: str, most: object) -> None:
    """Raise `BadInputError` unless ``max_ones_per_row`` is None or a whole number from 1 on."""
    whole = isinstance(most, int) and not isinstance(most, bool)
    if most is not None and not (whole and 1 <= most < 2**31):  # type: ignore[operator]
        raise BadInputError(
            f"schema {name!r}: max_ones_per_row is {most!r}; a whole number from 1 to 2^31 - 1 is "
            "needed"
        )


def check_shape(records: NDArray[np.uint8], bits: int) -> None:
    """Raise `ValueError` unless records have the shape ``(records, bits)``."""
    if records.ndim != 2 or records.shape[1] != bits:
        raise ValueError(f"records of {bits} bits expected, found shape {records.shape}")


class OneHot:
    """A column of several bits, exactly one of which is 1; "(missing)" is the last, if declared."""

    name: str
    missing: Literal["error", "category"]

    @property
    def known_bits(self) -> int:
        """Number of bits but that of missing values."""
        raise NotImplementedError

    @property
    def bits(self) -> int:
        """Number of bits, at least 2."""
        return self.known_bits + (self.missing == "category")

    @property
    def missing_bit(self) -> int | None:
        """Local bit of missing values, or None where they are errors."""
        return self.known_bits if self.missing == "category" else None

    @property
    def extra_labels(self) -> tuple[str, ...]:
        """Labels of the bits that the choices for missing and outside values add."""
        other = (OTHER_LABEL,) if getattr(self, "outside", "") == "other" else ()
        return (*other, MISSING_LABEL) if self.missing == "category" else other

    def check_choices(self, **others: tuple[str, ...]) -> None:
        """Refuse an empty name, and words that the keys do not take."""
        check_name(self.name)
        for key, allowed in {"missing": ("error", "category"), **others}.items():
            check_choice(self.name, key, getattr(self, key), allowed)

    def check_bits(self, what: str) -> None:
        """Refuse fewer than two bits: a group of one bit is no group."""
        if self.bits < 2:
            raise BadInputError(
                f"schema, column {self.name!r}: {self.bits} {what}{'' if self.bits == 1 else 's'} "
                "declared; a group needs at least two bits, so declare another or leave the column "
                "out"
            )
