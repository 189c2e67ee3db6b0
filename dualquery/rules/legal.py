"""Legal records: whether there are any, those nearest to another, and what they force of answers.

A share is 0 if no legal record satisfies its condition, and 1 if none satisfies the opposite,
whatever the rows are, as long as these keep the rules. Both are proven by a search over all legal
records that could; what that leaves open is not called forced.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dualquery.rules.constraints import solved_record
from dualquery.rules.forbidden import Forbidden
from dualquery.rules.search_kernels import UNDECIDED, impossible_among, nearest

Int32 = NDArray[np.int32]
UInt8 = NDArray[np.uint8]

_BUDGET, _BUDGET_OF_MANY, _MOST_OPTIONS = 2_000_000, 10_000, 4096
"""Records that one search looks at, at most; one for each of many conjunctions; that one keeps."""


def _nearest(
    rules: Forbidden, start: Int32, allowed: UInt8 | None, most: int, budget: int
) -> Int32 | None:
    """Return up to ``most`` nearest legal records of allowed classes; None if undecided."""
    anything = np.ones(int(rules.compiled.classes[-1]), np.uint8) if allowed is None else allowed
    found = np.empty((most, len(start)), np.int32)
    count = nearest(rules.compiled, start, anything, budget, found)
    return None if count == UNDECIDED else np.unique(found[:count], axis=0)


def legal_classes(rules: Forbidden) -> Int32 | None:
    """Return a legal record, as classes of `Forbidden.columns`; None if there is none.

    `SolverError` if neither a search nor a solver comes to an end.
    """
    start = np.zeros(len(rules.columns), np.int32)
    if (found := _nearest(rules, start, None, 1, _BUDGET)) is None:
        return solved_record(rules, start)
    return np.asarray(found[0]) if len(found) else None


def nearest_classes(rules: Forbidden, pattern: Int32, legal: Int32, searches: int) -> Int32:
    """Return the legal classes that differ from a pattern's in the fewest columns: ``(o, c)``.

    All of them, up to some thousands, each once. Where one of ``searches`` takes too long, the
    nearest of ``legal`` ones, ``(r, c)``; if there are none of these, either, any.
    """
    budget = min(_BUDGET, 10 * _BUDGET // searches)
    if (found := _nearest(rules, pattern, None, _MOST_OPTIONS, budget)) is None:
        known = legal if len(legal) else some_legal(rules)[None, :]
        changes = (known != pattern).sum(axis=1)
        found = known[changes == changes.min()][:_MOST_OPTIONS]
    return found


def impossible_conjunctions(rules: Forbidden, literals: Int32) -> NDArray[np.bool_]:
    """Return which conjunctions provably no legal record satisfies: bool, shape ``(m,)``.

    ``literals`` is int32, shape ``(m, k)``: codes, padded with -1.
    """
    found = np.zeros(len(literals), np.uint8)
    if rules.boxes:
        legal = some_legal(rules)
        codes = np.ascontiguousarray(literals, np.int32)
        impossible_among(rules.compiled, rules.axes, legal, codes, _BUDGET_OF_MANY, found)
    return found.astype(np.bool_)


def forced_answers(rules: Forbidden, literals: Int32) -> NDArray[np.float64]:
    """Return the answers of conjunctions that are forced to 0 or 1: float64, NaN for the others.

    ``literals`` is int32, shape ``(m, k)``: codes, padded with -1.
    """
    answers = np.full(len(literals), np.nan)
    if not rules.boxes:
        return answers
    every = np.arange(2 * rules.domain.bits, dtype=np.int32)
    # A conjunction holds for all legal records if the opposite of each literal is impossible.
    never = np.append(impossible_conjunctions(rules, every[:, None]), True)
    always = never[np.where(literals >= 0, literals ^ 1, len(every))].all(axis=1)
    answers[always] = 1.0
    answers[impossible_conjunctions(rules, literals)] = 0.0
    return answers


def no_record_in(rules: Forbidden, boxes: Sequence[Mapping[int, NDArray[np.bool_]]]) -> bool:
    """Tell whether provably no legal record lies in any of some boxes, none of them empty.

    Each box says of some columns which of their values are inside: bool, one entry a value.
    """
    if not rules.boxes:
        return not boxes
    legal = some_legal(rules)
    held = (rules.allowed(box) for box in boxes if all(map(np.any, box.values())))
    searches = (_nearest(rules, legal, allowed, 1, _BUDGET) for allowed in held)
    return all(found is not None and not len(found) for found in searches)


def some_legal(rules: Forbidden) -> Int32:
    """Return the record of `legal_classes`, of rules that some record keeps."""
    legal = legal_classes(rules)
    assert legal is not None  # the rules were read, so there is one
    return legal
