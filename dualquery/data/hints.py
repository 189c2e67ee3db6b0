"""What names and spellings hint at, where the values alone leave it open what a column is.

A draft is for a person to check, so a hint may be wrong; each leaves a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

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


_APART = 2.0
"""A number is apart from others by more than so many of their largest steps."""


def marks_missing(numbers: NDArray[np.float64], frequencies: NDArray[np.int64]) -> list[float]:
    """Return the numbers such as 9, 99, -9 or 88 that may stand for missing values, increasing.

    They are written with nines or eights alone, come more than once, and lie apart from all others.

    Parameters
    ----------
    numbers, frequencies
        Finite, all different, in any order, and how often each comes.
    """
    written = np.array([set(f"{abs(x):g}") in ({"8"}, {"9"}) for x in numbers.tolist()], bool)
    others = np.sort(numbers[~written])
    if len(others) < 2:
        return []
    far = _APART * float(np.diff(others).max())
    apart = (numbers > others[-1] + far) | (numbers < others[0] - far)
    found: list[float] = np.sort(numbers[written & apart & (frequencies > 1)]).tolist()
    return found


_ROUNDED = 5
"""People round amounts to multiples of this."""


def order_says_nothing(numbers: NDArray[np.float64], frequencies: NDArray[np.int64]) -> bool:
    """Return whether frequencies of the numbers 0 or 1 and all that follow are those of codes.

    Amounts that are near each other are about as frequent: fewer people are 90 than 80 years old.
    Codes stand in an order that says nothing of them, so the next one may be as unlike as any. Two
    tests, without the numbers that people round to: frequencies differ by more than chance (else
    buckets lose nothing), and neighbours' ranks by nearly as much as those of any two. Under an
    order at random the mean step of n ranks has a relative deviation of 0.775 over the root of
    n - 1; 5 in 100 lists of codes are taken for amounts.

    Parameters
    ----------
    numbers, frequencies
        The numbers, increasing, and how often each comes.
    """
    from scipy.stats import rankdata

    counts = frequencies[numbers % _ROUNDED != 0]
    n = len(counts)
    if n < _ROUNDED:
        return False
    chance = (counts - counts.mean()) ** 2 / counts.mean()
    ranks = np.sort(rankdata(counts))
    any_two = float((2 * np.arange(n) - n + 1) @ ranks) * 2 / (n * (n - 1))
    steps = float(np.abs(np.diff(rankdata(counts))).mean())
    return bool(
        chance.sum() > n + 5 * (2 * n) ** 0.5
        and steps > any_two * (1 - 1.645 * 0.775 / (n - 1) ** 0.5)
    )
