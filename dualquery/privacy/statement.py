"""What a release says about its own privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import html_text

REPLACE_ONE_TEXT = "replace one record, n public"


@dataclass(frozen=True, kw_only=True)
class PrivacyStatement:
    """The guarantee of a release, or the reasons why it has none.

    `BadInputError` if a private one lacks its guarantee, or another one has it or lacks a reason.
    """

    private: bool
    epsilon: float | None = None  # as delta and accountant, None when not private
    delta: float | None = None
    accountant: str | None = None
    assumptions: tuple[str, ...] = ()  # theorems, and filters applied before the data counted
    numerical_assumptions: tuple[str, ...] = ()  # on floating point and randomness
    neighbours: str = REPLACE_ONE_TEXT  # which pairs of data sets are protected
    reasons_not_private: tuple[str, ...] = ()  # empty exactly when private
    condition: str | None = None  # what is taken for granted without proof, as a declared spread
    together: str = ""  # what it and other releases come to; "" if unsaid, as in older releases

    def __post_init__(self) -> None:
        if not self.private:
            if not self.reasons_not_private:
                raise BadInputError("A release that is not private must say why.")
            if (self.epsilon, self.delta, self.accountant) != (None, None, None):
                raise BadInputError(
                    "A release that is not private states no (epsilon, delta); found "
                    f"({self.epsilon}, {self.delta}) by {self.accountant}."
                )
            return
        if self.reasons_not_private:
            raise BadInputError(
                f"A private release has no reasons against it; found {self.reasons_not_private}."
            )
        if self.epsilon is None or self.delta is None or self.accountant is None:
            raise BadInputError(
                "A private release needs epsilon, delta and an accountant; found "
                f"{self.epsilon}, {self.delta}, {self.accountant}."
            )
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0 and 0 <= self.delta < 1):
            raise BadInputError(
                f"({self.epsilon}, {self.delta}) is no guarantee: epsilon must be finite and >= 0, "
                "delta in [0, 1)."
            )

    @staticmethod
    def not_private(*reasons: str) -> PrivacyStatement:
        """Return the statement of a release without a guarantee, for the given reasons."""
        return PrivacyStatement(private=False, reasons_not_private=reasons)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as JSON-able data; no (epsilon, delta) when not private."""
        if not self.private:
            return {"private": False, "reasons_not_private": list(self.reasons_not_private)}
        return {
            "private": True,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "accountant": self.accountant,
            "assumptions": list(self.assumptions),
            "numerical_assumptions": list(self.numerical_assumptions),
            **({"together": self.together} if self.together else {}),
            **({} if self.condition is None else {"condition": self.condition}),
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> PrivacyStatement:
        """Return the statement that `to_dict` wrote."""
        if not data["private"]:
            return PrivacyStatement.not_private(*data["reasons_not_private"])
        return PrivacyStatement(
            private=True,
            epsilon=data["epsilon"],
            delta=data["delta"],
            neighbours=data["neighbours"],
            accountant=data["accountant"],
            assumptions=tuple(data["assumptions"]),
            numerical_assumptions=tuple(data["numerical_assumptions"]),
            condition=data.get("condition"),
            together=data.get("together", ""),
        )

    def guarantee(self) -> str:
        """Return the guarantee, and what it comes to with others; or why there is none."""
        if not self.private:
            return f"This release is not private: {'; '.join(self.reasons_not_private)}."
        # Upwards, so that the printed figures are a guarantee as well.
        opening = "This release"
        if self.condition is not None:
            opening = f"Conditional on {self.condition}, this release"
        first = (
            f"{opening} is ({round_up(self.epsilon)}, {round_up(self.delta)})-differentially "
            f"private (neighbours: {self.neighbours}; accountant: {self.accountant})."
        )
        return f"{first} {self.together}".rstrip()

    def _repr_html_(self) -> str:
        rest = (*self.assumptions, *self.numerical_assumptions)
        listed = "".join(f"<li>{html_text(each)}</li>" for each in rest)
        return f"<p><strong>{html_text(self.guarantee())}</strong></p><ul>{listed}</ul>"

    def text(self) -> str:
        """Return the statement as one paragraph, with all that it rests on."""
        return " ".join((self.guarantee(), *self.assumptions, *self.numerical_assumptions))


def round_up(value: float | None, digits: int = 6) -> str:
    """Return ``value`` with so many significant digits, never rounded down."""
    if not value:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(value))
    text = f"{value:.{digits}g}"
    return text if float(text) >= value else f"{value + 0.5 * 10.0**-decimals:.{digits}g}"
