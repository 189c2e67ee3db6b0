"""What a question asks of a schema: linear forms, or ratios of them, or a quantile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Binary, Column
from dualquery.questions.boxes import Box, boxes_of
from dualquery.questions.columns import (
    Allowed,
    allowed_by,
    cuts_told,
    ends_of_range,
    pieces_of,
    require_numbers,
)
from dualquery.questions.forms import Bounds
from dualquery.questions.syntax import (
    COUNT,
    QUANTILE,
    SHARE,
    SUM,
    And,
    Between,
    Comparison,
    Condition,
    Flag,
    Literals,
    Not,
    Or,
    Question,
    print_question,
)
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema


@dataclass(frozen=True, eq=False)
class Asked:
    """A question over a schema.

    Parameters
    ----------
    question
        In canonical form: values have become their buckets or categories.
    text
        The same as text.
    numerator
        What is averaged over the rows.
    denominator
        What the average is divided by; None for 1.
    of_rows
        Whether the answer is a number of rows, or a sum over them: n times the average.
    range
        Least and largest answer that there can be, before it is multiplied by n.
    boxes
        Of a share or count: the condition, joined with what is given.
    remark
        What a reader must know of the buckets that are cut; may be empty.
    """

    question: Question
    text: str
    numerator: Bounds
    denominator: Bounds | None
    of_rows: bool
    range: tuple[float, float]
    boxes: tuple[Box, ...]
    remark: str


@dataclass(frozen=True, eq=False)
class AskedQuantile:
    """A quantile over a schema.

    Parameters
    ----------
    question, text, remark
        As of `Asked`.
    low, high
        float64, shape ``(s,)``: least and largest number of each step, increasing.
    whole
        Whether the numbers are whole.
    below
        For each step the share of the rows (with a number, and with what is given) at most there.
    denominator
        The share of the rows that have a number, and what is given.
    """

    question: Question
    text: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    whole: bool
    below: tuple[Bounds, ...]
    denominator: Bounds
    remark: str


AnyAsked: TypeAlias = Asked | AskedQuantile


def ask(question: Question, schema: Schema) -> AnyAsked:
    """Return what a question asks of the columns of a schema.

    Raises
    ------
    BadInputError
        If a column or value is unknown, a column has no numbers, or the question is too large.
    """
    return _Compiler(question, schema).asked()


class _Compiler:
    """A question, and the pieces of the columns that it names."""

    def __init__(self, question: Question, schema: Schema) -> None:
        self.domain = schema.domain
        self.allowed: dict[Literals, tuple[int, Column, Allowed]] = {}
        for literal in (*_literals(question.condition), *_literals(question.given)):
            number, column = _column(schema, literal.column)
            self.allowed[literal] = number, column, allowed_by(literal, column)
        columns = {number: column for number, column, _ in self.allowed.values()}
        self.target = -1
        if question.column:
            self.target, target = _column(schema, question.column)
            require_numbers(target, question.measure)
            columns[self.target] = target
        named: dict[int, list[Allowed]] = {number: [] for number in columns}
        for number, _, allowed in self.allowed.values():
            named[number].append(allowed)
        self.columns = columns
        self.pieces = {c: pieces_of(column, named[c]) for c, column in columns.items()}
        self.whole = {c: pieces.every for c, pieces in self.pieces.items()}
        told = (cuts_told(column, named[c]) for c, column in columns.items())
        self.remark = "; ".join(filter(None, told))
        self.question = self._canonical_question(question)
        self.text = print_question(self.question)
        self.asks = question

    def asked(self) -> AnyAsked:
        asked = self.asks
        if asked.measure == COUNT and asked.given is not None:
            raise BadInputError(
                "a count has no 'given': write count(... & ...) for the rows with both, or leave "
                "count out for the share among the given rows"
            )
        if asked.measure in (SHARE, COUNT):
            both = self._boxes(asked.condition, asked.given)
            given = None if asked.given is None else self._indicator(self._boxes(asked.given))
            return self._asked(self._indicator(both), given, (0.0, 1.0), boxes=both)
        if asked.measure == QUANTILE:
            return self._quantile()
        boxes = self._boxes(asked.given)
        pieces = self.pieces[self.target]
        worth = self.target, (pieces.low, pieces.mean, pieces.high)
        numerator = Bounds.of_boxes(boxes, self.pieces, self.domain, worth)
        least, most = float(np.nanmin(pieces.low)), float(np.nanmax(pieces.high))
        remark = "numbers taken to lie evenly in their buckets"
        if numerator.exact:
            remark = ""
        if asked.measure == SUM:
            rows = (min(least, 0.0), max(most, 0.0))
            return self._asked(numerator, None, rows, of_rows=True, remark=remark)
        everywhere = asked.given is None and pieces.numbered == pieces.every
        known = None if everywhere else self._indicator(self._with_number(boxes))
        return self._asked(numerator, known, (least, most), remark=remark)

    def _asked(
        self,
        numerator: Bounds,
        denominator: Bounds | None,
        range: tuple[float, float],
        *,
        of_rows: bool | None = None,
        boxes: list[Box] | None = None,
        remark: str = "",
    ) -> Asked:
        return Asked(
            question=self.question,
            text=self.text,
            numerator=numerator,
            denominator=denominator,
            of_rows=self.asks.measure == COUNT if of_rows is None else of_rows,
            range=range,
            boxes=tuple(boxes or ()),
            remark="; ".join(filter(None, (self.remark, remark))),
        )

    def _quantile(self) -> AskedQuantile:
        pieces = self.pieces[self.target]
        order = np.argsort(pieces.mean, kind="stable")[: pieces.numbered.bit_count()]
        boxes = self._with_number(self._boxes(self.asks.given))
        below, so_far = [], 0
        for piece in order.tolist():
            so_far |= 1 << piece
            below.append(self._indicator(_within(boxes, self.target, so_far)))
        column = self.columns[self.target]
        numbers = (pieces.low[order], pieces.high[order])
        return AskedQuantile(
            question=self.question,
            text=self.text,
            low=numbers[0],
            high=numbers[1],
            whole=bool(getattr(column, "integer", False)),
            below=tuple(below),
            denominator=self._indicator(boxes),
            remark=self.remark,
        )

    def _boxes(self, *conditions: Condition | None) -> list[Box]:
        present = tuple(each for each in conditions if each is not None)
        if not present:
            return [{}]
        pieces = {
            literal: (number, self.pieces[number].of(allowed))
            for literal, (number, _, allowed) in self.allowed.items()
        }
        joined = present[0] if len(present) == 1 else And(present)
        return boxes_of(joined, pieces, self.whole)

    def _with_number(self, boxes: list[Box]) -> list[Box]:
        """Return the parts of boxes in which the target is a number."""
        return _within(boxes, self.target, self.pieces[self.target].numbered)

    def _indicator(self, boxes: list[Box]) -> Bounds:
        return Bounds.of_boxes(boxes, self.pieces, self.domain)

    def _canonical_question(self, question: Question) -> Question:
        return replace(
            question,
            condition=self._canonical(question.condition),
            given=self._canonical(question.given),
        )

    def _canonical(self, condition: Condition | None) -> Condition | None:
        """Return a condition whose values are labels of the schema, and whose ranges say so."""
        match condition:
            case None:
                return None
            case Not(operand):
                return Not(self._there(operand))
            case And(operands):
                return And(tuple(map(self._there, operands)))
            case Or(operands):
                return Or(tuple(map(self._there, operands)))
            case Comparison(name, "=" | "!=" as relation, value):
                _, column, allowed = self.allowed[condition]
                if isinstance(column, Binary):
                    return Flag(name) if allowed == frozenset((1,)) else Not(Flag(name))
                if isinstance(allowed, tuple):
                    return Between(name, *ends_of_range(value))
                bit = allowed if relation == "=" else frozenset(range(column.bits)) - allowed
                (value_bit,) = bit
                return Comparison(name, relation, column.labels[value_bit])
            case _:
                return condition

    def _there(self, condition: Condition) -> Condition:
        found = self._canonical(condition)
        assert found is not None
        return found


def _within(boxes: list[Box], column: int, pieces: int) -> list[Box]:
    """Return the parts of boxes in which a column has one of some pieces."""
    found: list[Box] = []
    for box in boxes:
        allowed = box.get(column, pieces) & pieces
        if allowed:
            found.append({**box, column: allowed})
    return found


def _column(schema: Schema, name: str) -> tuple[int, Column]:
    try:
        return schema.column(name)
    except BadInputError as error:
        message = str(error).removeprefix("query: ")
        if name.isidentifier():
            raise BadInputError(message) from None
        raise BadInputError(
            f"{message}; a name or value that holds signs or words of the language, such as & ( or "
            "or, stands in double quotation marks"
        ) from None


def _literals(condition: Condition | None) -> Iterator[Literals]:
    match condition:
        case None:
            return
        case Not(operand):
            yield from _literals(operand)
        case And(operands) | Or(operands):
            for each in operands:
                yield from _literals(each)
        case _:
            yield condition
