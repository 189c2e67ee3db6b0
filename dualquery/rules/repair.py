"""Records that keep the rules: they exchange values, and what is left over becomes the nearest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.rules.exchange_kernels import exchange
from dualquery.rules.forbidden import Forbidden
from dualquery.rules.nearest import legal_classes, nearest_classes
from dualquery.rules.repair_kernels import Values, become_nearest

_OFFERS = 100
"""That a broken record makes in one pass over the records."""

_WORTH = 0.98
"""Passes end when one leaves more than this part of the broken records that it found."""


def repaired(
    records: NDArray[np.uint8], rules: Forbidden, generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Return records that all keep the rules.

    First broken records exchange single values with others, so that each value stays as frequent as
    it was (`dualquery.rules.exchange_kernels`). Let p be a distribution over records, and q the one
    next to it, in relative entropy, among those over legal records with given shares of the values.
    Then each other one among them, such as that of a table that keeps the rules, is nearer to q
    than to p (Csiszár 1975, theorem 2.2). Records of p that exchange at random come near to q
    (Csiszár 1984): legal records are not worse, but better.

    Where no exchange helps, a record becomes a nearest legal one. Nearest is what differs in the
    fewest columns; among these, what moves numbers and dates over the fewest buckets, as a share of
    the column's, any other change counting as all of them. Of what is as near, each record takes
    what keeps the shares of the values closest to what they were, in a random order of the records.

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
    exchanged = _exchanged(records, rules, generator)
    broken = np.flatnonzero(rules.broken(exchanged) >= 0)
    return _nearest(exchanged, broken, rules, generator) if len(broken) else exchanged


def _exchanged(
    records: NDArray[np.uint8], rules: Forbidden, generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Return the records after exchanges, as long as these help.

    First only those exchanges that lead out of boxes are made, which change the fewest records;
    then also those that lead from one box to another.
    """
    classes, values = rules.classes(records), rules.values(records)
    for fewer in (1, 0):
        before, left = np.inf, len(records)
        while 0 < left <= _WORTH * before:
            order = generator.permutation(len(records))
            word = np.uint64(generator.integers(2**64, dtype=np.uint64))
            before = left
            left = exchange(rules.compiled, order, _OFFERS, fewer, word, classes, values)
    return _with_values(records, rules, np.arange(len(records)), values)


def _nearest(
    records: NDArray[np.uint8],
    broken: NDArray[np.int64],
    rules: Forbidden,
    generator: np.random.Generator,
) -> NDArray[np.uint8]:
    """Return records of which the broken ones, by their numbers, have become nearest legal ones."""
    legal = legal_classes(rules)
    assert legal is not None  # the rules were read, so there is one
    generator.shuffle(broken)
    classes = rules.classes(records[broken])
    patterns, pattern = np.unique(classes, axis=0, return_inverse=True)
    options = [nearest_classes(rules, each, legal) for each in patterns]
    values = rules.values(records[broken])
    known = _values(rules, records)
    become_nearest(
        known,
        known.wanted.copy(),
        pattern.ravel().astype(np.int64),
        np.concatenate(([0], np.cumsum([len(each) for each in options]))).astype(np.int64),
        np.concatenate(options),
        classes,
        values,
    )
    return _with_values(records, rules, broken, values)


def _with_values(
    records: NDArray[np.uint8],
    rules: Forbidden,
    rows: NDArray[np.int64],
    values: NDArray[np.int32],
) -> NDArray[np.uint8]:
    """Return records of which some have other values of the columns of rules."""
    better, axes = records.copy(), rules.axes
    for place, (first, bits) in enumerate(zip(axes.first, axes.bits, strict=True)):
        if bits == 1:
            better[rows, first] = values[:, place]
        else:
            better[rows, first : first + bits] = 0
            better[rows, first + values[:, place]] = 1
    return better


def _values(rules: Forbidden, records: NDArray[np.uint8]) -> Values:
    """Return the values of the columns of rules, each wanted as often as the records have it."""
    axes = rules.axes
    ones = records.sum(axis=0, dtype=np.int64)
    wanted, of_class, member = [], [0], []
    for place, (first, bits) in enumerate(zip(axes.first, axes.bits, strict=True)):
        count = ones[first : first + bits]
        wanted.append(np.array([len(records) - count[0], count[0]]) if bits == 1 else count)
        inside = axes.class_of[axes.starts[place] : axes.starts[place + 1]]
        member.append(np.argsort(inside, kind="stable"))
        of_class += (of_class[-1] + np.cumsum(np.bincount(inside))).tolist()
    return Values(
        starts=axes.starts,
        classes=axes.classes,
        buckets=rules.buckets[rules.columns],
        of_class=np.array(of_class, np.int64),
        member=np.concatenate(member).astype(np.int32),
        wanted=np.concatenate(wanted) + 0.5,  # what no record has is possible, too
    )
