"""A second look at the queries themselves, where fewer are asked than columns.

Then noise on all queries is smaller than noise on all columns' shares. Where columns are full, a
query may also depart from independence by more than its noise, and hardly another one by the same
pair. So the second look measures the answers that may differ from those of independent columns by
more than their noise: by what shares may be off, or by departures. A measured answer is what both
looks say, each weighed by how far off it may be: a posterior mean. Post-processing, but for the
measurement. Where columns are nearly empty, a look at columns tells more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.bounded import bounded_interval
from dualquery.estimates.half_widths import LEVEL, gaussian_half_width
from dualquery.estimates.intervals import Intervals
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.mechanisms.matrix.departures import products_of_others
from dualquery.mechanisms.matrix.expansion import chances_of_literals, literals_of
from dualquery.mechanisms.matrix.looks import (
    Shares,
    in_shares,
    means_of,
    scale_for,
    worth_measuring,
)
from dualquery.mechanisms.matrix.scale_mixture import chances_of_scales, shrunk
from dualquery.mechanisms.matrix.share_intervals import share_intervals
from dualquery.mechanisms.matrix.staged_mixture import mixture_of
from dualquery.mechanisms.matrix.stages import Known, measured
from dualquery.mechanisms.matrix.width import is_wide
from dualquery.mechanisms.protocol import Outcome, Session
from dualquery.models.mixture import ProductMixture
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.sensitivity.bounds import complemented
from dualquery.room.statistics import SomeQueries

Float64 = NDArray[np.float64]


def asks_less(workload: Workload, looked: Features, sensitivity: float, near: Neighbours) -> bool:
    """Return whether queries about thousands of columns can be measured with less noise than these.

    Parameters
    ----------
    workload
        The queries.
    looked, sensitivity
        The features of the columns, and the L2 sensitivity of their sums.
    near
        What neighbouring tables differ in.
    """
    of_queries = near.furthest(1.0, 1.0) * len(workload) ** 0.5
    of_shares = in_shares(looked).max() * sensitivity
    return is_wide(workload) and bool(of_queries < of_shares)


def of_queries(known: Known, curator: Curator, session: Session) -> Outcome:
    """Measure the queries that may differ from what is known by more than their noise; answer."""
    planned, n, workload = known.planned, known.n, known.workload
    answers, off = independent(workload, known.shares_at_bits, known.at_bits(known.uncertain))
    departures = known.departures
    chosen = worth_measuring(np.hypot(off, departures), known.noise_of_answer)

    asked = SomeQueries(chosen)
    scale = scale_for(asked.moves(workload, planned.neighbours).l2, planned.ratio)
    noisy = curator.measure(asked, Gaussian(scale)).astype(np.float64) / n
    apart = noisy - answers[chosen]
    expected, noise, certain = departures[chosen], (scale / n) ** 2, off[chosen] ** 2
    prior = chances_of_scales(apart, expected, certain + noise)
    answers[chosen] += shrunk(apart, expected, noise, prior, certain)[0]

    generator = np.random.default_rng(session.public_seed)
    mixture = _of_columns(known, generator, session)
    return Outcome(
        answers=np.clip(answers, 0.0, 1.0),
        records=mixture.sample(planned.records, generator),
        trace=(measured(2, queries=len(chosen)),),
        intervals=_intervals(known, chosen, noisy, scale / n),
        measurements=Measurements.of_literals(
            workload.literals[chosen],
            noisy,
            scale / n,
            absent=complemented(workload)[chosen].astype(np.float64),
            note=CHOSEN,
        ),
        model=mixture,
    )


def independent(workload: Workload, shares: Float64, uncertain: Float64) -> tuple[Float64, Float64]:
    """Return the answers of independent columns, and what these are off as shares are, to first
    order: standard deviations; ``(m,)`` each.

    Parameters
    ----------
    workload
        The queries.
    shares, uncertain
        float64, shape ``(bits,)``: the shares of 1s, and what they may be off.
    """
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, shares)
    off = np.where(bits >= 0, uncertain[bits], 0.0)
    squared = ((products_of_others(holds) * off) ** 2).sum(axis=1)
    return (
        np.where(possible, holds.prod(axis=1), 0.0),
        np.where(possible, np.sqrt(squared), 0.0),
    )


def _of_columns(known: Known, generator: np.random.Generator, session: Session) -> ProductMixture:
    """Return independent columns with the shares as they are known."""
    looked = known.planned.looked
    factors = means_of(looked, known.shares)
    return mixture_of(
        known.first.bits,
        known.at_bits(factors),
        looked,
        factors,
        np.arange(0),
        generator,
        session,
    ).model()


def _intervals(
    known: Known, chosen: NDArray[np.int64], noisy: Float64, deviation: float
) -> Intervals:
    """Return intervals of measured queries from their noise, of the others from the shares.

    Which of the two a query has, the first look decides. So both miss with half of the chance: the
    other one adds no more.
    """
    none = Shares(np.empty(0, np.int32), np.empty(0), np.empty(0))
    looks = known.first, none
    found = share_intervals(known.workload, looks, known.planned.neighbours)
    critical = gaussian_half_width(1.0, (1.0 - LEVEL) / 2.0)
    spread = np.full(len(chosen), deviation)
    found.lower[chosen], found.upper[chosen] = bounded_interval(noisy, spread, critical, 0.0, 1.0)
    return Intervals(
        found.lower,
        found.upper,
        "from the noise of each answer that was measured; else of the columns' shares: a query "
        "holds on no more rows than its rarest literal",
    )
