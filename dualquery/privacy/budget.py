"""The budget a user asks for: its default, and whether it makes sense."""

from __future__ import annotations

import math

from dualquery.errors import BadInputError


def default_delta(n: int) -> float:
    """Return 1 / n^2, the default delta for n records (n >= 2)."""
    _require_records(n)
    return 1.0 / (float(n) * float(n))


def check_budget(epsilon: float, delta: float, n: int) -> tuple[str, ...]:
    """Check a budget for n records.

    Parameters
    ----------
    epsilon
        Must be finite and > 0.
    delta
        Must lie in [0, 1).
    n
        Number of private records, >= 2.

    Returns
    -------
    tuple[str, ...]
        Warnings to show to the user and to store in the release; empty when there are none.

    Raises
    ------
    BadInputError
        If one of the three is outside its range.
    """
    _require_records(n)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BadInputError(f"--epsilon is {epsilon}; a finite number above 0 is needed.")
    if not 0.0 <= delta < 1.0:
        raise BadInputError(
            f"--delta is {delta}; a number from 0 up to but not including 1 is needed "
            f"(1/n^2 = {default_delta(n):.3g} is the default for {n} records)."
        )
    if delta > 1.0 / n:
        return (
            f"delta = {delta:g} is above 1/n = {1.0 / n:.3g}: such a guarantee allows a mechanism "
            "that publishes whole records at random. "
            f"The default is 1/n^2 = {default_delta(n):.3g}.",
        )
    return ()


def _require_records(n: int) -> None:
    if n < 2:
        raise BadInputError(f"There are {n} records; a private release needs at least 2.")
