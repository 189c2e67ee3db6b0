"""Answers as text: with the digits that are known of them, and what each rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from dualquery.runtime.figures import share

_MOST_DIGITS = 6

_ALONE = 5
"""Digits of a number above 1 that has no interval: nothing tells how many of them are noise."""

_HUGE = 1e15
"""From here on digits before the point are rounded, too, and there is an exponent."""

_ALL_DIGITS = Context(prec=400)
"""More than any floating-point number has before its point."""


def shown(answer: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """Return an answer as text, and its interval as ``low to high``.

    Both have the decimals down to the second digit of half the interval's width. Its ends are
    rounded outwards: shown shorter than it is, it would hold less often.

    Parameters
    ----------
    answer
        The answer; None, shown as a dash, where there is none.
    low, high
        The ends of its interval; None where that is not known, shown as an empty text.
    """
    if low is None or high is None:
        return "-" if answer is None else _alone(answer), ""
    largest = max(abs(each) for each in (answer, low, high) if each is not None)
    decimals = min(_decimals_of(largest, _MOST_DIGITS), _supported(low, high))
    number = "-" if answer is None else _rounded(answer, decimals, ROUND_HALF_EVEN)
    ends = _rounded(low, decimals, ROUND_FLOOR), _rounded(high, decimals, ROUND_CEILING)
    return number, " to ".join(ends)


def _alone(value: float) -> str:
    """Return a number without an interval: one up to 1 as a share."""
    if abs(value) <= 1.0:
        return share(value)
    return _rounded(value, _decimals_of(abs(value), _ALONE), ROUND_HALF_EVEN)


def _decimals_of(size: float, digits: int) -> int:
    """Return the decimals of a number of so many digits; before the point none is left out.

    Rounded to tens, a count could exceed the number of rows. Negative for huge numbers.
    """
    if size == 0.0:
        return 0
    decimals = digits - 1 - math.floor(math.log10(size))
    return decimals if size >= _HUGE else max(decimals, 0)


def _supported(low: float, high: float) -> int:
    """Return the decimals that an interval supports; one of a single number supports all it has."""
    half = high / 2 - low / 2
    if half > 0:
        return max(1 - math.floor(math.log10(half)), 0)
    exponent = Decimal(repr(low)).normalize().as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _rounded(value: float, decimals: int, rounding: str) -> str:
    step = Decimal(1).scaleb(-decimals)
    found = Decimal(repr(float(value))).quantize(step, rounding, _ALL_DIGITS)
    if found.is_zero():  # it may have a sign
        return f"{0:.{max(decimals, 0)}f}"
    return f"{found:f}" if decimals >= 0 else str(found)


class Footnotes:
    """The remarks on some answers; where these differ, each has a number that marks its answers.

    Parameters
    ----------
    answers
        As of `dualquery.releases.answer.answering.answer_queries`: it looks at
        ``low`` and ``basis``.
    """

    def __init__(self, answers: Iterable[Mapping[str, Any]]) -> None:
        self._numbers: dict[str, int] = {}
        for answer in answers:
            self._numbers.setdefault(_remark(answer), len(self._numbers) + 1)

    def mark(self, answer: Mapping[str, Any]) -> str:
        """Return the mark of an answer, such as ``[2]``; empty if there is one remark for all."""
        return f"[{self._numbers[_remark(answer)]}]" if len(self._numbers) > 1 else ""

    @property
    def lines(self) -> list[str]:
        """The remarks, each behind its mark."""
        if len(self._numbers) == 1:
            return list(self._numbers)
        return [f"[{number}] {remark}" for remark, number in self._numbers.items()]


def _remark(answer: Mapping[str, Any]) -> str:
    return f"{'no interval' if answer['low'] is None else 'interval'}: {answer['basis']}"
