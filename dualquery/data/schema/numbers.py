"""Numbers as people write them."""

import math
import re
from collections.abc import Iterable
from fractions import Fraction

# Possessive: a text of many digits that is no number is seen to be none in one go.
_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"
NUMBER_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:-|to)\s*({_NUMBER})\s*", re.ASCII)
"""``low-high`` or ``low to high``; its groups are the ends."""


def finite_number(text: str) -> float | None:
    """Return the finite number that a text is, or None."""
    number = _number_or_nan(text)
    return number if math.isfinite(number) else None


def exact_number(text: str) -> float | Fraction | None:
    """Return the number that a text is, an int if it is whole, or None; exactly from 2^52 on."""
    number = _number_or_nan(text)
    if not number.is_integer():
        return None if math.isnan(number) else number
    exact = Fraction(text if abs(number) >= 2**52 and len(text) < 4_000 else number)
    return int(exact) if exact.denominator == 1 else exact


def _number_or_nan(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def with_points(texts: Iterable[str]) -> list[str]:
    """Return texts, and those with a decimal comma also with a point, as cells are read."""
    known = list(texts)
    return [*known, *(text.replace(",", ".") for text in known if _DECIMAL_COMMA.fullmatch(text))]


def numbers_among(texts: Iterable[str]) -> list[float]:
    """Return those of some texts that are numbers, with a decimal point or comma."""
    return [number for number in map(_number_or_nan, with_points(texts)) if not math.isnan(number)]


_GROUPED = re.compile(r"\s*[-+]?[1-9]\d{0,2}(?:\.\d{3})+\s*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,(?:\d{1,2}|\d{4,})\s*", re.ASCII)
_WITH_COMMA = re.compile(r"\s*[-+]?[\d.']*,[\d,.]*\d\s*", re.ASCII)


def in_another_style(text: str, *, whole: bool) -> str | None:
    """Return what to write for a number in the style of another country; None if it is in none.

    ``10.000`` may be ten or ten thousand. It is taken for neither where only ``whole`` numbers can
    be meant, or where nothing but zeros follow the point.
    """
    plain = text.strip()
    grouped = _GROUPED.fullmatch(text) and (whole or plain.endswith(".000"))
    if not grouped and not _WITH_COMMA.fullmatch(text):
        return None
    meant = "decimals behind a point, and thousands without"
    if _DECIMAL_COMMA.fullmatch(text):
        meant = plain.replace(",", ".")
    return f"{plain} has other signs than 1234.5; write {meant}"


def number_text(value: float) -> str:
    """Return the shortest text that gives the number back, whole numbers without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def rounded_text(edge: float) -> str:
    """Return an edge with six digits, without an exponent where these say all of it."""
    text = f"{edge:.6g}"
    return number_text(edge) if float(text) == edge else text
