"""The budget a user asks for: its default, and whether it makes sense."""

from __future__ import annotations

import math
from numbers import Real

from dualquery.runtime.errors import BadInputError

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
            f"--delta is {delta}; a number from 0 up to but not including 1 is needed "
            "(when left out it is 1/n^2 for n records)."
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
            f"The default is 1/n^2 = {default_delta(n):.3g}.",
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
