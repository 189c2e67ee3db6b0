"""Records that keep the rules: they exchange values; the others become the nearest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.rules.forbidden import Forbidden
from dualquery.rules.legal import legal_classes, nearest_classes
from dualquery.rules.search_kernels import broken_boxes

_ROUNDS = 1_000
"""Exchanges that are tried for each broken record, at most."""

_PATIENCE = 50, 5
"""Rounds without fewer broken records: then exchanges that leave as many are tried; then none."""


def repaired(
    records: NDArray[np.uint8], rules: Forbidden, generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Return records that all keep the rules.

    First broken records exchange single values with others, so that each value stays as frequent as
    it was. Let p be a distribution over records, and q the one next to it, in relative entropy,
    among those over legal records with given shares of the values. Then each other one among them,
    such as that of a table that keeps the rules, is nearer to q than to p (Csiszár 1975, theorem
    2.2). Records of p that exchange at random come near to q (Csiszár 1984): legal records are not
    worse, but better.

    Where no exchange helps, a record becomes a nearest legal one: it differs in the fewest columns,
    and among these, numbers and dates move over the fewest buckets, as a share of the column's, any
    other change counting as all of them. Of what is as near, one is drawn.

    Parameters
    ----------
    records
        uint8, shape ``(r, bits)``, legal for the domain.
    generator
        Public.

    Returns
    -------
    uint8, shape ``(r, bits)``; the same object if no record breaks a rule.
    """
    if not (rules.broken(records) >= 0).any():
        return records
    values = rules.values(records)
    broken = _exchange(values, rules, generator)
    if len(broken):
        _become_nearest(values, broken, rules, generator)
    better = records.copy()
    for place, (first, bits) in enumerate(zip(rules.axes.first, rules.axes.bits, strict=True)):
        if bits == 1:
            better[:, first] = values[:, place]
        else:
            better[:, first : first + bits] = values[:, place, None] == np.arange(bits)
    return better


def _boxes_of(values: NDArray[np.int32], rules: Forbidden) -> NDArray[np.int32]:
    """Return a box that each record lies in, -1 for none."""
    found = np.empty(len(values), np.int32)
    broken_boxes(rules.compiled, rules.axes.class_of[rules.axes.starts[:-1] + values], found)
    return found


def _exchange(
    values: NDArray[np.int32], rules: Forbidden, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Exchange values in place; return the records that still break a rule.

    In each round a broken record offers its value of one of a box's columns to another record. They
    exchange if fewer of the two break rules then; after some rounds, if not more do.
    """
    boxes, rows = rules.compiled, len(values)
    inside = _boxes_of(values, rules)
    fewest, idle, fewer = rows + 1, 0, 1
    for _ in range(_ROUNDS):
        broken = generator.permutation(np.flatnonzero(inside >= 0))
        idle = 0 if len(broken) < fewest else idle + 1
        fewest = min(fewest, len(broken))
        if not len(broken) or (idle >= _PATIENCE[1] and not fewer):
            break
        if idle >= _PATIENCE[0]:
            fewer, idle = 0, 0
        # Partners are all different, and no two pairs share a record.
        broken = broken[: rows // 2]
        alone = np.ones(rows, bool)
        alone[broken] = False
        others = generator.choice(np.flatnonzero(alone), len(broken), replace=False)
        entries = boxes.entries[inside[broken]]
        counts = boxes.entries[inside[broken] + 1] - entries
        place = boxes.column[entries + generator.integers(0, counts)]
        mine, theirs = values[broken], values[others]
        each = np.arange(len(broken))
        mine[each, place], theirs[each, place] = theirs[each, place], mine[each, place]
        after = np.stack([_boxes_of(mine, rules), _boxes_of(theirs, rules)])
        before = np.stack([inside[broken], inside[others]])
        better = (after >= 0).sum(axis=0) <= (before >= 0).sum(axis=0) - fewer
        for rows_of, new, boxes_of in ((broken, mine, after[0]), (others, theirs, after[1])):
            values[rows_of[better]] = new[better]
            inside[rows_of[better]] = boxes_of[better]
    return np.flatnonzero(inside >= 0)


def _become_nearest(
    values: NDArray[np.int32],
    broken: NDArray[np.int64],
    rules: Forbidden,
    generator: np.random.Generator,
) -> None:
    """Change broken records, by their numbers, to nearest legal ones, in place."""
    sizes = np.diff(rules.axes.starts)
    shares = [np.bincount(column, minlength=sizes[p]) + 0.5 for p, column in enumerate(values.T)]
    legal = legal_classes(rules)
    assert legal is not None  # the rules were read, so there is one
    axes, buckets = rules.axes, rules.buckets[rules.columns]
    patterns, pattern, members = np.unique(
        values[broken], axis=0, return_inverse=True, return_counts=True
    )
    moves: dict[tuple[int, int, int], tuple[float, int]] = {}
    for number, start in enumerate(patterns):
        classes = axes.class_of[axes.starts[:-1] + start]
        ways, far = [], []
        for option in nearest_classes(rules, classes, legal):
            changed, total = start.copy(), 0.0
            for place in np.flatnonzero(option != classes).tolist():
                key = place, int(start[place]), int(option[place])
                if key not in moves:
                    own = axes.class_of[axes.starts[place] : axes.starts[place + 1]]
                    moves[key] = _nearest_value(own, int(buckets[place]), *key[1:])
                distance, changed[place] = moves[key]
                total += distance
            ways.append(changed)
            far.append(total)
        near = np.flatnonzero(np.array(far) <= min(far) + 1e-9)
        chosen = generator.choice(near, members[number])
        values[broken[pattern.ravel() == number]] = np.array(ways)[chosen]
    for place, column in enumerate(values.T):
        own = axes.class_of[axes.starts[place] : axes.starts[place + 1]]
        for which in np.unique(column[column < 0]).tolist():
            inside, rows = np.flatnonzero(own == -1 - which), np.flatnonzero(column == which)
            weights = shares[place][inside]
            column[rows] = generator.choice(inside, len(rows), p=weights / weights.sum())


def _nearest_value(
    class_of: NDArray[np.int32], buckets: int, value: int, chosen: int
) -> tuple[float, int]:
    """Return how far the nearest value of a class is from a value, in (0, 1], and that value.

    Where no order tells, it is -1 - the class.
    """
    inside = np.flatnonzero(class_of == chosen)
    ordered = inside[inside < buckets]
    if value < buckets and len(ordered):
        best = ordered[np.abs(ordered - value).argmin()]
        return abs(int(best) - value) / (buckets - 1), int(best)
    return 1.0, -1 - chosen
