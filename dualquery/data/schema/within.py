"""How numbers lie within a bucket: said by the public schema, and drawn from for records.

A bucket's rule is ``"uniform"``, ``"sloped"`` (an older word for it), ``"log-uniform"`` (the
logarithms are uniform), a number (the only one that is used), or a list of numbers, each as likely
as often as it is listed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.checks import check_choice
from dualquery.runtime.errors import BadInputError

Rule: TypeAlias = str | float | tuple[float, ...]
"""Of one bucket."""

Within: TypeAlias = Rule | tuple[Rule, ...]


class Sample(tuple[float, ...]):
    """Numbers that tell how a bucket's values lie, as a list does; others are possible, too."""

    __slots__ = ()


SPREADS = ("uniform", "sloped", "log-uniform")

Bounds: TypeAlias = Sequence[tuple[float, float]]
"""Lowest and highest value of each bucket; whole numbers if all values are."""


def without_lists(within: Any) -> Any:
    """Return what a schema file says with tuples for its lists: a column can be hashed."""
    if isinstance(within, Sample) or not isinstance(within, list | tuple):
        return within
    return tuple(map(without_lists, within))


def rules_of(where: str, within: object, bounds: Bounds, integer: bool) -> tuple[Rule, ...]:
    """Return the rule of each bucket of a column."""
    if isinstance(within, str):
        check_choice(where, "within", within, SPREADS)
        within = (within,) * len(bounds)
    if not isinstance(within, list | tuple) or len(within) != len(bounds):
        raise BadInputError(
            f"{where}: within is {within!r}; it is {' or '.join(SPREADS)}, or a list with a rule "
            f"for each of the {len(bounds)} buckets, which edges cut"
        )
    checked = zip(within, bounds, strict=True)
    return tuple(_checked(where, rule, ends, integer) for rule, ends in checked)


def _checked(column: str, rule: object, ends: tuple[float, float], integer: bool) -> Rule:
    low, high = ends
    where = f"{column}, within, bucket from {low:g} to {high:g}"
    if isinstance(rule, str):
        if rule not in SPREADS:
            raise BadInputError(f"{where}: {rule!r} is none of {', '.join(SPREADS)}")
        if rule == "log-uniform" and low <= 0:
            raise BadInputError(f"{where}: log-uniform is for buckets above 0; use uniform")
        return rule
    values: Sequence[Any] = rule if isinstance(rule, list | tuple) else [rule]
    if not values:
        raise BadInputError(f"{where}: the list of values is empty")
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= value <= high or (integer and not float(value).is_integer()):
            kind = "whole number" if integer else "number"
            raise BadInputError(f"{where}: {value!r} is no {kind} in the bucket")
    if isinstance(rule, Sample):
        return rule
    return tuple(map(float, values)) if isinstance(rule, list | tuple) else float(values[0])


def drawn(
    rule: Rule,
    ends: tuple[float, float],
    places: int | None,
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Return ``count`` values of a bucket in random order, with some decimal ``places``.

    One comes from each of ``count`` equal parts of the rule's distribution: their mean and
    quantiles are nearly the rule's.
    """
    levels = (generator.permutation(count) + generator.random(count)) / max(count, 1)
    if isinstance(rule, float):
        return np.full(count, rule)
    if isinstance(rule, tuple):
        return np.array(rule)[(levels * len(rule)).astype(np.int64)]
    low, top = ends[0], _top(ends, places)
    logarithms = rule == "log-uniform"
    if logarithms:
        low, top = math.log(low), math.log(top)
    # Each end by its part: the distance of two huge ones may be infinite.
    values = (1.0 - levels) * low + levels * top
    # Cut off, not rounded: else the first number gets half a part, the last one one and a half.
    return shortened((np.exp(values) if logarithms else values) - _step(places) / 2, ends, places)


def kept(values: tuple[float, ...], avoided: Sequence[float]) -> tuple[float, ...]:
    """Return those of a bucket's listed numbers that are not avoided; all if all are."""
    return tuple(value for value in values if value not in avoided) or values


def another(
    value: float, ends: tuple[float, float], integer: bool, avoided: Sequence[float]
) -> float:
    """Return a value of a bucket beside one that is avoided; the value itself if all are."""
    steps = len(avoided) + 1
    step = 1.0 if integer else (ends[1] / 2 - ends[0] / 2) / (steps + 1)
    found = (value + sign * step * number for number in range(1, steps + 1) for sign in (-1, 1))
    inside = (each for each in found if ends[0] <= each <= ends[1] and each not in avoided)
    return next(inside, value)


def shortened(
    values: NDArray[np.float64], ends: tuple[float, float], decimals: int | None = None
) -> NDArray[np.float64]:
    """Return values of a bucket rounded to some decimals, where it has any such number.

    None is for as many as cut it into a thousand parts or more.
    """
    length = ends[1] / 2 - ends[0] / 2
    if not length > 1e-290:  # too short for decimals
        return np.clip(values, *ends) + 0.0
    if decimals is None:
        decimals = 3 - math.floor(math.log10(length))
    found = np.round(values, decimals)
    # The end of a bucket is the next one's first value.
    found = np.where(found > ends[1], np.round(found - 10.0**-decimals, decimals), found)
    found = np.where(found < ends[0], np.round(found + 10.0**-decimals, decimals), found)
    inside: NDArray[np.float64] = np.clip(np.where(np.isfinite(found), found, values), *ends)
    return inside + 0.0  # -0.03 is rounded to -0.0


def mean_of(rule: Rule, ends: tuple[float, float], places: int | None) -> float:
    """Return the mean of a bucket's values, as they are `drawn`."""
    if (values := listed(rule)) is not None:
        return math.fsum(values) / len(values)
    low, top = ends[0], _top(ends, places)
    if low == top:
        return low
    middle = low / 2 + top / 2
    if rule == "log-uniform":
        middle = (top - low) / (math.log(top) - math.log(low))
    # What is drawn is cut off: half a step lower.
    return max(low, middle - _step(places) / 2)


def part_between(
    rule: Rule, ends: tuple[float, float], places: int | None, low: float, high: float
) -> tuple[float, float]:
    """Return which part of a bucket's values is in ``low <= x < high``, and the mean of these.

    Both ends lie in the bucket, or ``high`` one beyond its last whole number (``places`` 0); they
    are whole where values are. Where no value is, the mean is the middle.
    """
    last, top = (high - 1.0, ends[1] + 1.0) if places == 0 else (high, ends[1])
    middle = mean_of("uniform", (low, last), places)
    values = listed(rule)
    if values is not None:
        inside = [value for value in values if low <= value < high or value == high == top]
        mean = math.fsum(inside) / len(inside) if inside else middle
        return len(inside) / len(values), mean
    if rule != "log-uniform":
        return (high - low) / (top - ends[0]), middle
    part = math.log(high / low) / math.log(top / ends[0])
    return part, mean_of(rule, (low, last), places)


def quantile_between(rule: Rule, integer: bool, low: float, high: float, level: float) -> float:
    """Return the number below which a share, in [0, 1], of a part of a bucket's values lies.

    The part is ``low <= x <= high``. Of whole and of listed numbers it is the first at or below
    which that share lies.
    """
    values = listed(rule)
    if values is not None:
        inside = sorted(value for value in values if low <= value <= high)
        if inside:
            return inside[min(max(math.ceil(level * len(inside)) - 1, 0), len(inside) - 1)]
    top = high + 1.0 if integer else high
    found = low + level * (top - low)
    if rule == "log-uniform":
        found = low * (top / low) ** level
    return min(math.floor(found), high) if integer else min(found, high)


def listed(rule: Rule) -> tuple[float, ...] | None:
    """Return the values of a bucket as a list; None if they are spread."""
    if isinstance(rule, str):
        return None
    return rule if isinstance(rule, tuple) else (rule,)


def _top(ends: tuple[float, float], places: int | None) -> float:
    """Return where a bucket ends, whose last number is as long as all others."""
    if places is None or round(ends[1], places) != ends[1]:
        return ends[1]
    return ends[1] + _step(places)


def _step(places: int | None) -> float:
    """Return the distance of numbers with some decimal places; 0 if that is not said."""
    return 0.0 if places is None else 10.0**-places
