"""Records become the nearest ones that keep the rules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.rules.forbidden import Forbidden
from dualquery.rules.nearest import legal_classes, nearest_classes
from dualquery.rules.repair_kernels import Values, become_nearest


def repaired(
    records: NDArray[np.uint8], rules: Forbidden, generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Return records in which each that breaks a rule has become a nearest legal one.

    Nearest is what differs in the fewest columns; among these, what moves numbers and dates over
    the fewest buckets, as a share of the column's, any other change counting as all of them. Of
    what is as near, each record takes what keeps the shares of the values closest to what they
    were, in a random order of the records.

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
    broken = np.flatnonzero(rules.broken(records) >= 0)
    if not len(broken):
        return records
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
    better = records.copy()
    axes = rules.axes
    for place, (first, bits) in enumerate(zip(axes.first, axes.bits, strict=True)):
        if bits == 1:
            better[broken, first] = values[:, place]
        else:
            better[broken, first : first + bits] = 0
            better[broken, first + values[:, place]] = 1
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
