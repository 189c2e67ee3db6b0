"""From the rules of a schema to forbidden boxes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dualquery.data.schema.columns import Binary, Column
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.numbers import finite_number
from dualquery.data.schema.numeric import Numeric
from dualquery.data.schema.rules import Follows, Rule, read_order
from dualquery.data.schema.table import TableSchema
from dualquery.questions import syntax_tree as syntax
from dualquery.questions.allowed_values import allowed_by, pieces_of, values_of
from dualquery.questions.disjoint_boxes import Box, boxes_of
from dualquery.questions.plain_parser import read_question
from dualquery.questions.remarks import on_cuts, on_what_lies_beyond
from dualquery.rules.forbidden import Forbidden, mask_of
from dualquery.rules.legal import legal_classes
from dualquery.runtime.errors import BadInputError, suggest
from solvers import SolverError

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema

_ARROW = re.compile(r'"(?:[^"]|"")*"|\s=>\s')


def rules_of(schema: Schema) -> Forbidden:
    """Return the rules of a schema that are about its columns.

    `BadInputError` if one cannot be read, contradicts itself or the schema, or no record keeps all.
    """
    if isinstance(schema, TableSchema) and schema.rules:
        return _read(schema)
    return Forbidden.none(schema.domain)


def check_rules(schema: TableSchema, columns: Sequence[str]) -> None:
    """Raise `BadInputError` if a rule cannot be read, or names what is no column of a table."""
    others = tuple(each for each in columns if each not in schema.column_names)
    for rule in schema.rules:
        for name in sorted(_names(rule, replace(schema, rules=(), left_out=others)) - {*columns}):
            close = suggest(name, columns)
            raise BadInputError(f"schema, rule {str(rule)!r}: there is no column {name!r}; {close}")


SchemaT = TypeVar("SchemaT", bound="Schema")


def without_absent(schema: SchemaT, *, learned: bool = False) -> tuple[SchemaT, tuple[str, ...]]:
    """Return the schema with rules about its own columns only, and remarks on those left out.

    A ``learned`` schema's are about its own values, too. `BadInputError` if another's is no text.
    """
    if not isinstance(schema, TableSchema) or not (schema.left_out or learned):
        return schema, ()
    if learned:  # mostly all can be read together; else each is read with those before it
        with suppress(BadInputError):
            _ = rules_of(whole := replace(schema, left_out=()))
            return whole, ()
    kept = () if learned else _applicable(schema)
    for rule in schema.rules if learned else ():
        with suppress(BadInputError):
            _ = rules_of(replace(schema, rules=(*kept, rule), left_out=()))
            kept = (*kept, rule)
    absent = [str(rule) for rule in schema.rules if rule not in kept]
    told = "about columns that are not released were left out"
    told = f"rules {'that what is learned may keep or not' if learned else told}"
    remarks = (f"{told}: {'; '.join(absent)}",) if absent else ()
    return replace(schema, rules=kept, left_out=()), remarks


def _applicable(schema: TableSchema) -> tuple[Rule, ...]:
    if not schema.left_out:
        return schema.rules
    return tuple(rule for rule in schema.rules if _names(rule, schema).isdisjoint(schema.left_out))


@lru_cache(maxsize=8)
def _read(schema: TableSchema) -> Forbidden:
    rules = _applicable(schema)
    boxes: list[Box] = []
    rule_of: list[int] = []
    for number, rule in enumerate(rules):
        where = f"schema, rule {schema.rules.index(rule) + 1} ({rule!s})"
        try:
            found = list(_boxes(rule, schema))
        except BadInputError as error:
            raise BadInputError(f"{where}: {str(error).removeprefix('schema: ')}") from None
        if not all(found):
            raise BadInputError(f"{where}: it contradicts itself, so no record could keep it")
        boxes += found
        rule_of += [number] * len(found)
    buckets = np.array([getattr(column, "buckets", 0) for column in schema.columns], np.int64)
    read = Forbidden(schema.domain, tuple(map(str, rules)), tuple(boxes), tuple(rule_of), buckets)
    try:
        possible = not boxes or legal_classes(read) is not None
    except SolverError:
        raise BadInputError(
            "schema: whether any record keeps all rules could not be decided; write fewer or "
            "simpler ones"
        ) from None
    if not possible:
        raise BadInputError(f"schema: no record keeps all of these rules: {'; '.join(read.texts)}")
    return read


def _boxes(rule: Rule, schema: TableSchema) -> Iterator[Box]:
    if isinstance(rule, Follows):
        yield from _of_mapping(rule, schema)
    elif (order := read_order(rule, schema.column_names)) is not None:
        orders, (first, second) = schema.orders, (schema.column(name)[0] for name in order[:2])
        given = {(each.less, each.more) for each in orders.given} - {(first, second)}
        # With the first order come those that follow from chains of it and others.
        for each in orders.closed:
            if each.less == first and (each.less, each.more) not in given:
                known = {at: mask_of(~np.isnan(orders.numbers[at].low)) for at in each.through}
                for beyond, together in orders.forbidden(each):
                    yield known | {each.less: mask_of(beyond), each.more: mask_of(together)}
    else:
        yield from _of_condition(_broken_if(rule, schema), schema)


def _of_mapping(rule: Follows, schema: TableSchema) -> Iterator[Box]:
    (to, target), (start, source) = schema.column(rule.column), schema.column(rule.source)
    if to == start:
        raise BadInputError("a column follows from another one, not from itself")
    whole = (1 << values_of(target)) - 1
    meant: dict[int, int] = {}
    for key, value in rule.mapping:
        place, follows = _value(source, key), _value(target, value)
        if meant.setdefault(place, follows) != follows:
            raise BadInputError(
                f"column {source.name!r} has one value for {key!r} and others before it, but "
                f"{rule.column!r} is to differ"
            )
    for place, follows in meant.items():
        yield {start: 1 << place, to: whole & ~(1 << follows)}


def _value(column: Column, text: str) -> int:
    bit, negated = column.find_bit(text)
    _require_whole_bucket(column, text)
    return int(not negated) if isinstance(column, Binary) else bit


def _broken_if(rule: str, schema: TableSchema) -> syntax.Condition:
    """Return the condition of the rows that break a rule."""
    sides = _sides(rule)
    if len(sides) > 2:
        raise BadInputError("more than one =>; write a rule for each")
    *given, kept = (_condition(side, schema) for side in sides)
    return syntax.And((*given, syntax.Not(kept))) if given else syntax.Not(kept)


def _sides(rule: str) -> Sequence[str]:
    """Return the parts of a rule between its arrows, which stand between spaces."""
    if rule.strip().startswith("=>") or rule.strip().endswith("=>"):
        raise BadInputError("nothing stands on one side of =>; write it as in age<15 => m=never")
    ends = [found for found in _ARROW.finditer(rule) if found[0].strip() == "=>"]
    starts = [0, *(found.end() for found in ends)]
    stops = [*(found.start() for found in ends), len(rule)]
    return [rule[start:stop] for start, stop in zip(starts, stops, strict=True)]


def _condition(text: str, schema: TableSchema) -> syntax.Condition:
    question = read_question(text, schema)
    if question.measure != syntax.SHARE or question.condition is None or question.given:
        raise BadInputError(f"{text.strip()!r} is no condition of rows, as in age<15 => m=never")
    return question.condition


def _require_whole_bucket(column: Column, text: str, relation: str = "=") -> None:
    """Refuse a number or a date that would stand for others of its bucket, too."""
    same = relation in ("=", "!=")
    if isinstance(column, Dates):
        begins, ends = column.cut_by(text)
        if (begins and relation not in ("<=", ">")) or (ends and relation not in (">=", "<")):
            what = f"{text} and other dates; name whole ones"
            raise BadInputError(f"column {column.name!r} has one bucket by {column.by} for {what}")
    elif isinstance(column, Numeric) and same and (number := finite_number(text)) is not None:
        (low, high), label = column.bounds[bit := column.find_bit(text)[0]], column.labels[bit]
        if low < high and column.rules[bit] != number and text != label:
            raise BadInputError(
                f"column {column.name!r} has one bucket, {label}, for {text} and other numbers; "
                f"write {column.name}={label} if all of them are meant, or add edges around {text}"
            )


def _names(rule: Rule, schema: TableSchema) -> frozenset[str]:
    """Return the columns that a rule names."""
    if isinstance(rule, Follows):
        return frozenset((rule.column, rule.source))
    if order := read_order(rule, (*schema.column_names, *schema.left_out)):
        return frozenset(order[:2])
    try:
        sides = [_condition(side, schema) for side in _sides(rule)]
    except BadInputError as error:
        raise BadInputError(f"schema, rule {rule!r}: {error}") from None
    return frozenset(literal.column for side in sides for literal in syntax.literals_of(side))


def _of_condition(condition: syntax.Condition, schema: TableSchema) -> Iterator[Box]:
    literals = list(syntax.literals_of(condition))
    columns = {literal.column: schema.column(literal.column) for literal in literals}
    allowed: dict[syntax.Literals, tuple[int, int]] = {}
    whole: dict[int, int] = {}
    for name, (number, column) in columns.items():
        own = {each: allowed_by(each, column) for each in literals if each.column == name}
        for relation, text in (said for each in own for said in syntax.compared(each)):
            _require_whole_bucket(column, text, relation)
        cut = on_cuts(column, own.values()).partition(", as if")[0]
        if told := cut or on_what_lies_beyond(column, own.values()):
            raise BadInputError(
                f"{told}: a rule is about whole buckets; add the number to the column's edges, "
                "take one of them, or leave an outer end open"
            )
        pieces = pieces_of(column, own.values())
        whole[number] = pieces.every
        allowed |= {each: (number, pieces.of(found)) for each, found in own.items()}
    yield from boxes_of(condition, allowed, whole)
