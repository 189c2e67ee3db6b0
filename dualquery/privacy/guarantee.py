"""The budget that a user asks for, whether it makes sense, and what a release says it keeps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import html_text


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
    neighbours: str = ""  # which pairs of data sets are protected; "" when not private
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
    """Return ``value`` with ``digits`` significant digits, never rounded down."""
    if not value or math.isinf(value):
        return f"{value or 0:g}"
    decimals = digits - 1 - math.floor(math.log10(value))
    text = f"{value:.{digits}g}"
    return text if float(text) >= value else f"{value + 0.5 * 10.0**-decimals:.{digits}g}"


SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 1e4
"""Below the first noise is a million times a count; above the second nobody is protected."""

LARGE_EPSILON = 10.0
"""Above it a guarantee says little about one row, and a user is told."""


def default_delta(n: int) -> float:
    """Return 1 / n^2, the default delta for n records (n >= 2)."""
    _require_records(n)
    return 1.0 / (float(n) * float(n))


def check_ranges(epsilon: float, delta: float) -> None:
    """Check what needs no number of records.

    `BadInputError` if epsilon is not in [`SMALLEST_EPSILON`, `LARGEST_EPSILON`] or delta not in [0,
    1), or one is no number.
    """
    _require_number("epsilon", epsilon)
    _require_number("delta", delta)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BadInputError(f"--epsilon is {epsilon}; a finite number above 0 is needed.")
    if epsilon < SMALLEST_EPSILON:
        raise BadInputError(
            f"--epsilon is {epsilon:g}; nothing below {SMALLEST_EPSILON:g} is taken: of such a "
            "release only noise would be left."
        )
    if epsilon > LARGEST_EPSILON:
        raise BadInputError(
            f"--epsilon is {epsilon:g}; nothing above {LARGEST_EPSILON:g} is taken: such a "
            "guarantee protects nobody."
        )
    if not 0.0 <= delta < 1.0:
        raise BadInputError(
            f"--delta is {delta}; a number from 0 up to but not including 1 is needed."
        )


def _require_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadInputError(f"--{name} is {value!r}; a number is needed.")


def check_budget(epsilon: float, delta: float, n: int) -> tuple[str, ...]:
    """Check a budget for n >= 2 private records; return warnings for the user and the release.

    Raises `BadInputError` if n is below 2, and as `check_ranges`.
    """
    _require_records(n)
    check_ranges(epsilon, delta)
    warnings = weak_epsilon(epsilon)
    if delta >= 1.0 / n:
        warnings += (
            f"delta = {delta:g} is not below 1/n = {1.0 / n:.3g}: a program that publishes each of "
            f"the {n:,} records, whole, with a chance of {delta:g} keeps such a guarantee, too. "
            f"1/n^2 = {default_delta(n):.3g} is usual.",
        )
    return warnings


def weak_epsilon(epsilon: float) -> tuple[str, ...]:
    """Return the warning of `check_budget` about a large epsilon, if it is one."""
    if epsilon <= LARGE_EPSILON:
        return ()
    # The exponent, for e^epsilon itself may be beyond all floating-point numbers.
    power = int(epsilon / math.log(10.0))
    return (
        f"epsilon = {epsilon:g} is above {LARGE_EPSILON:g}: what is released may be 10^{power} "
        "times as likely with one record as with another, and more, so it may tell which it was. "
        "1 is usual.",
    )


def _require_records(n: int) -> None:
    if n < 2:
        records = "1 record" if n == 1 else f"{n} records"
        raise BadInputError(f"{records}; a private release needs at least 2")
