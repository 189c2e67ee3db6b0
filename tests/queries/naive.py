"""What queries mean, written down as plainly as possible: the oracle of these tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def truth(literals: NDArray[np.int32], rows: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return whether each query (row of codes, -1 ignored) holds on each record: (m, n)."""
    held = np.ones((len(literals), len(rows)), bool)
    for q, query in enumerate(literals):
        for code in query[query >= 0]:
            held[q] &= (rows[:, code >> 1] ^ (code & 1)) == 1
    return held


def random_literals(
    m: int, bits: int, way: int, rng: np.random.Generator, ragged: bool = False
) -> NDArray[np.int32]:
    """Return signed conjunctions over different bits, some shorter than ``way`` when ragged."""
    literals = np.array([rng.choice(bits, way, replace=False) for _ in range(m)]) * 2
    literals += rng.integers(0, 2, literals.shape)
    if ragged:
        lengths = rng.integers(1, way + 1, m)
        literals[np.arange(way) >= lengths[:, None]] = -1
    return literals.astype(np.int32)
