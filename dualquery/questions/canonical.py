"""Questions in canonical form, labels for values, and as conjunctions of a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.data.schema.columns import Binary, Column
from dualquery.data.schema.dates import Dates
from dualquery.questions.boxes import Box
from dualquery.questions.columns import Named, Pieces, end_of_period, ends_of_range
from dualquery.questions.syntax import (
    And,
    Between,
    Comparison,
    Condition,
    Flag,
    Literals,
    Not,
    Or,
    Question,
)


def canonical(question: Question, named: Mapping[Literals, Named]) -> Question:
    """Return a question whose values are labels of the schema.

    Parameters
    ----------
    question
        The question.
    named
        For each of its literals the column, and what it allows.
    """
    condition, given = (
        None if each is None else _canonical(each, named)
        for each in (question.condition, question.given)
    )
    return replace(question, condition=condition, given=given)


def _canonical(condition: Condition, named: Mapping[Literals, Named]) -> Condition:
    match condition:
        case Not(operand):
            return Not(_canonical(operand, named))
        case And(operands):
            return And(tuple(_canonical(each, named) for each in operands))
        case Or(operands):
            return Or(tuple(_canonical(each, named) for each in operands))
        case Comparison(name, "=" | "!=" as relation, value):
            _, column, allowed = named[condition]
            if isinstance(column, Binary):
                return condition
            if isinstance(allowed, tuple):
                dates = isinstance(column, Dates)
                ends = (value, value) if dates else ends_of_range(value)
                return Between(name, *_ends(column, *ends))
            bit = allowed if relation == "=" else frozenset(range(column.bits)) - allowed
            (value_bit,) = bit
            return Comparison(name, relation, column.labels[value_bit])
        case Comparison(name, relation, value):
            column = named[condition][1]
            if isinstance(column, Dates):
                value = end_of_period(column, value, relation)
            return Comparison(name, relation, value)
        case Between(name, low, high):
            return Between(name, *_ends(named[condition][1], low, high))
        case _:
            return condition


def _ends(column: Column, low: str, high: str) -> tuple[str, str]:
    if not isinstance(column, Dates):
        return low, high
    return end_of_period(column, low, ">="), end_of_period(column, high, "<=")


def same_conjunctions(
    condition: Condition | None,
    boxes: Sequence[Box],
    named: Mapping[Literals, Named],
    pieces: Mapping[int, Pieces],
    domain: Domain,
) -> tuple[NDArray[np.int32], ...]:
    """Return conjunctions that are equivalent to a condition; none if it is no conjunction.

    Parameters
    ----------
    condition, boxes
        The condition, also as boxes that exclude each other.
    named
        For each of its literals the column, and what it allows.
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
