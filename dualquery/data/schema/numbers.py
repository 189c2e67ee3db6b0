"""Numbers as people write them in schemas, queries and questions."""

from __future__ import annotations

import math
import re

# Possessive: a text of many digits that is no number is seen to be none in one go.
_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"
NUMBER_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:-|to)\s*({_NUMBER})\s*", re.ASCII)
"""``low-high`` or ``low to high``; its groups are the ends."""


def finite_number(text: str) -> float | None:
    """Return the finite number that a text is, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


_GROUPED = re.compile(r"\s*[-+]?[1-9]\d{0,2}(?:\.\d{3})+\s*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,(?:\d{1,2}|\d{4,})\s*", re.ASCII)
_WITH_COMMA = re.compile(r"\s*[-+]?[\d.']*,[\d,.]*\d\s*", re.ASCII)


def in_another_style(text: str, *, whole: bool) -> str | None:
    """Return what to write for a number in the style of another country; None if it is in none.

    ``10.000`` may be ten or ten thousand. It is taken for neither where only ``whole`` numbers can
    be meant, or where nothing but zeros follow the point.

    Parameters
    ----------
    text
        What somebody wrote.
    whole
        Whether the number is of a column of whole numbers.
    """
    plain = text.strip()
    if _DECIMAL_COMMA.fullmatch(text):
        return f"{plain} has a comma; write {plain.replace(',', '.')}"
    if _WITH_COMMA.fullmatch(text):
        return f"{plain} has a comma; write decimals behind a point, and no sign between thousands"
    if not _GROUPED.fullmatch(text) or not (whole or plain.endswith(".000")):
        return None
    joined = plain.replace(".", "")
    if plain.count(".") > 1:
        return f"{plain} has signs between thousands; write {joined}"
    return f"{plain} may be {joined} or {float(plain):g}; write the one that you mean"
