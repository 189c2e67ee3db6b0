"""Conditions that are conjunctions of literals, as a workload has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.questions.boxes import Box
from dualquery.questions.columns import Named, Pieces
from dualquery.questions.syntax import And, Comparison, Condition, Flag, Literals, Not


def same_conjunctions(
    condition: Condition | None,
    boxes: Sequence[Box],
    named: Mapping[Literals, Named],
    pieces: Mapping[int, Pieces],
    domain: Domain,
) -> tuple[NDArray[np.int32], ...]:
    """Return conjunctions of literals that say the same as a condition; none if there are none.

    Parameters
    ----------
    condition
        The condition.
    boxes
        The same as boxes that exclude each other.
    named
        What each of its literals allows of which column.
    pieces
        Of these columns.
    domain
        The columns.

    Returns
    -------
    Literal codes, int32, increasing: of the condition as written, and of its only box.
    """
    written, only = _written(condition, named, pieces, domain), _of_box(boxes, pieces, domain)
    found = (sorted(set(codes)) for codes in (written, only) if codes)
    return tuple(np.array(codes, np.int32) for codes in found)


def _written(
    condition: Condition | None,
    named: Mapping[Literals, Named],
    pieces: Mapping[int, Pieces],
    domain: Domain,
) -> list[int] | None:
    """Return the codes of a conjunction of literals; None if the condition is no such thing."""
    match condition:
        case And(operands):
            parts = [_written(each, named, pieces, domain) for each in operands]
            return None if None in parts else [code for part in parts for code in part or ()]
        case Not(Flag() as flag):
            return [code ^ 1 for code in _written(flag, named, pieces, domain) or ()]
        case Flag() | Comparison(_, "=" | "!=", _):
            number, _, allowed = named[condition]
            negated = isinstance(condition, Comparison) and condition.relation == "!="
            if not isinstance(allowed, frozenset):
                return None
            every = frozenset(pieces[number].value.tolist())
            (value,) = every - allowed if negated else allowed
            return [_code(domain, number, value) ^ negated]
        case _:
            return None


def _of_box(boxes: Sequence[Box], pieces: Mapping[int, Pieces], domain: Domain) -> list[int] | None:
    """Return the codes of a condition of one box with one value, or all but one, a column."""
    if len(boxes) != 1:
        return None
    found = []
    for number, allowed in boxes[0].items():
        own = pieces[number]
        negated = allowed.bit_count() > 1
        one = own.every & ~allowed if negated else allowed
        value = int(own.value[one.bit_length() - 1])
        if one.bit_count() > 1 or np.count_nonzero(own.value == value) > 1:
            return None
        found.append(_code(domain, number, value) ^ negated)
    return found


def _code(domain: Domain, number: int, value: int) -> int:
    """Return the code of a positive literal: a column has a value."""
    first = int(domain.offsets[number])
    binary = domain.sizes[number] == 1
    return 2 * first + (value == 0) if binary else 2 * (first + value)
