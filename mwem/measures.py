"""Distances from the truth. **Not private**: for the holder of the data, and for experiments."""

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError


def maximum_error(answers: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return the largest absolute difference of two arrays of answers; **not private**."""
    return float(np.abs(np.subtract(answers, truth, dtype=np.float64)).max())


def mean_squared_error(answers: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return the mean of the squared differences of two arrays of answers; **not private**."""
    return float(np.mean(np.subtract(answers, truth, dtype=np.float64) ** 2))


def relative_entropy(truth: NDArray[np.float64], model: NDArray[np.float64]) -> float:
    """Return ``RE(B || A) = sum B ln(B / A)`` of two histograms, in nats; **not private**.

    Fienberg, Rinaldo and Yang's measure in the MWEM paper, section 3.2. The Julia package
    PrivateMultiplicativeWeights prints it in bits.

    Parameters
    ----------
    truth, model
        Arrays of one shape, >= 0: B and A up to factors; both are scaled to add up to 1.

    Returns
    -------
    float
        >= 0 up to rounding; infinite if the model gives no weight to a cell that holds rows.

    Raises
    ------
    BadInputError
        If the shapes differ, or a histogram is empty, negative somewhere or not finite.
    """
    sums = [float(each.sum()) if (each >= 0).all() else np.nan for each in (truth, model)]
    if truth.shape != model.shape or not all(0 < each < np.inf for each in sums):
        raise BadInputError(
            "relative entropy needs two histograms of one shape that are not empty, not "
            f"{truth.shape} and {model.shape} that add up to {sums[0]:g} and {sums[1]:g}"
        )
    b, a = truth / truth.sum(), model / model.sum()
    held = b > 0
    if (a[held] == 0).any():
        return float("inf")
    return float(np.sum(b[held] * np.log(b[held] / a[held])))
