"""Legal records: whether there are any, and those nearest to another; by search, or a solver."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from dualquery.rules.constraints import solved_record
from dualquery.rules.forbidden import Forbidden
from dualquery.rules.search_kernels import IMPOSSIBLE, UNDECIDED, possible, search
from solvers import SolverError

BUDGET = 2_000_000
"""Records that one search looks at, at most."""

_MOST_OPTIONS = 4096
"""Nearest records that a search keeps."""


def legal_classes(rules: Forbidden) -> NDArray[np.int32] | None:
    """Return a legal record, as classes of `Forbidden.columns`; None if there is none.

    A search decides; a solver, where that takes too long.

    Raises
    ------
    SolverError
        If neither comes to an end.
    """
    start = np.zeros(len(rules.columns), np.int32)
    everything = np.ones(int(rules.compiled.classes[-1]), np.uint8)
    found = np.empty((1, len(start)), np.int32)
    budget = BUDGET
    for depth in range(len(start) + 1):
        count, cut, looked = search(rules.compiled, start, everything, depth, budget, found)
        budget -= looked
        if count:
            return np.asarray(found[0])
        if budget <= 0:
            return solved_record(rules, start, everything)
        if not cut:
            break
    return None


def contradiction(rules: Forbidden) -> tuple[int, ...]:
    """Return rules that no record keeps all of, none of which can be spared; none if there are."""
    if not rules.boxes or legal_classes(rules) is not None:
        return ()
    needed = list(range(len(rules)))
    for number in range(len(rules)):
        fewer = [each for each in needed if each != number]
        some = rules.only(fewer)
        if some.boxes and legal_classes(some) is None:
            needed = fewer
    return tuple(needed)


def impossible(rules: Forbidden, allowed: NDArray[np.uint8], legal: NDArray[np.int32]) -> bool:
    """Tell whether no legal record has allowed classes only: proven by search, or by a solver.

    ``legal`` is what `legal_classes` found. Where neither comes to an end, False.
    """
    found = possible(rules.compiled, legal, allowed, BUDGET)
    if found == UNDECIDED:
        with suppress(SolverError):
            return solved_record(rules, legal, allowed) is None
    return bool(found == IMPOSSIBLE)


def nearest_classes(
    rules: Forbidden, pattern: NDArray[np.int32], legal: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the legal classes that differ from a pattern's in the fewest columns: ``(o, c)``.

    All of them, up to some thousands, each once. Where the search is too long, one that a solver
    finds in its time; if it finds none, ``legal``.
    """
    boxes = rules.compiled
    everything = np.ones(int(boxes.classes[-1]), np.uint8)
    found = np.empty((_MOST_OPTIONS, len(pattern)), np.int32)
    budget = BUDGET
    for depth in range(1, len(pattern) + 1):
        count, _, looked = search(boxes, pattern, everything, depth, budget, found)
        budget -= looked
        if count:
            return np.unique(found[:count], axis=0)
        if budget <= 0:
            break
    with suppress(SolverError):
        solved = solved_record(rules, pattern, everything)
        if solved is not None:
            return solved[None, :]
    return legal[None, :]
