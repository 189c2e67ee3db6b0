"""Whether some of many noisy numbers stand out of the noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

BY_NOISE = 0.001
"""Chance, at most, that noise alone leaves what is taken to stand out of it.

The largest noise of many is some eight times the largest error where columns are independent. If it
is believed in one of 20 tables, it adds two fifths to that error on average; in one of 1,000, less
than a hundredth. Of 10,000 numbers one has to be 5.3 deviations off to be seen then, not 4.6.
"""


def expected_beyond(falling: Float64) -> Float64:
    """Return how many of so many numbers noise alone would leave beyond each of them, over how many
    there are: float64, shape ``(m,)``.

    Parameters
    ----------
    falling
        float64, shape ``(m,)``, at least 0, falling: distances in standard deviations of Gaussian
        noise.
    """
    from scipy.special import erfc

    beyond: Float64 = erfc(falling / math.sqrt(2.0))
    return len(falling) * beyond / np.arange(1, len(falling) + 1)


def chance_by_noise(distances: Float64) -> float:
    """Return the chance, at most, that noise alone leaves distances of which some stand out so.

    Simes, "An improved Bonferroni procedure for multiple tests of significance", Biometrika 73,
    1986.

    Parameters
    ----------
    distances
        float64, shape ``(m,)``, at least 0: in standard deviations of Gaussian noise.
    """
    return float(expected_beyond(np.sort(distances)[::-1]).min(initial=1.0))
