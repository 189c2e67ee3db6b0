"""All pairs of neighbouring tables of a tiny universe, by the cells of their rows."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from dualquery.privacy.events import Neighbours

Cells = tuple[int, ...]

both_relations = pytest.mark.parametrize("relation", list(Neighbours), ids=lambda r: r.value)


def tables(universe: int, rows: int, relation: Neighbours) -> list[Cells]:
    """Return the tables of so many rows; with add-remove those of one row more, too."""
    sizes = [rows] if relation is Neighbours.REPLACE_ONE else [rows, rows + 1]
    return [
        cells
        for size in sizes
        for cells in itertools.combinations_with_replacement(range(universe), size)
    ]


@cache
def pairs(universe: int, rows: int, relation: Neighbours) -> tuple[tuple[Cells, Cells], ...]:
    """Return all neighbours among these, each pair in both orders."""
    found = []
    for one, other in itertools.permutations(tables(universe, rows, relation), 2):
        shared = sum(min(one.count(c), other.count(c)) for c in range(universe))
        replaced = len(one) == len(other) and shared == len(one) - 1
        added = abs(len(one) - len(other)) == 1 and shared == min(len(one), len(other))
        if replaced if relation is Neighbours.REPLACE_ONE else added:
            found.append((one, other))
    return tuple(found)
