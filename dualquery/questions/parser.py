"""Reading questions: a grammar by recursive descent.

From the weakest to the strongest binding, words in any case::

    question  = measure [given condition]
    measure   = condition | share(condition) | count(condition) | count(*)
              | mean(column) | sum(column) | median(column) | quantile(column, level)
    condition = term {or term}
    term      = factor {(& | and) factor}
    factor    = (! | not) factor | "(" condition ")" | literal
    literal   = column | column (= | != | < | <= | > | >=) value
              | column [not] in (value, ...) | column [not] between value and value

The first sign behind a column is its comparison, as long as it can be: ``income=>50K`` is an
equality with the value ``>50K``, ``age>=40`` a range. A value ends at ``&``, at a parenthesis that
it did not open, at a comma of a list, or at ``and``, ``or``, ``given`` between spaces. A name or
value that holds such signs or words stands in double quotation marks, in which a quotation mark is
doubled. Spaces around names, values and signs mean nothing.
"""

import re
from dataclasses import replace
from typing import NoReturn, cast

from dualquery.data.schema.numbers import finite_number, in_another_style
from dualquery.questions.syntax_tree import (
    COUNT,
    MEAN,
    QUANTILE,
    SHARE,
    SUM,
    Among,
    And,
    Between,
    Comparison,
    Condition,
    Flag,
    Literals,
    Not,
    Or,
    Question,
    Relation,
)
from dualquery.runtime.errors import BadInputError, did_you_mean

LONGEST = 20_000
"""Characters of a question: more is no question of a person, and reading takes time."""

DEEPEST = 50
"""Parentheses and negations inside each other."""

_MEASURE = re.compile(r"\s*(share|count|mean|sum|median|quantile)\s*\(", re.IGNORECASE)
_MEASURES = (SHARE, COUNT, MEAN, SUM, "median", QUANTILE)
_CALL = re.compile(r"\s*(?!not\s*\()([^\W\d]\w*)\s*\(", re.IGNORECASE)
_RELATION = re.compile(r"\s*(!=|>=|<=|=|<|>)")
_QUOTED = re.compile(r'\s*"((?:[^"]|"")*)"')
# Spaces are looked at once, from their first on: a run of them takes no square of its length.
_NAME_ENDS = re.compile(
    r'[&"()=!<>,*]|(?<!\s)\s++(?:and|or|given|in|between|not)(?=[\s("!]|$)', re.IGNORECASE
)
_VALUE_ENDS = re.compile(r'[&"(),]|(?<!\s)\s++(?:and|or|given)(?=[\s("!]|$)', re.IGNORECASE)


def parse_question(text: str) -> Question:
    """Return the tree of a question, a text as this module describes.

    Raises
    ------
    BadInputError
        If the text is no question: what was expected, and where.
    """
    if len(text) > LONGEST:
        raise BadInputError(
            f"a question of {len(text):,} characters; at most {LONGEST:,} are read: ask for less "
            "at a time"
        )
    return _Reader(text).question()


class _Reader:
    """A text, and how far it was read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def question(self) -> Question:
        started = _MEASURE.match(self.text)
        if started is None and (call := _CALL.match(self.text)):
            self._no_measure(call[1])
        question = self._measure(started) if started else Question(SHARE, self._condition())
        if self._word("given"):
            question = replace(question, given=self._condition())
            if self._word("given"):
                self._fail("'given' stands once in a question; join conditions by &")
        if self.text[self.at :].strip():
            self._fail("the question ends here, but the text goes on")
        return question

    def _measure(self, started: re.Match[str]) -> Question:
        self.at = started.end()
        measure = started[1].lower()
        if measure in (SHARE, COUNT):
            question = Question(measure, None if self._sign("*") else self._condition())
        elif measure != QUANTILE:
            measure = QUANTILE if measure == "median" else measure
            question = Question(measure, column=self._name())
        else:
            column = self._name()
            if not self._sign(","):
                self._fail("a quantile needs its level behind a comma: quantile(income, 0.25)")
            question = Question(QUANTILE, column=column, level=self._level())
        self._close()
        return question

    def _no_measure(self, name: str) -> NoReturn:
        close = did_you_mean(name.lower(), _MEASURES)
        raise BadInputError(
            f"{shortened(self.text)!r} is no question: there is no {name}(...){close or '.'} "
            f"What can be asked is {', '.join(_MEASURES[:-1])} and {QUANTILE}; the name of a "
            "column that is called so stands in double quotation marks"
        )

    def _level(self) -> float:
        value = self._value()
        level = finite_number(value)
        if level is not None and 0.0 < level < 1.0:
            return level
        style = in_another_style(value, whole=False)
        meant = ", such as 0.25" if style is None else f": {style}"
        raise BadInputError(
            f"{shortened(self.text)!r} is no question: the level of a quantile is {value!r}; a "
            f"number between 0 and 1 is needed{meant}"
        )

    def _condition(self) -> Condition:
        operands = [self._term()]
        while self._word("or"):
            operands.append(self._term())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _term(self) -> Condition:
        operands = [self._factor()]
        while self._sign("&") or self._word("and"):
            operands.append(self._factor())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _factor(self) -> Condition:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(f"more than {DEEPEST} parentheses or negations inside each other")
        found: Condition
        if self._sign("!") or self._word("not"):
            found = Not(self._factor())
        elif self._sign("("):
            found = self._condition()
            self._close()
        else:
            found = self._literal()
        self.depth -= 1
        return found

    def _literal(self) -> Condition:
        column = self._name()
        negated = self._word("not")
        literal: Literals
        if self._word("in"):
            literal = Among(column, self._values())
        elif self._word("between"):
            low = self._value()
            if not self._word("and"):
                self._fail("a range needs both its ends, as in age between 18 and 64")
            literal = Between(column, low, self._value())
        elif negated:
            self._fail("behind a column, 'not' needs 'in' or 'between'")
        elif relation := _RELATION.match(self.text, self.at):
            self.at = relation.end()
            literal = Comparison(column, cast(Relation, relation[1]), self._value())
        else:
            literal = Flag(column)
        return Not(literal) if negated else literal

    def _values(self) -> tuple[str, ...]:
        if not self._sign("("):
            self._fail("the values behind 'in' stand in parentheses, as in edu in (9, 10)")
        if self._sign(")"):
            self._fail("a list of no values: nothing can be in it")
        values = [self._value(of_list=True)]
        while self._sign(","):
            values.append(self._value(of_list=True))
        self._close()
        return tuple(values)

    def _name(self) -> str:
        if (inside := self._quoted()) is not None:
            return inside
        stop = _NAME_ENDS.search(self.text, self.at)
        end = len(self.text) if stop is None else stop.start()
        name = self.text[self.at : end].strip()
        if not name or name.lower() in ("and", "or", "in", "given", "between"):
            self._fail("the name of a column is missing")
        self.at = end
        return name

    def _value(self, *, of_list: bool = False) -> str:
        """Read a value: all up to a sign or word that ends it outside of its own parentheses."""
        if (inside := self._quoted()) is not None:
            return inside
        opened, end = 0, len(self.text)
        for stop in _VALUE_ENDS.finditer(self.text, self.at):
            sign = stop[0]
            if sign == "(":
                opened += 1
            elif sign == ")" and opened:
                opened -= 1
            elif sign != "," or (of_list and not opened):
                end = stop.start()
                break
        if not (value := self.text[self.at : end].strip()):
            self._fail('a value is missing; the empty one is written ""')
        if self.text[end : end + 1] == '"':
            self.at = end
            self._fail("quotation marks stand around a whole name or value")
        self.at = end
        return value

    def _quoted(self) -> str | None:
        if (found := _QUOTED.match(self.text, self.at)) is None:
            if self.text[self.at :].lstrip().startswith('"'):
                self._fail("a quotation mark is not closed")
            return None
        self.at = found.end()
        return found[1].replace('""', '"')

    def _sign(self, sign: str) -> bool:
        """Read a sign if it is next."""
        at = self.at
        while at < len(self.text) and self.text[at].isspace():
            at += 1
        if not self.text.startswith(sign, at):
            return False
        self.at = at + len(sign)
        return True

    def _word(self, word: str) -> bool:
        """Read a word if it is next, and ends there."""
        found = re.compile(rf'\s*{word}(?=[\s("!]|$)', re.IGNORECASE).match(self.text, self.at)
        if found is None:
            return False
        self.at = found.end()
        return True

    def _close(self) -> None:
        if self._word("given"):
            self._fail("'given' stands outside of all parentheses, at the end of a question")
        if not self._sign(")"):
            self._fail("a closing parenthesis is missing")

    def _fail(self, why: str) -> NoReturn:
        rest = self.text[self.at :].strip()
        where = f"before {shortened(rest)!r}" if rest else "at the end"
        raise BadInputError(
            f"{shortened(self.text)!r} is no question: {why} ({where}); write, for instance, "
            "age=30-35 & sex!=Female, with double quotation marks around a name or value that "
            "holds signs or words of the language"
        )


def shortened(text: str) -> str:
    """Return a text, or its beginning if it is long, for a message."""
    return text if len(text) <= 60 else text[:57] + "..."
