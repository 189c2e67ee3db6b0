"""Questions as they are answered: values have become the labels of their buckets or categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dualquery.data.schema.columns import Binary, Column
from dualquery.data.schema.dates import Dates
from dualquery.questions.columns import Named, ends_of_range
from dualquery.questions.periods import end_of_period
from dualquery.questions.syntax import (
    And,
    Between,
    Comparison,
    Condition,
    Literals,
    Not,
    Or,
    Question,
)


def canonical(question: Question, named: Mapping[Literals, Named]) -> Question:
    """Return a question whose values are labels of the schema, and whose ranges say so.

    Parameters
    ----------
    question
        The question.
    named
        What each of its literals allows of which column.
    """
    condition, given = question.condition, question.given
    return replace(
        question,
        condition=None if condition is None else _canonical(condition, named),
        given=None if given is None else _canonical(given, named),
    )


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
                return Between(name, *_ends(column, value))
            bit = allowed if relation == "=" else frozenset(range(column.bits)) - allowed
            (value_bit,) = bit
            return Comparison(name, relation, column.labels[value_bit])
        case Comparison(name, relation, value):
            _, column, _ = named[condition]
            if isinstance(column, Dates):
                return Comparison(name, relation, end_of_period(column, value, relation))
            return condition
        case Between(name, low, high):
            _, column, _ = named[condition]
            if isinstance(column, Dates):
                return Between(
                    name, end_of_period(column, low, ">="), end_of_period(column, high, "<=")
                )
            return condition
        case _:
            return condition


def _ends(column: Column, value: str) -> tuple[str, str]:
    """Return the ends of a range that a value means."""
    if isinstance(column, Dates):
        return end_of_period(column, value, ">="), end_of_period(column, value, "<=")
    return ends_of_range(value)
