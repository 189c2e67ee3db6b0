"""A second look at everything that queries are made of, and whether columns are full.

On a table whose columns are full, nearly every product may differ from what the columns' shares say
of it, and a mixture that is fitted to all of them learns more than the few largest tell. How full
they are, the noisy shares of the first look say. Post-processing of these.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.independence import departures
from dualquery.mechanisms.matrix.drawn import Known
from dualquery.mechanisms.matrix.expansion import Expansion, chances_of_literals, literals_of
from dualquery.mechanisms.matrix.looks import (
    Shares,
    by_precision,
    expected_departures,
)
from dualquery.mechanisms.matrix.measurement import FeatureMeasurement
from dualquery.mechanisms.matrix.scales import FIT, plan_strategy
from dualquery.models.mixture import ProductMixture
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features

Float64 = NDArray[np.float64]

_FULL = 0.2
"""Chosen on generated tables of 100 to 300 columns, alike but for how much rows hold or of eight
types, at epsilon 0.02 to 1. Asked for pairs, with a fullness of .07 and .11 (columns' mean shares
.02 and .03) what stands out had the smaller largest errors, mostly also the smaller mean ones; with
.4 and .6 (.15 and .3) everything had, but for the smallest budgets. Real tables are at .02 to .1
(six of baskets and visits) or at .3 to .6 (plants, mushroom, pumsb_star)."""


def everything(
    workload: Workload, expansion: Expansion, neighbours: Neighbours
) -> FeatureMeasurement | None:
    """Return the measurement of all that queries are made of; None where that is not an option.

    That is for queries about binary columns.
    """
    bits = workload.literals[workload.literals >= 0] >> 1
    if not workload.domain.has_two_values[bits].all():
        return None
    return FeatureMeasurement(expansion, plan_strategy(expansion, neighbours, FIT))


def departures_of(workload: Workload, shares: Float64) -> Float64:
    """Return by how much each answer may differ from that of independent columns: ``(m,)``.

    A standard deviation (`dualquery.estimates.independence`); 0 where no record is satisfied.

    Parameters
    ----------
    workload
        The queries.
    shares
        float64, shape ``(bits,)``: the shares of 1s.
    """
    bits, negated, possible = literals_of(workload)
    return np.where(possible, departures(chances_of_literals(bits, negated, shares)), 0.0)


def are_full(features: Features, looked: Features, shares: Float64) -> bool:
    """Return whether columns are full, by their shares: see `fullness` for the parameters."""
    return fullness(features, looked, shares) > _FULL


def fullness(features: Features, looked: Features, shares: Float64) -> float:
    """Return how large departures may be, compared to those of columns that are half full.

    The root of a ratio of mean squares, in [0, 1]; 0 if no product is measured.

    Parameters
    ----------
    features
        What is measured.
    looked
        The features of one column.
    shares
        float64, one for each of these columns: the share of 1s.
    """
    products = Features(features.bits[(features.bits >= 0).sum(axis=1) > 1], features.domain)
    if not len(products):
        return 0.0
    known = np.zeros(len(shares))
    found = expected_departures(products, looked, shares, known)
    largest = expected_departures(products, looked, np.full(len(shares), 0.5), known)
    return float(np.sqrt(np.mean(found**2) / np.mean(largest**2)))


def with_shares(known: Known, first: Shares) -> Known:
    """Return what a measurement of everything and earlier shares of the columns say together."""
    features = known.source.products.bits
    alone = np.flatnonzero((features >= 0).sum(axis=1) == 1)
    at = first.places(features[alone, 0])
    means, deviations = known.means.copy(), known.deviations.copy()
    # The sign of a share p is 1 - 2 p.
    means[alone], deviations[alone] = by_precision(
        means[alone], deviations[alone], 1.0 - 2.0 * first.values[at], 2.0 * first.deviations[at]
    )
    return replace(known, means=means, deviations=deviations)


def with_others(model: ProductMixture, asked: NDArray[np.int32], shares: Float64) -> ProductMixture:
    """Return a model with the columns that queries are not about, by their shares.

    Parameters
    ----------
    model
        Of the columns that queries are about.
    asked
        The bits of these.
    shares
        float64, shape ``(bits,)``: shares of the others; all are of binary columns.
    """
    others = np.flatnonzero(model.domain.sizes[model.domain.column_of_bit] == 1)
    others = np.setdiff1d(others, asked)
    chances = model.chances.copy()
    chances[others] = shares[others, None]
    return replace(model, chances=chances)
