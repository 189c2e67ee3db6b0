"""What names and spellings hint at, where the values alone leave it open what a column is.

A draft is for a person to check, so a hint may be wrong; each leaves a remark.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_ROWS = re.compile(
    r"(?i)(?:.*[_ .-])?(?:id|ids|key|uuid|guid|ssn|index|phone|telephone|mobile|fax|iban|account"
    r"|passport|mrn|serial|household|person|patient|customer|member|user|student|subject|family|pupil"
    r"|respondent|employee|visitor|session)"
    r"(?:[_ .-]?(?:id|nr|no|number))?|.*(?:[_ .-]nr|[_ .-]?number|nummer)\.?|.*[a-z](?:Id|Nr)|.*ID"
)
_LISTS = re.compile(
    r"(?i)(?:.*[_ .-])?(?:order|basket|cart|invoice|receipt|transaction|bestell(?:ung)?|rechnungs?)"
    r"[_ .-]?(?:id|nr|no|number|nummer)?"
)
_CODES = re.compile(
    r"(?i)(?:.*[_ .-])?(?:codes?|zip|postcode|postal|plz|fips|naics|sic|isco|soc|nace|nuts|icd\d*"
    r"|cpt|atc|iso)(?:[_ .-]?code)?|.*[a-z]Code"
)
_COUNTS = re.compile(r"(?i)counts?|freq|frequency|n|cases")
_WEIGHTS = re.compile(r"(?i)(?:.*[_ .-])?(?:p?weights?|wgt|wt|fnlwgt|gewicht)")
_SIGNS = re.compile(
    r"[-+(]?\s*[$€£¥]?\s*[-+]?(?:\d{1,3}(?:[.,'\s]\d{3})+|\d+)(?:[.,]\d*)?\s*(?:[%$€£¥)]|[A-Z]{3})?"
)
_GROUPED = re.compile(r"\s*(?:0|[-+]?[1-9]\d{0,2}(?:\.\d{3})*)\s*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[-+]?[\d.]*,?\d+")
_TOTALS = re.compile(
    r"(?i)\s*(?:(?:grand|sub)?[ -]?totals?|sum|(?:gesamt)?summe|(?:ins)?gesamt|somme|suma)\s*:?\s*"
)
_SINCE_1970 = (9e8, 2.2e9)
"""Seconds since 1970 of the years 1998 to 2039."""


def names_rows(name: str) -> bool:
    """Return whether a column is called as if it named rows, persons or households."""
    return _ROWS.fullmatch(name) is not None


def names_lists(name: str) -> bool:
    """Return whether a column is called as if rows were the entries of orders or other lists."""
    return _LISTS.fullmatch(name) is not None


def names_codes(name: str) -> bool:
    """Return whether a column is called as if its numbers were codes, not amounts."""
    return _CODES.fullmatch(name) is not None


def names_counts(name: str) -> bool:
    """Return whether a column is called as if each row stood for so many."""
    return _COUNTS.fullmatch(name) is not None


def number_with_signs(texts: Iterable[str]) -> str | None:
    """Return the first of texts that are numbers but for signs such as $, % or a decimal comma.

    None if they are not. A few may stand for no number, such as ``-``.
    """
    some = _with_digits(texts)
    return min(some) if some and all(_SIGNS.fullmatch(text.strip()) for text in some) else None


def names_weights(name: str) -> bool:
    """Return whether a column is called as if it said how much each row counts."""
    return _WEIGHTS.fullmatch(name) is not None


def have_decimal_commas(texts: Iterable[str]) -> bool:
    """Return whether texts are numbers of which some have a comma before decimals.

    A few may stand for no number, such as ``-``.
    """
    some = _with_digits(texts)
    return any("," in text for text in some) and all(
        _DECIMAL_COMMA.fullmatch(text.strip()) for text in some
    )


def grouped_thousands(texts: Iterable[str]) -> str | None:
    """Return the first of numbers with a point if each point may separate thousands; else None.

    Three digits stand behind each, and none begins with 0: so 9.691 may be 9691.
    """
    some = _with_digits(texts)
    with_point = [text for text in some if "." in text]
    return min(with_point) if with_point and all(map(_GROUPED.fullmatch, some)) else None


def _with_digits(texts: Iterable[str]) -> list[str]:
    """Return the texts that have a digit, if nine in ten or more have one; else none."""
    all_texts = list(texts)
    some = [text for text in all_texts if any(map(str.isdigit, text))]
    return some if 10 * len(some) >= 9 * len(all_texts) else []


_BETWEEN = (";", "|", ",")
"""What surveys write between the answers of one cell."""


def several_answers(texts: Iterable[str]) -> str | None:
    """Return a short text that holds several answers, if the texts are lists of a few; else None.

    Half of the different texts or more have several parts, and parts come again: they are at most
    half as many as the texts.
    """
    different = set(texts)
    if have_decimal_commas(different):
        return None
    for sign in _BETWEEN:
        lists = sorted((text for text in different if sign in text), key=lambda x: (len(x), x))
        parts = {part.strip() for text in different for part in text.split(sign)}
        if 2 * len(lists) >= len(different) >= 2 * len(parts) > 2:
            return lists[0]
    return None


def names_total(texts: Iterable[str]) -> str | None:
    """Return a text that names a row of sums, such as ``Total``; None if there is none."""
    return next((text for text in texts if _TOTALS.fullmatch(text)), None)


def are_seconds(low: float, high: float) -> bool:
    """Return whether whole numbers of this range may be times, in seconds or less since 1970."""
    first, last = _SINCE_1970
    return any(first * unit <= low and high <= last * unit for unit in (1, 1e3, 1e6, 1e9))


def are_codes(numbers: Iterable[float]) -> bool:
    """Return whether a few numbers look like a list of codes: 0 or 1 and all that follow."""
    ordered = sorted(numbers)
    return ordered[0] in (0, 1) and ordered == [ordered[0] + i for i in range(len(ordered))]


_MARK_DIGITS = ({"7"}, {"8"}, {"9"})
_APART = 2.0
"""A number is apart from others by more than so many of their largest steps."""

_FAR = 10.0
"""A mark lies so many times as far from all others as these lie apart."""


def marks_missing(numbers: NDArray[np.float64], frequencies: NDArray[np.int64]) -> list[float]:
    """Return the numbers such as 9, 77, -8 or 999 that may stand for missing values, increasing.

    They are written with sevens, eights or nines alone, or are -1, and come more than once. They
    are negative where all others are not (but -1 may be the next one below 0), or lie beyond all
    others, at more than twice these' largest step.

    Parameters
    ----------
    numbers, frequencies
        Finite, all different, in any order, and how often each comes.
    """
    written = np.array(
        [x == -1 or set(f"{abs(x):.15g}") in _MARK_DIGITS for x in numbers.tolist()], bool
    )
    others = np.sort(numbers[~written])
    if len(others) < 2:
        return []
    far = _APART * float(np.diff(others).max())
    found = []
    highest = float(others[-1])
    for number in np.sort(numbers[written]).tolist():
        below = (
            number < others[0] - far or (number < -1 and others[0] >= 0) or others[0] > 0 > number
        )
        if below or number > highest + far:
            found.append(number)
        else:
            highest = max(highest, number)
    often = set(numbers[frequencies > 1].tolist())
    return [number for number in found if number in often]


def surely_missing(numbers: NDArray[np.float64], marks: Sequence[float]) -> list[float]:
    """Return those of the ``marks`` among numbers that no value can be meant by.

    They are below -1 where no other number is negative, or lie ten times as far from all others as
    these lie apart, so 999 among ages. Ends of long tails lie nearer, so do prices that end on
    nines, such as 999 above 299, and the largest amount that a form has room for, such as 99999
    above 41310.
    """
    others = np.setdiff1d(numbers, marks)
    if not len(others):
        return []
    low, high = float(others.min()), float(others.max())
    return [
        mark
        for mark in marks
        if max(low - mark, mark - high) > _FAR * (high - low) or (mark < -1 and low >= 0)
    ]


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


_CUTS = 20
_MOST_OF_A_NAME = 0.01
_MORE_THAN_CHANCE = 10.0
"""Times as many repetitions as numbers that lie as densely would have by chance."""


def repeat_like_names(numbers: NDArray[np.float64], frequencies: NDArray[np.int64]) -> bool:
    """Return whether whole numbers repeat as those of persons or things do, not as amounts.

    Amounts that lie as densely rarely hit the same number: of n in an interval of w whole numbers
    n (n - 1) / 2w pairs are equal by chance, however amounts lie if the interval is short. Numbers
    that people round to are left out; and no name is in a hundredth of the rows.

    Parameters
    ----------
    numbers, frequencies
        All different, in any order, and how often each comes.
    """
    odd = numbers % _ROUNDED != 0
    order = np.argsort(numbers[odd])
    values, counts = numbers[odd][order], frequencies[odd][order]
    if len(values) < 2 * _CUTS or frequencies.max() > _MOST_OF_A_NAME * frequencies.sum():
        return False
    pairs = float((counts * (counts - 1)).sum()) / 2
    ends = np.linspace(0, len(values), _CUTS + 1).astype(int)
    expected = 0.0
    for first, last in itertools.pairwise(ends.tolist()):
        rows = float(counts[first:last].sum())
        width = (values[last - 1] - values[first] + 1) * (1 - 1 / _ROUNDED)
        expected += rows * (rows - 1) / 2 / width
    return pairs > _MORE_THAN_CHANCE * max(expected, 1.0)
