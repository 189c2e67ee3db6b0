"""The distribution of independent columns that knows nothing of the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain


def uniform_probabilities(domain: Domain) -> NDArray[np.float64]:
    """Return the chance of each bit under the uniform distribution over legal records."""
    return np.where(domain.sizes == 1, 0.5, 1.0 / domain.sizes)[domain.column_of_bit]
