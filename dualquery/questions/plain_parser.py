"""The plain form: literals joined by ``&``, read with the help of a schema.

A literal is ``column=value``, ``column!=value``, or the bare name of a binary column; a leading
``!`` negates it. Names and values may hold signs and words that the grammar of questions gives
another meaning, as long as the schema knows them: ``country=Bosnia and Herzegovina``. Only a name
or value that contains ``&``, a quotation mark or spaces at its ends (a name also: ``=``, ``!`` or
``#``) stands in quotation marks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dualquery.questions.parser import LONGEST, parse_question
from dualquery.questions.syntax_tree import SHARE, And, Comparison, Condition, Flag, Not, Question
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema

_QUOTED = r'"(?:[^"]|"")*"'
# Every sign can be read in one way only, so that no text takes long: a doubled quotation mark is
# the end of one quoted part and the start of the next.
PIECE = r'(?:[^&"]|"[^"]*")+'
"""A literal between two ``&``."""
LINE = rf"^{PIECE}(?:&{PIECE})*$"  # a whole query
_LITERAL = re.compile(
    rf'\s*+(?P<bang>!?)\s*+(?P<name>{_QUOTED}\s*+|[^"=]*?)'
    rf'(?:(?P<relation>!?=)\s*+(?P<value>{_QUOTED}\s*+|[^"]*+))?',
    re.DOTALL,
)


def read_question(text: str, schema: Schema) -> Question:
    """Return the tree of a question: of its plain form, or else of the grammar.

    Raises
    ------
    BadInputError
        If it is neither.
    """
    text = text.encode("utf-8", "backslashreplace").decode()  # of a terminal with other bytes
    conjunction = _conjunction(text, schema) if len(text) <= LONGEST else None
    return parse_question(text) if conjunction is None else Question(SHARE, conjunction)


def read_literal(piece: str, schema: Schema) -> tuple[Flag | Comparison, bool] | None:
    """Return a literal of the plain form and whether it is negated; None if it is none."""
    match = _LITERAL.fullmatch(piece)
    if match is None or not match["name"].strip():
        return None
    name = _unquoted(match["name"].strip())
    value = None if match["value"] is None else _unquoted(match["value"].strip())
    try:
        schema.literal(name, value)
    except BadInputError:
        return None
    literal = Flag(name) if value is None else Comparison(name, "=", value)
    return literal, (match["bang"] == "!") ^ (match["relation"] == "!=")


def literal_code(piece: str, schema: Schema) -> int | None:
    """Return the code ``2 * bit + negated`` of a literal of the plain form; None if it is none."""
    if (read := read_literal(piece, schema)) is None:
        return None
    literal, negated = read
    return schema.literal(literal.column, getattr(literal, "value", None)) ^ negated


def _conjunction(text: str, schema: Schema) -> Condition | None:
    if re.fullmatch(LINE, text, re.DOTALL) is None:
        return None
    found: list[Condition] = []
    for piece in re.findall(PIECE, text):
        if (read := read_literal(piece, schema)) is None:
            return None
        literal, negated = read
        if negated and isinstance(literal, Comparison):
            found.append(Comparison(literal.column, "!=", literal.value))
        else:
            found.append(Not(literal) if negated else literal)
    return found[0] if len(found) == 1 else And(tuple(found))


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
