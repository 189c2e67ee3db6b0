"""What a question asks of a schema: linear forms, or ratios of them, or a quantile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Binary, Column
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.numbers import NUMBER_RANGE
from dualquery.data.schema.numeric import Numeric, quantile_of
from dualquery.questions import syntax_tree as syntax
from dualquery.questions.allowed_values import (
    Allowed,
    allowed_by,
    end_of_period,
    pieces_of,
    require_amounts,
)
from dualquery.questions.disjoint_boxes import MOST_LITERALS, Box, boxes_of
from dualquery.questions.linear_form import Bounds
from dualquery.questions.remarks import (
    OF_INTERVAL,
    on_clipped_numbers,
    on_cuts,
    on_unlisted,
    on_what_lies_beyond,
    opened,
    why_not,
)
from dualquery.questions.syntax_tree import COUNT, QUANTILE, SHARE, SUM, And, Condition, Question
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema


@dataclass(frozen=True, eq=False)
class CompiledQuestion:
    """A question over a schema."""

    question: Question  # in canonical form: values have become their buckets or categories
    text: str  # the same as text
    numerator: Bounds  # what is averaged over the rows
    denominator: Bounds | None  # what the average is divided by; None for 1
    of_rows: bool  # whether the answer is a number of rows, or a sum over them: n times the average
    range: tuple[float, float]  # of numerator over denominator
    nearest: float  # what is added to that: of a mean the number nearest 0, lest digits are lost
    # Of a share or count without ``given``: literal codes, int32, increasing, of equivalent
    # conjunctions. The first is what was written, if that is one.
    conjunctions: tuple[NDArray[np.int32], ...]
    remark: str  # what a reader must know of buckets that are cut; may be empty
    of_interval: str  # and of the interval

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The forms whose means determine the answer and its limits."""
        return (self.numerator, *(() if self.denominator is None else (self.denominator,)))


@dataclass(frozen=True, eq=False)
class CompiledQuantile:
    """A quantile over a schema; `CompiledQuestion` has the rest of its fields."""

    question: Question
    text: str
    low: NDArray[np.float64]  # (s,): least and largest number of each step, increasing
    high: NDArray[np.float64]
    column: Column
    value: NDArray[np.int64]  # (s,): the value of the column that each step is a part of
    below: tuple[Bounds, ...]  # share of the rows (with a number, and the given) up to each step
    denominator: Bounds  # share of the rows that have a number, and what is given
    remark: str
    of_interval: str

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The forms whose means determine the answer and its limits."""
        return (*self.below, self.denominator)

    def number(self, step: int, part: float) -> float:
        """Return the number below which a part, in [0, 1], of the numbers of a step lies."""
        low, high = float(self.low[step]), float(self.high[step])
        if not isinstance(self.column, Numeric):
            return low + part * (high - low)
        if self.column.decimals is not None and high < self.column.edges[-1]:
            high = math.nextafter(high, low)  # which the next step has
        rule = self.column.rules[int(self.value[step])]
        return quantile_of(rule, self.column.places, low, high, part)


Compiled: TypeAlias = CompiledQuestion | CompiledQuantile


def ask(question: Question, schema: Schema) -> Compiled:
    """Return what a question asks of the columns of a schema.

    `BadInputError` if a column or value is unknown, a column has no numbers, or it is too large.
    """
    return _Compiler(question, schema).asked()


class _Compiler:
    """A question, and the pieces of the columns that it names."""

    def __init__(self, question: Question, schema: Schema) -> None:
        self.domain = schema.domain
        literals = [*syntax.literals_of(question.condition), *syntax.literals_of(question.given)]
        if len(literals) > MOST_LITERALS:
            raise BadInputError(
                f"a question of {len(literals)} conditions; at most {MOST_LITERALS} are possible, "
                "a list of values behind 'in' counting as one"
            )
        self.allowed: dict[syntax.Literals, tuple[int, Column, Allowed]] = {}
        for literal in literals:
            number, column = _column(schema, literal.column)
            missing = schema.missing_in(column)
            try:
                self.allowed[literal] = number, column, allowed_by(literal, column)
            except BadInputError as error:
                why = why_not(literal, column, missing, refused=True)
                raise BadInputError(why or str(error)) from None
            if why := why_not(literal, column, missing, refused=False):
                raise BadInputError(why)
        columns = {number: column for number, column, _ in self.allowed.values()}
        self.target = -1
        if question.column:
            self.target, target = _column(schema, question.column)
            quantile = question.measure == QUANTILE
            require_amounts(target, "median or quantile" if quantile else question.measure)
            columns[self.target] = target
        named: dict[int, list[Allowed]] = {number: [] for number in columns}
        for number, _, allowed in self.allowed.values():
            named[number].append(allowed)
        self.columns = columns
        self.pieces = {
            c: opened(pieces_of(column, named[c]), column, named[c])
            for c, column in columns.items()
        }
        self.whole = {c: pieces.every for c, pieces in self.pieces.items()}
        told = [
            remark(column, named[c])
            for remark in (on_cuts, on_what_lies_beyond)
            for c, column in columns.items()
        ]
        self.of_interval = OF_INTERVAL if any(told) else ""
        if question.column:
            told.append(on_clipped_numbers(columns[self.target]))
        ranges = (a for a in literals if any(how[0] in "<>" for how, _ in syntax.compared(a)))
        numbers = {question.column, *(each.column for each in ranges)}
        told += [on_unlisted(column) for column in columns.values() if column.name in numbers]
        self.remark = "; ".join(filter(None, told))
        self.question = replace(
            question,
            condition=self._canonical(question.condition),
            given=self._canonical(question.given),
        )
        self.text = syntax.print_question(self.question)
        if self._boxes(question.given) == [{}]:  # of all rows, like a question without it
            question, self.question = (replace(x, given=None) for x in (question, self.question))
        self.asks = question

    def asked(self) -> Compiled:
        asked = self.asks
        if asked.measure == COUNT and asked.given is not None:
            raise BadInputError(
                "a count has no 'given': write count(... & ...) for the rows with both, or leave "
                "count out for the share among the given rows"
            )
        if asked.measure in (SHARE, COUNT):
            both = self._boxes(asked.condition, asked.given)
            if asked.given is None:
                same = (self._written(asked.condition), self._of_box(both))
                found = tuple(np.array(sorted({*each}), np.int32) for each in same if each)
                return self._asked(self._indicator(both), None, (0.0, 1.0), conjunctions=found)
            given = self._indicator(self._boxes(asked.given))
            return self._asked(self._indicator(both), given, (0.0, 1.0))
        if asked.measure == QUANTILE:
            return self._quantile()
        boxes = self._boxes(asked.given)
        pieces = self.pieces[self.target]
        least, most = float(np.nanmin(pieces.low)), float(np.nanmax(pieces.high))
        nearest = min(max(least, 0.0), most) if asked.measure == syntax.MEAN else 0.0
        least, most = least - nearest, most - nearest
        worth = self.target, (pieces.low - nearest, pieces.mean - nearest, pieces.high - nearest)
        numerator = Bounds.of_boxes(boxes, self.pieces, self.domain, worth)
        remark = "" if numerator.exact else "numbers taken to lie in buckets as the schema says"
        if asked.measure == SUM:
            return self._asked(numerator, None, (min(least, 0.0), max(most, 0.0)), remark=remark)
        everywhere = asked.given is None and pieces.numbered == pieces.every
        known = None if everywhere else self._indicator(self._with_number(boxes))
        return self._asked(numerator, known, (least, most), nearest, remark=remark)

    def _asked(
        self,
        numerator: Bounds,
        denominator: Bounds | None,
        range: tuple[float, float],
        nearest: float = 0.0,
        *,
        conjunctions: tuple[NDArray[np.int32], ...] = (),
        remark: str = "",
    ) -> CompiledQuestion:
        return CompiledQuestion(
            question=self.question,
            text=self.text,
            numerator=numerator,
            denominator=denominator,
            of_rows=self.asks.measure in (COUNT, SUM),
            range=range,
            nearest=nearest,
            conjunctions=conjunctions,
            remark="; ".join(filter(None, (self.remark, remark))),
            of_interval=self.of_interval,
        )

    def _quantile(self) -> CompiledQuantile:
        pieces = self.pieces[self.target]
        order = np.argsort(pieces.mean, kind="stable")[: pieces.numbered.bit_count()]
        low, high = pieces.low[order], pieces.high[order]
        if (high[:-1] > low[1:]).any():
            raise BadInputError(f"column {self.asks.column!r}: its merged categories overlap")
        boxes = self._with_number(self._boxes(self.asks.given))
        below, so_far = [], 0
        for piece in order.tolist():
            so_far |= 1 << piece
            below.append(self._indicator(_within(boxes, self.target, so_far)))
        return CompiledQuantile(
            question=self.question,
            text=self.text,
            low=low,
            high=high,
            column=self.columns[self.target],
            value=pieces.value[order],
            below=tuple(below),
            denominator=self._indicator(boxes),
            remark=self.remark,
            of_interval=self.of_interval,
        )

    def _canonical(self, condition: Any) -> Any:
        """Return a condition, or None, whose values are labels of the schema."""
        match condition:
            case syntax.Not(operand):
                return syntax.Not(self._canonical(operand))
            case And(operands) | syntax.Or(operands):
                return type(condition)(tuple(map(self._canonical, operands)))
            case None | syntax.Flag():
                return condition
        _, column, allowed = self.allowed[condition]
        match condition:
            case syntax.Comparison(name, "=" | "!=", value) if isinstance(allowed, tuple):
                found = None if isinstance(column, Dates) else NUMBER_RANGE.fullmatch(value)
                low, high = (value, value) if found is None else (found[1], found[2])
                return self._canonical_range(name, column, low, high)
            case syntax.Comparison(name, "=" | "!=" as relation, value):
                return syntax.Comparison(name, relation, _label(column, value))
            case syntax.Comparison(name, relation, value) if isinstance(column, Dates):
                return syntax.Comparison(name, relation, end_of_period(column, value, relation))
            case syntax.Among(name, values):
                return syntax.Among(name, tuple(_label(column, value) for value in values))
            case syntax.Between(name, low, high):
                return self._canonical_range(name, column, low, high)
        return condition

    @staticmethod
    def _canonical_range(name: str, column: Column, low: str, high: str) -> syntax.Between:
        if isinstance(column, Dates):
            low, high = end_of_period(column, low, ">="), end_of_period(column, high, "<=")
        return syntax.Between(name, low, high)

    def _written(self, condition: Condition | None) -> list[int] | None:
        """Return the codes of a conjunction of literals; None if the condition is no such thing."""
        match condition:
            case And(operands):
                parts = [self._written(each) for each in operands]
                return None if None in parts else [code for part in parts for code in part or ()]
            case syntax.Not(syntax.Flag() as flag):
                return [code ^ 1 for code in self._written(flag) or ()]
            case syntax.Flag() | syntax.Comparison(_, "=" | "!=", _):
                number, _, allowed = self.allowed[condition]
                negated = isinstance(condition, syntax.Comparison) and condition.relation == "!="
                if not isinstance(allowed, frozenset):
                    return None
                every = frozenset(self.pieces[number].value.tolist())
                (value,) = every - allowed if negated else allowed
                return [self._code(number, value) ^ negated]
            case _:
                return None

    def _of_box(self, boxes: Sequence[Box]) -> list[int] | None:
        """Return the codes of a condition of one box with one value, or all but one, a column."""
        if len(boxes) != 1:
            return None
        found = []
        for number, allowed in boxes[0].items():
            own = self.pieces[number]
            negated = allowed.bit_count() > 1
            one = own.every & ~allowed if negated else allowed
            value = int(own.value[one.bit_length() - 1])
            if one.bit_count() > 1 or np.count_nonzero(own.value == value) > 1:
                return None
            found.append(self._code(number, value) ^ negated)
        return found

    def _code(self, number: int, value: int) -> int:
        """Return the code of a positive literal: a column has a value."""
        first = int(self.domain.offsets[number])
        binary = self.domain.sizes[number] == 1
        return 2 * first + (value == 0) if binary else 2 * (first + value)

    def _boxes(self, *conditions: Condition | None) -> list[Box]:
        present = tuple(each for each in conditions if each is not None)
        if not present:
            return [{}]
        pieces = {
            literal: (number, self.pieces[number].of(allowed))
            for literal, (number, _, allowed) in self.allowed.items()
        }
        cut = frozenset(x for x, each in self.allowed.items() if min(self.pieces[each[0]].part) < 1)
        return boxes_of(present[0] if len(present) == 1 else And(present), pieces, self.whole, cut)

    def _with_number(self, boxes: list[Box]) -> list[Box]:
        return _within(boxes, self.target, self.pieces[self.target].numbered)

    def _indicator(self, boxes: list[Box]) -> Bounds:
        return Bounds.of_boxes(boxes, self.pieces, self.domain)


def _within(boxes: list[Box], column: int, pieces: int) -> list[Box]:
    """Return the parts of boxes in which a column has one of some pieces."""
    allowed = [(box, box.get(column, pieces) & pieces) for box in boxes]
    return [{**box, column: there} for box, there in allowed if there]


def _label(column: Column, value: str) -> str:
    """Return the label of the bucket or category that a value stands for, if it does for one."""
    if isinstance(column, Binary):
        return value
    try:
        return column.labels[column.find_bit(value)[0]]
    except BadInputError:
        return value


def _column(schema: Schema, name: str) -> tuple[int, Column]:
    try:
        return schema.column(name)
    except BadInputError as error:
        marks = " (what holds signs or words such as & ( or or stands in double quotation marks)"
        why = str(error)
        raise BadInputError(why if name.isidentifier() else why + marks) from None
