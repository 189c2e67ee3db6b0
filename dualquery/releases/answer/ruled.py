"""Answers that the rules of a schema force."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import Intervals
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.ranges import RangeQueries
from dualquery.questions.compiler import Compiled, CompiledQuestion, ask
from dualquery.questions.linear_form import Bounds
from dualquery.questions.syntax_tree import COUNT, SHARE, SUM, Not, Question
from dualquery.rules.legal import forced_answers, impossible_conjunctions, no_record_in
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.mechanisms.protocol import Outcome
    from dualquery.queries.family import Queries
    from dualquery.rules.forbidden import Forbidden

FORCED = "forced by the rules of the schema: exact if the rows keep them"
NO_SUCH_ROWS = "the rules of the schema allow no rows like the given ones"


def with_forced_answers(
    outcome: Outcome, queries: Queries, rules: Forbidden
) -> tuple[Outcome, tuple[str, ...]]:
    """Return an outcome with answers that rules force: conjunctions, ranges of 0; and a remark."""
    if (workload := conjunctions_of(queries)) is not None:
        forced = forced_answers(rules, workload.literals)
    elif isinstance(queries, RangeQueries):
        forced = np.full(len(queries), np.nan)
        with suppress(BadInputError):  # they have too many cells
            cells = queries.disjunctions()
            never = impossible_conjunctions(rules, cells.conjunctions.literals)
            forced[np.logical_and.reduceat(never, cells.indptr[:-1])] = 0.0
    else:
        return outcome, ()
    there = ~np.isnan(forced)
    remark = (
        f"{len(rules):,} rules between columns, which all records keep; if the rows keep them, "
        f"{np.count_nonzero(there):,} of {len(forced):,} answers are 0 or 1, exactly, and others "
        "may leave out what the rules imply"
    )
    if (known := outcome.intervals) is None and not there.any():
        return outcome, (remark,)
    if known is None:
        known = Intervals(forced, forced, f"{FORCED}; of other answers nothing was measured")
    else:
        lower, upper = (np.where(there, forced, end) for end in (known.lower, known.upper))
        basis = f"{known.basis}, if rows keep the rules; where an interval is one number, {FORCED}"
        known = replace(known, lower=lower, upper=upper, basis=basis)
    answers = np.where(there, forced, outcome.answers)
    return replace(outcome, answers=answers, intervals=known), (remark,)


def forced_share(asked: Compiled, schema: Schema, rules: Forbidden) -> float | None:
    """Return the share that the rules force to 0 or 1, NaN if they allow no given rows, or None.

    A bucket that a range cuts is taken whole.
    """
    question = asked.question
    parts: tuple[Any, ...] = (getattr(asked, "numerator", None), asked.denominator)
    forms = [each.high for each in parts if each is not None]
    if not rules.boxes or not {c for form in forms for c in form.columns} & {*rules.columns}:
        return None
    if asked.denominator is not None and no_record_in(rules, _boxes(asked.denominator)):
        return math.nan
    if question.measure in (SHARE, COUNT, SUM) and no_record_in(rules, _boxes(parts[0])):
        return 0.0
    if question.measure not in (SHARE, COUNT) or question.condition is None:
        return None
    try:
        opposite = ask(Question(SHARE, Not(question.condition), given=question.given), schema)
    except BadInputError:  # it falls apart into too many cases
        return None
    assert isinstance(opposite, CompiledQuestion)
    return 1.0 if no_record_in(rules, _boxes(opposite.numerator)) else None


def _boxes(share: Bounds) -> list[dict[int, NDArray[np.bool_]]]:
    """Return boxes that hold every record which a share may count, or a sum."""
    terms = (term for form in dict.fromkeys((share.high, share.low)) for term in form.terms)
    return [{column: weights != 0 for column, weights in term.items()} for term in terms]
