"""What the second of two looks measures: everything, all columns again, or what stands out.

Post-processing of the first look's noisy shares.
"""

from __future__ import annotations

import math
from enum import Enum

import numpy as np

from dualquery.mechanisms.matrix.columns import spread_of_shares
from dualquery.mechanisms.matrix.dependence import spread_of_fit, spread_of_product_fit
from dualquery.mechanisms.matrix.looks import in_shares, scale_for
from dualquery.mechanisms.matrix.measurement import FeatureMeasurement
from dualquery.mechanisms.matrix.stages import Known

_LEFT = 0.1
"""Mean error that a fit usually leaves, in mean standard deviations of the answers' noise."""

_ABOVE = 1.4
"""Asked for triples, which depend on more than their pairs' departures, everything had the smaller
errors from a share of 1 / 1.4 on, however empty columns were; on generated tables of 100 to 300
columns, alike but for how much rows hold or of eight types, at epsilon 0.02 to 1."""


class SecondLook(Enum):
    """What may be measured."""

    EVERYTHING = "everything"
    COLUMNS = "columns"
    STANDING_OUT = "what stands out"


def second_look(known: Known, full: FeatureMeasurement | None) -> SecondLook:
    """Return what tells more: everything, all columns again, or what stands out.

    Queries longer than pairs depart from independence by more than single products tell:
    everything is measured where the error that a fit usually leaves (`_LEFT`) is not far above that
    of independent columns (`_ABOVE`). Pairs of nearly empty columns hardly depart at all: only what
    stands out is worth its noise. Pairs of full ones depart all alike, so none stands out. What a
    fit to all of them leaves is compared with what columns alone leave, their noise and the
    departures, by root mean squares.

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
    if full.strategy.features.bits.shape[1] > 2:
        left = _LEFT * scale * full.mean_deviation
        worth = left < _ABOVE * known.departures.mean()
        return SecondLook.EVERYTHING if worth else SecondLook.STANDING_OUT
    if not known.columns_full:
        return SecondLook.STANDING_OUT
    departures = math.sqrt(float(np.mean(known.departures**2)))
    product = spread_of_product_fit(
        full.products, full.scales * scale, known.workload, known.shares_at_bits
    )
    fits = spread_of_fit(product, departures) < math.hypot(_spread_of_columns(known), departures)
    return SecondLook.EVERYTHING if fits else SecondLook.COLUMNS


def _spread_of_columns(known: Known) -> float:
    """Return by how much answers of columns that are measured again err as shares do."""
    planned = known.planned
    again = in_shares(planned.looked) * scale_for(planned.sensitivity, planned.ratio) / known.n
    off = 1.0 / np.hypot(1.0 / known.uncertain, 1.0 / again)
    return spread_of_shares(known.workload, known.shares_at_bits, known.at_bits(off))
