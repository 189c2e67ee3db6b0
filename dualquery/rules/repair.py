"""Records that keep the rules: they exchange values; the others become the nearest."""

from functools import cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dualquery.rules.forbidden import Forbidden
from dualquery.rules.legal import nearest_classes
from dualquery.rules.search_kernels import broken_boxes

Bool = NDArray[np.bool_]
UInt8 = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

_ROUNDS, _PATIENCE = 1_000, 50  # exchanges tried for a broken record, at most; without gain


def repaired(
    records: UInt8, rules: Forbidden, generator: Generator, free: Bool | None = None
) -> UInt8:
    """Return records that all keep the rules.

    First broken records change ``free`` values, bool ``(bits,)``: nobody asked how frequent they
    are. Then records exchange single values, so that each value stays as frequent as it was. Let p
    be a distribution over records, and q the one next to it, in relative entropy, among those over
    legal records with given shares of the values. Then each other one among them, such as that of a
    table that keeps the rules, is nearer to q than to p (Csiszár 1975, theorem 2.2). Records of p
    that exchange at random come near to q (Csiszár 1984).

    Where no exchange helps, a record becomes a nearest legal one: it differs in the fewest columns,
    and among these, numbers and dates move over the fewest buckets, as a share of the column's, any
    other change counting as all of them. Of what is as near, one is drawn. After that single values
    change wherever this keeps the rules and brings the shares back to what they were.

    ``records`` are uint8, shape ``(r, bits)``, legal for the domain; the same object is returned if
    none breaks a rule. The generator is public.
    """
    if not (rules.broken(records) >= 0).any():
        return records
    values, spans = rules.values(records), [*zip(rules.axes.first, rules.axes.bits, strict=True)]
    given = np.zeros(rules.domain.bits, bool) if free is None else free
    loose = np.concatenate([given[a : a + b] if b > 1 else given[[a, a]] for a, b in spans])
    if loose.any():
        _exchange(values, rules, generator, loose, alone=True)
    if len(broken := _exchange(values, rules, generator, loose)):
        _become_nearest(values, broken, rules, generator)
    better = records.copy()
    for column, (first, bits) in zip(values.T, spans, strict=True):
        meant = np.arange(bits) if bits > 1 else np.ones(1)
        better[:, first : first + bits] = column[:, None] == meant
    return better


def _boxes_of(values: Int32, rules: Forbidden) -> tuple[Int32, Int32]:
    """Return a box that each record lies in, -1 for none, and the number of such boxes."""
    found, counts = np.empty((2, len(values)), np.int32)
    classes = rules.axes.class_of[rules.axes.starts[:-1] + values]
    broken_boxes(rules.compiled, classes, found, counts)
    return found, counts


def _exchange(
    values: Int32, rules: Forbidden, generator: Generator, free: Bool, *, alone: bool = False
) -> Int64:
    """Exchange values, or only draw free ones, in place; return records that still break a rule."""
    # In each round a broken record offers its value of one of a box's columns to another record.
    # They exchange if the two then lie in fewer boxes together; or in as many, if what it gets is
    # free and may change again. Of a free value, another free one takes the place.
    boxes, rows, starts = rules.compiled, len(values), rules.axes.starts
    ends = np.searchsorted(others := np.flatnonzero(free), starts)
    inside, counts = _boxes_of(values, rules)
    offer_of, idle = np.empty(rows, np.int64), 0
    for _ in range(_ROUNDS):
        mine = np.flatnonzero(counts)
        if not len(mine) or idle == _PATIENCE:
            break
        theirs = generator.integers(rows, size=len(mine))
        # A record takes part in one offer: the last that names it.
        offers = np.arange(len(mine))
        offer_of[mine] = offer_of[theirs] = offers
        apart = (offer_of[mine] == offers) & (offer_of[theirs] == offers) & (mine != theirs)
        pairs = np.stack([mine[apart], theirs[apart]])
        box = inside[pairs[0]]
        place = boxes.column[generator.integers(boxes.entries[box], boxes.entries[box + 1])]
        own, got = free[starts[place] + values[pairs, place]]
        exchanged, each = values[pairs], np.flatnonzero(~own)
        exchanged[:, each, place[each]] = exchanged[::-1, each, place[each]]
        each, at = np.flatnonzero(own), place[own]
        exchanged[0, each, at] = others[generator.integers(ends[at], ends[at + 1])] - starts[at]
        both = _boxes_of(exchanged.reshape(-1, len(values.T)), rules)
        found, after = (part.reshape(pairs.shape) for part in both)
        less = counts[pairs].sum(axis=0) - after.sum(axis=0)
        better = (less >= 0) & own if alone else less >= ~(own | got)
        kept = pairs[:, better]
        values[kept], inside[kept], counts[kept] = (
            exchanged[:, better], found[:, better], after[:, better]
        )  # fmt: skip
        idle = 0 if (better & (less > 0)).any() else idle + 1
    return np.flatnonzero(counts)


def _become_nearest(values: Int32, broken: Int64, rules: Forbidden, generator: Generator) -> None:
    """Change broken records, by their numbers, to nearest legal ones, and bring shares back."""
    axes, columns = rules.axes, range(values.shape[1])
    class_of = np.split(axes.class_of, axes.starts[1:-1])
    counts = [np.bincount(values[:, c], minlength=len(class_of[c])) for c in columns]

    @cache
    def move(column: int, value: int, chosen: int) -> tuple[float, int]:
        """Return the distance of a value to the nearest one of a class, and that value."""
        # Where no order determines it, it is -1 - the class. The first buckets have an order.
        classes = class_of[column]
        buckets = int(rules.buckets[rules.columns[column]])
        if classes[value] == chosen:
            return 0.0, value
        ordered = np.flatnonzero(classes[:buckets] == chosen)
        if value < buckets and len(ordered):
            best = int(ordered[np.abs(ordered - value).argmin()])
            return abs(best - value) / (buckets - 1), best
        return 1.0, -1 - chosen

    patterns, pattern = np.unique(values[broken], axis=0, return_inverse=True)
    near = axes.class_of[axes.starts[:-1] + values]
    legal = np.delete(near, broken, axis=0)
    for number, start in enumerate(patterns.tolist()):
        rows = broken[pattern.ravel() == number]
        options = nearest_classes(rules, near[rows[0]], legal, len(patterns))
        moves = [[*map(move, columns, start, option)] for option in options.tolist()]
        distances, ways = np.array(moves).transpose(2, 0, 1)
        far = distances.sum(axis=1)
        values[rows] = ways[generator.choice(np.flatnonzero(far <= far.min() + 1e-9), len(rows))]
    for column, classes, frequent in zip(values.T, class_of, counts, strict=True):
        for which in np.unique(column[column < 0]).tolist():
            inside, rows = np.flatnonzero(classes == -1 - which), np.flatnonzero(column == which)
            weights = frequent[inside] + 0.5
            column[rows] = generator.choice(inside, len(rows), p=weights / weights.sum())
    if len(values) > 1:  # a record alone is a nearest one
        _restore(values, counts, rules, generator)


def _restore(values: Int32, counts: list[Int64], rules: Forbidden, generator: Generator) -> None:
    """Change single values, in place, towards how often each was; records stay legal."""
    owing = [(np.bincount(values[:, c], minlength=len(n)) != n).any() for c, n in enumerate(counts)]
    for place in np.tile(np.flatnonzero(owing), _PATIENCE):
        column = values[:, place]
        less = counts[place] - np.bincount(column, minlength=len(counts[place]))
        # Of each value that is too frequent, by chance, as many as there are too many.
        rows = generator.permutation(np.flatnonzero((less < 0)[column]))
        rows = rows[np.argsort(column[rows], kind="stable")]
        rank = np.arange(len(rows)) - np.searchsorted(column[rows], column[rows])
        rows = rows[rank < -less[column[rows]]]
        changed = values[rows]
        changed[:, place] = generator.permutation(np.repeat(np.arange(len(less)), less.clip(0)))
        legal = _boxes_of(changed, rules)[1] == 0
        values[rows[legal]] = changed[legal]
