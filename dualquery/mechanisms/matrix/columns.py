"""Columns alone: their shares measured as queries need them, and drawn towards what is likely.

Post-processing of noisy numbers, but for which columns get how much noise, which follows from the
queries, the schema, and shares that are public or noisy.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.data.domain import Domain
from dualquery.mechanisms.baselines.independent import to_distributions
from dualquery.mechanisms.baselines.product import uniform_probabilities
from dualquery.mechanisms.matrix.asked import independent
from dualquery.mechanisms.matrix.departures import products_of_others
from dualquery.mechanisms.matrix.expansion import chances_of_literals, literals_of
from dualquery.mechanisms.matrix.looks import Shares
from dualquery.mechanisms.matrix.shares import posterior_around
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features
from dualquery.room.strategy import Strategy

Float64 = NDArray[np.float64]

_LEAST = 0.01
"""Least use of a column, relative to the mean."""

_POWER = 1.0 / 8.0
"""Of cost over use, to which the noise of columns is proportional. A quarter gives the least mean
variance of the answers (`scales`), 0 the same noise to all columns; between them, no few columns
are left with so much noise that they make the largest error."""

_STEPS = 8
"""Scales to each factor of 2."""

_MANY = 128
"""Binary columns that are enough to tell a prior of any shape. Of fewer, the noise of single ones
passes for groups of them, and what they may be off is told too small: on public tables of 64 to 126
columns mean errors grew by up to a tenth. On those of 128 to 889 they fell, to a third at best, or
grew by 3 in 100 at most."""


def plan_columns(workload: Workload, chances: Float64, neighbours: Neighbours) -> Strategy:
    """Return how the columns that queries are about are measured.

    Parameters
    ----------
    workload
        The queries.
    chances
        float64, shape ``(bits,)``: likely shares of 1s.
    neighbours
        What neighbouring tables differ in.
    """
    bits, negated, possible = literals_of(workload)
    domain = workload.domain
    present = (bits >= 0) & possible[:, None]
    features = Features(np.unique(bits[present])[:, None].astype(np.int32), domain)
    changes = products_of_others(chances_of_literals(bits, negated, chances)) ** 2
    column = domain.column_of_bit[bits]
    used = np.bincount(column[present], changes[present], domain.columns)[features.columns[:, 0]]
    signs = features.contrasts[:, 0]
    # In shares: the sign of a share changes by 2 where this changes by 1.
    unit = np.where(signs, 2.0, 1.0)
    cost = np.where(signs, 1.0, 2.0) if neighbours.replaces else unit**-2
    # All of them 0: each is a product with shares that are taken to be 0.
    weight = used / used.max() if used.max() > 0.0 else np.ones(len(used))
    powers = np.log2(unit * (cost / np.maximum(weight, _LEAST * weight.mean())) ** _POWER)
    return Strategy(features, np.exp2(np.round(_STEPS * powers) / _STEPS), neighbours)


def drawn_together(shares: Shares, domain: Domain) -> Shares:
    """Return shares with a part of their noise taken out, and the errors that are left.

    Those of wider columns are drawn to equal shares of the values, by as much as their noise is of
    how far they lie apart (James and Stein, "Estimation with quadratic loss", Berkeley Symposium
    1961; of unequal noise: Efron and Morris, "Data analysis using Stein's estimator and its
    generalizations", JASA 70, 1975). Where noise is all that sets them apart they become equal, as
    the uniform distribution has them. Those of binary columns are drawn likewise to their mean. If
    these are many, each is drawn to wherever others lie (`shares.posterior_around`).
    """
    values, deviations = shares.values.copy(), shares.deviations.copy()
    sizes = axis_sizes(domain)[domain.column_of_bit[shares.bits]]
    for at in (np.flatnonzero(sizes <= 2), np.flatnonzero(sizes > 2)):
        binary = bool((sizes[at] <= 2).all())
        free = len(at) - 1.0 if binary else (1.0 - 1.0 / sizes[at]).sum()
        if free <= 2:
            continue  # so few tell nothing of each other
        noise = deviations[at] ** 2
        centre = values[at].mean() if binary else 1.0 / sizes[at]
        squares = ((values[at] - centre) ** 2).sum() / (free - 2.0)
        apart = max(float(squares - noise.sum() / free), 0.0)
        if binary and len(at) >= _MANY:
            values[at], deviations[at] = posterior_around(
                values[at], deviations[at], float(centre), math.sqrt(apart)
            )
        else:
            trust = apart / (apart + noise)
            values[at] = centre + trust * (values[at] - centre)
            deviations[at] = np.sqrt(trust * noise)
    return Shares(shares.bits, values, deviations)


def learned(shares: Shares, domain: Domain) -> tuple[Float64, Float64]:
    """Return the chances of all bits, distributions, and what they may be off: ``(bits,)`` each.

    Values that were not measured share what the others of their column leave; columns that were
    not measured are uniform.
    """
    found = drawn_together(shares, domain)
    column, uniform = domain.column_of_bit, uniform_probabilities(domain)
    known = np.zeros(domain.bits, np.bool_)
    known[found.bits] = True
    values, uncertain = np.zeros((2, domain.bits))
    values[found.bits], uncertain[found.bits] = found.values, found.deviations
    left = np.maximum(1.0 - np.bincount(column, values)[column], 0.0)
    others = np.maximum(np.bincount(column, ~known)[column], 1)
    touched = np.bincount(column, known)[column] > 0
    values = np.where(known, values, np.where(touched, left / others, uniform))
    return to_distributions(domain, values), uncertain


def spread_of_shares(workload: Workload, chances: Float64, uncertain: Float64) -> float:
    """Return by how much answers of independent columns err as shares do: root mean square.

    Parameters
    ----------
    workload
        The queries.
    chances, uncertain
        float64, shape ``(bits,)``: the shares of 1s, and what they may be off.
    """
    _, off = independent(workload, chances, uncertain)
    return math.sqrt(float(np.mean(off**2)))


def spread_of_noise(workload: Workload, chances: Float64, shares: Shares) -> float:
    """Return the same of the noise of shares; others are taken as known."""
    uncertain = np.zeros(workload.domain.bits)
    uncertain[shares.bits] = shares.deviations
    return spread_of_shares(workload, chances, uncertain)


def spread_after(
    workload: Workload, chances: Float64, uncertain: Float64, first: Shares, again: Shares
) -> float:
    """Return the same of columns that are measured again, before they are.

    Of many binary columns a first look leaves less than its noise: it tells what most are like.

    Parameters
    ----------
    workload
        The queries.
    chances, uncertain
        float64, shape ``(bits,)``: what `learned` makes of the first look.
    first, again
        Both looks. Of the second only the noise counts.
    """
    domain = workload.domain
    binary = axis_sizes(domain)[domain.column_of_bit[first.bits]] <= 2
    told = binary & (np.count_nonzero(binary) >= _MANY)
    off = np.where(told, np.minimum(uncertain[first.bits], first.deviations), first.deviations)
    return spread_of_noise(workload, chances, replace(first, deviations=off).combined(again))
