"""Conditions as boxes that exclude each other.

A box says of some columns which of their *pieces* are allowed (`allowed_values`), as the bits of a
whole number; a column that it does not name may have any. Each record lies in at most one of the
boxes of a condition, so that its share is the sum of theirs.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from dualquery.questions.syntax_tree import And, Condition, Literals, Not, Or, literals_of
from dualquery.runtime.errors import BadInputError

Box: TypeAlias = Mapping[int, int]
"""Allowed pieces by the number of the column: never none, never all."""

MOST_LITERALS = 100
"""Of one question."""

MOST_BOXES = 2_000
"""Of one condition. Beyond it, conditions take long and their answers say little."""


def boxes_of(
    condition: Condition,
    allowed: Mapping[Literals, tuple[int, int]],
    whole: Mapping[int, int],
    cut: frozenset[Literals] = frozenset(),
) -> list[Box]:
    """Return a condition as boxes that exclude each other; none if nothing satisfies it.

    ``allowed`` has for each of its literals the number of its column, and the pieces that satisfy
    it; ``whole`` all pieces of each column; ``cut`` are the literals of columns some of whose
    pieces are parts of values. `BadInputError` if it has more than `MOST_BOXES` boxes.
    """

    def made(condition: Condition, negated: bool) -> list[Box]:
        match condition:
            case Not(operand):
                return made(operand, not negated)
            case And(operands) | Or(operands):
                if isinstance(condition, And) != negated:
                    return _all_of([made(each, negated) for each in operands])
                return any_of(operands, negated)
            case _:
                column, pieces = allowed[condition]
                pieces = whole[column] & ~pieces if negated else pieces
                if pieces == whole[column]:
                    return [{}]
                return [{column: pieces}] if pieces else []

    def any_of(operands: Sequence[Condition], negated: bool) -> list[Box]:
        found: list[Box] = []
        outside: list[Box] = [{}]  # what none of the operands so far holds on
        # Where a condition on whole values holds, it does not matter where a cut value lies.
        for operand in sorted(operands, key=lambda x: (len(cut & {*literals_of(x)}), repr(x))):
            found += _both(outside, made(operand, negated))
            _check(found)
            outside = _both(outside, made(operand, not negated))
        return merged(found, whole)

    return merged(made(condition, False), whole)


def merged(boxes: Sequence[Box], whole: Mapping[int, int]) -> list[Box]:
    """Join boxes that differ in one column only, as long as there are any."""
    found: list[Box] = [dict(box) for box in boxes]
    again = True
    while again:
        again = False
        for column in sorted({column for box in found for column in box}):
            joined: dict[tuple[tuple[int, int], ...], int] = {}
            for box in found:
                rest = tuple(sorted((c, pieces) for c, pieces in box.items() if c != column))
                joined[rest] = joined.get(rest, 0) | box.get(column, whole[column])
            if len(joined) < len(found):
                again = True
            found = [
                dict(rest) if pieces == whole[column] else {**dict(rest), column: pieces}
                for rest, pieces in joined.items()
            ]
    return [*found]


def _all_of(parts: Sequence[list[Box]]) -> list[Box]:
    found: list[Box] = [{}]
    for part in parts:
        found = _both(found, part)
    return found


def _both(one: Sequence[Box], other: Sequence[Box]) -> list[Box]:
    """Return the boxes of the records that lie in a box of each list."""
    found: list[Box] = []
    for a in one:
        for b in other:
            joined = dict(a)
            for column, pieces in b.items():
                joined[column] = joined.get(column, pieces) & pieces
            if all(joined.values()):
                found.append(joined)
                _check(found)
    return found


def _check(boxes: Sequence[Box]) -> None:
    if len(boxes) > MOST_BOXES:
        raise BadInputError(
            f"this condition falls apart into more than {MOST_BOXES:,} cases; ask about fewer "
            "columns at a time"
        )
