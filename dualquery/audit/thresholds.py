"""The threshold of a learned schema: its delta by enumeration, and as it is drawn."""

from __future__ import annotations

import math
from itertools import product

import polars as pl
from scipy.stats import beta, norm

from dualquery.audit.findings import Finding
from dualquery.audit.repeated import ERROR
from dualquery.audit.tables import name_of
from dualquery.data.drafts.shapes import Values
from dualquery.data.readers.python_objects import FrameSource, frame_source
from dualquery.privacy.accountants.choice import ACCOUNTANTS
from dualquery.privacy.events import ThresholdedCounts
from dualquery.privacy.neighbours import Neighbours
from dualquery.room import learning
from dualquery.room.journal import NO_JOURNAL

_FAR = 60.0
"""An epsilon at which noise alone costs no delta."""

_TEXTS, _SCALE, _DELTA = 20_000, 0.4, 0.2
"""Texts of one row each, the noise in their counts, and the delta of their threshold."""


def audit_thresholds(relation: Neighbours) -> Finding:
    """Compare delta with the chance that a text which one table alone has is published.

    Parameters
    ----------
    relation
        Whose rows have that text: those of one unit, in any numbers.
    """
    finding, rows = Finding(), learning.rows_of_unit(relation)
    for columns, wide, delta in product((1, 3, 15), (1.0, 8.0), (1e-2, 1e-6)):
        sensitivity = learning.values_sensitivity(columns, relation)
        scale = wide * sensitivity
        tau = learning.threshold(scale, columns, relation, delta)
        units = [sizes for sizes in product(range(rows + 1), repeat=rows) if sum(sizes) <= rows]
        chances = [[norm.sf(tau - size, scale=scale) for size in unit if size] for unit in units]
        what = f"{columns} columns, {name_of(relation)}, delta {delta:g}: "
        worst = columns * max(map(math.fsum, chances))
        finding.compare(worst, delta / 2, f"{what}texts of one table")
        # Some text of the unit's is published: no such result is possible without it.
        shown = -math.expm1(columns * min(math.fsum(map(math.log1p, (-p for p in each)))
                                          for each in chances))  # fmt: skip
        schedule = (ThresholdedCounts(sensitivity, scale, delta),)
        for accountant in ACCOUNTANTS:
            if accountant.supports(schedule, 0.5) is None:
                charged = accountant.delta(schedule, _FAR)
                finding.compare(shown, charged, f"{what}delta of {accountant.name}")
        finding.tried += 1
        finding.pairs += len(units)
    return finding


def audit_single_texts() -> Finding:
    """Publish texts that one row each has, and compare their share with what delta allows.

    Each text is drawn for by itself, so that one table stands for as many worst pairs. The share is
    bounded from below by Clopper and Pearson's interval, which is wrong with a chance of `ERROR`.
    """
    relation = Neighbours.REPLACE_ONE
    frame = pl.DataFrame({"a": [f"text {number}" for number in range(_TEXTS)]})
    source = frame_source(frame, "a table")
    assert isinstance(source, FrameSource)
    room = learning.SchemaRoom(source, ("a",), ("a",), relation)
    sensitivity = learning.values_sensitivity(1, relation)
    finding = Finding()
    for epsilon in (
        1.0,
        2 * learning.LARGEST_EPSILON,
    ):  # above the largest noise is drawn otherwise
        event = ThresholdedCounts(sensitivity, _SCALE, _DELTA)
        room.open((event,), None, NO_JOURNAL, epsilon)
        (published,) = room.values([("a", Values())], _SCALE, _DELTA)
        hits = len(published)
        least = float(beta.ppf(ERROR, hits, _TEXTS - hits + 1)) if hits else 0.0
        finding.compare(least, _DELTA / 2, "a single row's text is published")
        finding.tried += _TEXTS
        finding.pairs += _TEXTS
    return finding
