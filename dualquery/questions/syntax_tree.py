"""Questions as trees, and as text that `dualquery.questions.parser` reads back.

A question is a measure of the rows that satisfy a condition, among those that satisfy another. A
tree knows no schema: names and values are texts as the user wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

KEYWORDS = ("and", "or", "not", "in", "between", "given")
"""Words with a meaning of their own; a column or value that holds one stands in quotation marks."""

SHARE, COUNT, MEAN, SUM, QUANTILE = "share", "count", "mean", "sum", "quantile"

Relation: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Flag:
    """A binary column is 1: ``flag``."""

    column: str


@dataclass(frozen=True)
class Comparison:
    """A column compared with one value: ``income=>50K``, ``age>=40``."""

    column: str
    relation: Relation
    value: str


@dataclass(frozen=True)
class Among:
    """A column has one of some values: ``edu in (9, 10)``."""

    column: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Between:
    """A number lies in a range, both ends inside: ``age between 18 and 64``."""

    column: str
    low: str
    high: str


@dataclass(frozen=True)
class Not:
    """The condition does not hold."""

    operand: Condition


@dataclass(frozen=True)
class And:
    """All of two or more conditions hold."""

    operands: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """At least one of two or more conditions holds."""

    operands: tuple[Condition, ...]


Literals: TypeAlias = Flag | Comparison | Among | Between
Condition: TypeAlias = Literals | Not | And | Or


def compared(literal: Literals) -> Iterator[tuple[str, str]]:
    """Yield how a literal compares its column, and with what: nothing of a flag."""
    match literal:
        case Among(_, texts):
            yield from (("=", text) for text in texts)
        case Between(_, low, high):
            yield from ((">=", low), ("<=", high))
        case Comparison(_, relation, text):
            yield relation, text


@dataclass(frozen=True)
class Question:
    """A share or count of rows, or the mean, sum or quantile of a column's numbers."""

    measure: str
    condition: Condition | None = None  # of a share or count; None for all rows
    column: str = ""  # of a mean, sum or quantile
    level: float = 0.5  # of a quantile, in (0, 1); 0.5 is the median
    given: Condition | None = None  # the rows that the question is about; None for all


def print_question(question: Question) -> str:
    """Return a question as text; reading it gives the same tree."""
    name = quoted(question.column)
    if question.measure == SHARE:
        asked = "share(*)" if question.condition is None else print_condition(question.condition)
    elif question.measure == COUNT:
        rows = "*" if question.condition is None else print_condition(question.condition)
        asked = f"count({rows})"
    elif question.measure != QUANTILE:
        asked = f"{question.measure}({name})"
    elif question.level == 0.5:
        asked = f"median({name})"
    else:
        asked = f"quantile({name}, {question.level!r})"
    given = "" if question.given is None else f" given {print_condition(question.given)}"
    return asked + given


def print_condition(condition: Condition) -> str:
    """Return a condition as text: parentheses only where the precedence needs them."""
    match condition:
        case Or(operands):
            return " or ".join(_operand(each, (Or,)) for each in operands)
        case And(operands):
            return " & ".join(_operand(each, (Or, And)) for each in operands)
        case Not(operand):
            return f"not {_operand(operand, (Or, And))}"
        case Flag(column):
            return quoted(column)
        case Comparison(column, relation, value):
            return f"{quoted(column)}{relation}{quoted(value, of_value=True)}"
        case Among(column, values):
            return f"{quoted(column)} in ({', '.join(quoted(each) for each in values)})"
        case Between(column, low, high):
            return f"{quoted(column)} between {quoted(low)} and {quoted(high)}"


def literals_of(condition: Condition | None) -> Iterator[Literals]:
    """Yield the literals of a condition from left to right; None has none."""
    match condition:
        case None:
            return
        case Not(operand):
            yield from literals_of(operand)
        case And(operands) | Or(operands):
            for each in operands:
                yield from literals_of(each)
        case _:
            yield condition


def quoted(text: str, *, of_value: bool = False) -> str:
    """Return a name or value, in quotation marks where the grammar would read it otherwise.

    A value behind a comparison (``of_value``) may hold commas and, behind ``=``, signs of
    comparisons.
    """
    special = _IN_VALUES if of_value else _IN_NAMES
    if special.search(text) or _KEYWORD.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text


_IN_VALUES = re.compile(r'[&"()]|^\s|\s$|^$|^=')
_IN_NAMES = re.compile(r'[&"()=!<>#,*]|^\s|\s$|^$')
_KEYWORD = re.compile(rf"(?:^|\s)(?:{'|'.join(KEYWORDS)})(?:$|[\s!])", re.IGNORECASE)


def _operand(condition: Condition, weaker: tuple[type, ...]) -> str:
    text = print_condition(condition)
    return f"({text})" if isinstance(condition, weaker) else text
