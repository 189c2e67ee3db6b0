"""What names and spellings hint at, where the values alone leave it open what a column is.

A draft is for a person to check, so a hint may be wrong; each leaves a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ROWS = re.compile(
    r"(?i)(?:.*[_ .-])?(?:id|ids|key|uuid|guid|ssn|index|phone|telephone|mobile|fax|iban|account"
    r"|passport|household|person|patient|customer|member|user|student|subject|family)"
    r"(?:[_ .-]?(?:id|nr|no|number))?|.*[a-z]Id|.*ID"
)
_CODES = re.compile(
    r"(?i)(?:.*[_ .-])?(?:codes?|zip|postcode|postal|plz|fips|naics|sic|isco|soc|nace|nuts|icd\d*"
    r"|cpt|atc|iso)(?:[_ .-]?code)?|.*[a-z]Code"
)
_COUNTS = re.compile(r"(?i)counts?|freq|frequency|n|cases")
_SIGNS = re.compile(r"[-+(]?\s*[$€£¥]?\s*[-+]?\d[\d.,'  ]*\s*(?:[%$€£¥)]|[A-Z]{3})?")


def names_rows(name: str) -> bool:
    """Return whether a column is called as if it named rows, persons or households."""
    return _ROWS.fullmatch(name) is not None


def names_codes(name: str) -> bool:
    """Return whether a column is called as if its numbers were codes, not amounts."""
    return _CODES.fullmatch(name) is not None


def names_counts(name: str) -> bool:
    """Return whether a column is called as if each row stood for so many."""
    return _COUNTS.fullmatch(name) is not None


def numbers_with_signs(texts: Iterable[str]) -> bool:
    """Return whether texts are numbers but for signs such as $, % or a decimal comma."""
    some = list(texts)
    return bool(some) and all(_SIGNS.fullmatch(text.strip()) for text in some)


def are_codes(numbers: Iterable[float]) -> bool:
    """Return whether a few numbers look like a list of codes: 0 or 1 and all that follow."""
    ordered = sorted(numbers)
    return ordered[0] in (0, 1) and ordered == [ordered[0] + i for i in range(len(ordered))]
