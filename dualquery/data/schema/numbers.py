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
