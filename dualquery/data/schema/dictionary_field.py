"""What a data dictionary says of one column, and the column of a schema that it becomes."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualquery.data.buckets import BUCKETS, covering, tidy_edges
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates, fitting_period
from dualquery.runtime.errors import BadInputError

_WHOLE = ("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger")
_NUMBERS = ("number", "decimal", "double", "float")
_MOMENTS = ("date", "datetime", "dateTime", "dateTimeStamp")


@dataclass(frozen=True)
class Field:
    """What a dictionary says of a column, whatever the dictionary.

    Parameters
    ----------
    name, kind
        The column's name, and its type in the dictionary's words.
    values
        All values that it may have, as texts; None where the dictionary does not list them.
    low, high
        Its range, as the dictionary writes them.
    required
        Whether no value may be missing.
    missing
        All texts that stand for a missing value in it.
    """

    name: str
    kind: str
    values: tuple[str, ...] | None
    low: Any
    high: Any
    required: bool
    missing: tuple[str, ...] = ("",)

    def column(self, everywhere: Sequence[str]) -> Column:
        """Return the column that a schema can keep, which says what is missing ``everywhere``.

        Raises
        ------
        BadInputError
            If the dictionary says too little: neither values nor a range.
        """
        own = tuple(text for text in self.missing if text not in everywhere)
        return replace(self._column(), missing_values=own)

    def _column(self) -> Column:
        missing = "error" if self.required else "category"
        if self.values is not None:
            categories = tuple((value,) for value in self.values)
            return Categorical(self.name, categories, missing=missing)  # type: ignore[arg-type]
        if self.kind == "boolean":
            if self.required:
                return Binary(self.name, zero="false", one="true")
            return Categorical(self.name, (("false",), ("true",)), missing="category")
        if self.low is not None and self.high is not None:
            if self.kind in _WHOLE + _NUMBERS:
                return self._numeric(missing)
            if self.kind in _MOMENTS:
                return self._dates(missing)
        raise BadInputError(
            f"column {self.name!r} of type {self.kind}: the dictionary gives neither its values "
            "nor its range; add them, or leave the column out"
        )

    def _numeric(self, missing: Any) -> Numeric:
        try:
            low, high = float(self.low), float(self.high)
        except (TypeError, ValueError):
            raise BadInputError(
                f"column {self.name!r}: its range is {self.low!r} to {self.high!r}; two numbers "
                "are expected"
            ) from None
        whole = self.kind in _WHOLE
        if not low < high < float("inf"):
            raise BadInputError(f"column {self.name!r}: its range is {self.low} to {self.high}")
        return Numeric(
            self.name,
            covering(tidy_edges(low, high, BUCKETS, whole=whole), high, whole=whole),
            integer=whole,
            missing=missing,
        )

    def _dates(self, missing: Any) -> Dates:
        try:
            ends = [datetime.date.fromisoformat(str(end)[:10]) for end in (self.low, self.high)]
        except ValueError:
            raise BadInputError(
                f"column {self.name!r}: its range is {self.low!r} to {self.high!r}; two dates such "
                "as 2014-01-31 are expected"
            ) from None
        by = fitting_period((ends[1] - ends[0]).days)
        first, last = (end.isoformat() for end in ends)
        return Dates(self.name, by, first, last, missing=missing)
