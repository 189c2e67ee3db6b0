"""What names of columns tell, which are public, and the order of texts."""

from __future__ import annotations

import re

_ROWS = re.compile(
    r"(?i)(?:.*[_ .-])?(?:id|ids|key|uuid|guid|ssn|phone|telephone|mobile|fax|iban|account|passport"
    r"|mrn|serial|household|person|patient|customer|member|user|student|subject|respondent|employee"
    r"|visitor|session|order|basket|invoice|receipt|transaction)"
    r"(?:[_ .-]?(?:id|nr|no|number))?|.*(?:[_ .-]nr|[_ .-]?number|nummer)\.?|.*[a-z](?:Id|Nr)|.*ID"
)
_CODES = re.compile(
    r"(?i)(?:.*[_ .-])?(?:codes?|zip|postcode|postal|plz|fips|puma|(?:naics|soc|ind|occ)p?|sic|isco"
    r"|nace|nuts|icd\d*|cpt|atc|iso)(?:[_ .-]?code)?|.*[a-z]Code"
)
_DIGITS = re.compile(r"([0-9]+)")


def names_rows(name: str) -> bool:
    """Return whether a column is called as if it named rows, persons or orders."""
    return _ROWS.fullmatch(name) is not None


def names_codes(name: str) -> bool:
    """Return whether a column is called as if its numbers were codes, not amounts."""
    return _CODES.fullmatch(name) is not None


def order_of_text(text: str) -> tuple[bool, float, list[str | tuple[int, str]], str]:
    """Return the key that sorts numbers by value and before words, and ``9th`` before ``10th``.

    No two texts have the same key: ``0`` comes before ``00``.
    """
    parts: list[str | tuple[int, str]] = [*_DIGITS.split(text)]
    for place in range(1, len(parts), 2):  # digits, as many as there may be: the longer is larger
        number = str(parts[place]).lstrip("0")
        parts[place] = len(number), number
    try:
        return False, float(text), parts, text
    except ValueError:
        return True, 0.0, parts, text
