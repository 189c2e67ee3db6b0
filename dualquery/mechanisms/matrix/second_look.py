"""What the second of two looks measures: everything, all columns again, or what stands out.

Post-processing of the first look's noisy shares.
"""

from __future__ import annotations

import math
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.columns import spread_of_shares
from dualquery.mechanisms.matrix.dependence import spread_of_fit, spread_of_product_fit
from dualquery.mechanisms.matrix.looks import (
    in_shares,
    pairs_of,
    scale_for,
    singles_of,
    worth_measuring,
)
from dualquery.mechanisms.matrix.measurement import FeatureMeasurement
from dualquery.mechanisms.matrix.stages import Known
from dualquery.room.features import Features

Float64 = NDArray[np.float64]

_LEFT = 0.1
"""Mean error that a fit usually leaves, in mean standard deviations of the answers' noise."""

_BELOW = 0.8
"""Part of what independent columns leave that a fit has to be below. Asked for triples, which
depend on more than their pairs' departures, everything has the smaller mean error below about 0.8,
however empty columns are, and the smaller largest error below about 2: generated baskets of 120 to
3,000 items (bundles, topics, customers of ten kinds, items that call for another), triples of the
100 commonest, at epsilon 0.5 to 4."""

_CLEAR = 2.0
"""Deviations of noise by which a product has to be expected to depart so that it is measured. Most
depart by far less than is expected, and each that is measured adds noise to all. With 2 in place of
1 mean errors of pairs, and of triples of the 100 commonest items, were .58 to 1.07 of what they
were (middle .97) on eight generated tables, the largest errors .52 to 1.6 (middle 1.05)."""

_COLUMNS_A_PAIR = 10
"""Columns for each pair that is measured with them: shares have 5% more noise for it."""

_TOLD = 2.0
"""Standard deviations of noise that what is common to pairs has to exceed. Chosen, as was that
columns are compared with a fit, on generated tables of 200 to 400 independent columns, of six types
of rows, or alike but for how much rows hold, and on two public ones (500 words, 180 of DNA)."""


class SecondLook(Enum):
    """What may be measured."""

    EVERYTHING = "everything"
    COLUMNS = "columns"  # and some pairs
    STANDING_OUT = "what stands out"


def second_look(known: Known, full: FeatureMeasurement | None) -> SecondLook:
    """Return what tells more: everything, all columns again, or what stands out.

    Products of full columns depart all alike, so none stands out. What a fit to everything leaves
    is compared with what columns alone leave, their noise and the departures, by root mean squares.
    Pairs of nearly empty columns hardly depart at all: only what stands out is worth its noise.
    Longer queries depart by more than their pairs do: everything is measured where the error that a
    fit usually leaves (`_LEFT`) is well below that of independent columns (`_BELOW`).

    Parameters
    ----------
    known
        What the first look told.
    full
        The measurement of everything; None where that is not an option.
    """
    if full is None:
        return SecondLook.STANDING_OUT
    scale = scale_for(full.sensitivity, known.planned.ratio) / known.n
    if not known.columns_full:
        left = _LEFT * scale * full.mean_deviation
        longer = full.strategy.features.bits.shape[1] > 2
        worth = longer and left < _BELOW * known.departures.mean()
        return SecondLook.EVERYTHING if worth else SecondLook.STANDING_OUT
    departures = math.sqrt(float(np.mean(known.departures**2)))
    product = spread_of_product_fit(
        full.products, full.scales * scale, known.workload, known.shares_at_bits
    )
    fits = spread_of_fit(product, departures) < math.hypot(_spread_of_columns(known), departures)
    return SecondLook.EVERYTHING if fits else SecondLook.COLUMNS


def standing_out(features: Features, expected: Float64, noise_of_one: float) -> NDArray[np.int64]:
    """Return the places of columns and products that are worth measuring; increasing.

    Each column may differ from what is known by its noise at least, each product by `_CLEAR` times
    that; the one that may differ most stands alone if none may.
    Parameters as of `columns_and_some_pairs`.
    """
    told = expected / _CLEAR
    alone = singles_of(features)
    told[alone] = expected[alone]
    return worth_measuring(told, noise_of_one)


def columns_and_some_pairs(
    features: Features, expected: Float64, noise_of_one: float
) -> NDArray[np.int64]:
    """Return the places of all columns, and of the few pairs that may depart most; increasing.

    The pairs tell what ties all pairs alike, if some rows hold more than others. There are none
    where their noise hides even what is common to them.

    Parameters
    ----------
    features, expected
        What may be measured, and float64, one each: by how much it may differ from what is known,
        as a standard deviation.
    noise_of_one
        Standard deviation of the noise if one feature is measured; of m of them it is the root of
        m times as large.
    """
    columns, pairs = singles_of(features), pairs_of(features)
    most = np.argsort(-expected[pairs], kind="stable")[: len(columns) // _COLUMNS_A_PAIR]
    chosen = np.sort(np.append(columns, pairs[most]))
    common = math.sqrt(float(np.sum(expected[pairs[most]] ** 2)))
    return chosen if common > _TOLD * noise_of_one * math.sqrt(len(chosen)) else columns


def _spread_of_columns(known: Known) -> float:
    """Return by how much answers of columns that are measured again err as shares do."""
    planned = known.planned
    again = in_shares(planned.looked) * scale_for(planned.sensitivity, planned.ratio) / known.n
    off = known.uncertain * again / np.hypot(known.uncertain, again)
    return spread_of_shares(known.workload, known.shares_at_bits, known.at_bits(off))
