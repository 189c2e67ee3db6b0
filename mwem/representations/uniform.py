"""The uniform distribution, from which a run starts unless a noisy start is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def uniform_values(
    sizes: NDArray[np.int64], count: int, generator: np.random.Generator
) -> NDArray[Any]:
    """Draw independent uniform values of columns.

    Parameters
    ----------
    sizes
        int64, shape ``(columns,)``: number of values of each.
    count
        Number of records.
    generator
        Source of randomness; nothing private depends on it.

    Returns
    -------
    Unsigned integers as narrow as the sizes allow, shape ``(count, columns)``.
    """
    kind = np.min_scalar_type(int(sizes.max()) - 1)
    values = np.empty((count, len(sizes)), dtype=kind)
    for size in np.unique(sizes).tolist():
        columns = np.flatnonzero(sizes == size)
        values[:, columns] = generator.integers(0, size, (count, len(columns)), dtype=kind)
    return values
