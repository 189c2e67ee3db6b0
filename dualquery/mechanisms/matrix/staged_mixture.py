"""The mixture that records of `staged` are drawn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.looks import singles_of
from dualquery.mechanisms.matrix.mixture import Mixture, MixtureFit
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.mechanisms.protocol import Session
from dualquery.room.features import Features

Float64 = NDArray[np.float64]

_COMPONENTS, _STEPS, _PULL = 64, 600, 0.2
"""Of `MixtureFit`."""

_LEAST = 1e-9
"""Chance of a value in a record, at least: some value of a column has one above 0."""


def mixture_of(
    looked: NDArray[np.int32],
    means: Float64,
    features: Features,
    model: Float64,
    products: NDArray[np.int64],
    generator: np.random.Generator,
    session: Session,
) -> Mixture:
    """Return a mixture of columns with measured products that are fitted, else independent.

    Parameters
    ----------
    looked, means
        int32: the bits whose shares are known; float64, shape ``(bits,)``: the means of their
        factors.
    features, model
        Features, and their means.
    products
        int64: those of two columns or more that were measured.
    """
    domain, bits = features.domain, features.bits
    held = np.flatnonzero(np.isin(domain.column_of_bit, domain.column_of_bit[looked]))
    # The values of a column that nobody asks about share what the others leave.
    asked = np.isin(held, looked)
    column = domain.column_of_bit[held]
    left = 1.0 - np.bincount(column, means[held])[column]
    others = np.bincount(column, ~asked)[column]
    rest = np.maximum(left, _LEAST) / np.maximum(others, 1)
    binary = domain.has_two_values[held]
    filled = np.where(asked | binary, means[held], rest)
    values = np.where(binary, filled, np.maximum(filled, _LEAST))[:, None].astype(np.float32)
    if len(products):
        tied = np.unique(bits[products][bits[products] >= 0])
        singles = singles_of(features)
        fitted = np.concatenate((singles[np.isin(bits[singles, 0], tied)], products))
        fit = MixtureFit(
            ProductTerms.of_features(Features(bits[fitted], domain)),
            model[fitted],
            np.ones(len(fitted)),
            _COMPONENTS,
            _STEPS,
            _PULL,
        ).run(generator, session.threads, session.progress)
        values = np.repeat(values, _COMPONENTS, axis=1)
        values[np.searchsorted(held, fit.bits)] = fit.values
    # Noisy shares of a column do not add up to 1; chances do.
    place = np.cumsum(np.diff(column, prepend=-1) > 0) - 1
    totals = np.add.reduceat(values, np.searchsorted(place, np.arange(place[-1] + 1)), axis=0)
    values = np.where(binary[:, None], values, values / totals[place])
    return Mixture(domain, held, values)
