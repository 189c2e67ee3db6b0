"""Answers that the rules force, whatever the rows are, as long as these keep the rules.

A share is 0 if no legal record satisfies its condition, and 1 if none satisfies the opposite. Both
are proven, by a search over all legal records that could (`dualquery.rules.search_kernels`), or by
an integer program where the search is long; what neither decides in its time is not called forced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dualquery.rules.forbidden import Forbidden
from dualquery.rules.nearest import impossible, legal_classes
from dualquery.rules.search_kernels import IMPOSSIBLE, UNDECIDED, conjunctions_possible

_BUDGET = 10_000
"""Records that the search looks at for one of many conjunctions."""
_SOLVED = 20
"""Conjunctions of which a solver decides what the search leaves open."""


def impossible_conjunctions(rules: Forbidden, literals: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which conjunctions no legal record satisfies: bool, shape ``(m,)``.

    ``literals`` is int32, shape ``(m, k)``: codes, padded with -1.
    """
    found = np.zeros(len(literals), np.uint8)
    if not rules.boxes:
        return found.astype(bool)
    legal = legal_classes(rules)
    assert legal is not None  # the rules were read, so there is one
    codes = np.ascontiguousarray(literals, np.int32)
    conjunctions_possible(rules.compiled, rules.axes, legal, codes, _BUDGET, found)
    proven: NDArray[np.bool_] = found == IMPOSSIBLE
    for query in np.flatnonzero(found == UNDECIDED)[:_SOLVED].tolist():
        proven[query] = impossible(rules, rules.allowed(_values(rules, codes[query])), legal)
    return proven


def forced_answers(rules: Forbidden, literals: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the answers of conjunctions that are forced to 0 or 1: float64, NaN for the others.

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``: codes, padded with -1.
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
    """Tell whether no legal record lies in any of some boxes, none of them empty.

    Each box says of some columns which of their values are inside: bool, one entry a value.
    """
    if not rules.boxes:
        return not boxes
    legal = legal_classes(rules)
    assert legal is not None
    return all(
        not all(inside.any() for inside in box.values())
        or impossible(rules, rules.allowed(box), legal)
        for box in boxes
    )


def _values(rules: Forbidden, codes: NDArray[np.int32]) -> dict[int, NDArray[np.bool_]]:
    """Return the values of columns that the literals of a conjunction allow."""
    domain = rules.domain
    found: dict[int, NDArray[np.bool_]] = {}
    for code in codes[codes >= 0].tolist():
        column = int(domain.column_of_bit[code >> 1])
        size = max(int(domain.sizes[column]), 2)
        value = 1 if domain.sizes[column] == 1 else (code >> 1) - int(domain.offsets[column])
        inside = (np.arange(size) == value) ^ bool(code & 1)
        found[column] = found.get(column, np.ones(size, bool)) & inside
    return found
