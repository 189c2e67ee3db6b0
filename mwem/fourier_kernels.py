"""Numba kernels of multiplicative weights with parities as queries, on an explicit vector."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit("boolean(uint64, uint64)", nogil=True, cache=True, inline="always")
def odd(record: np.uint64, mask: np.uint64) -> bool:
    """Return whether a record has an odd number of the mask's bits."""
    word = record & mask
    for shift in (32, 16, 8, 4, 2, 1):
        word ^= word >> np.uint64(shift)
    return bool(word & np.uint64(1))


@njit("float64(uint64[::1], uint64, float64[::1])", nogil=True, cache=True)
def coefficient(records: NDArray[np.uint64], mask: np.uint64, shares: NDArray[np.float64]) -> float:
    """Return the mean parity of the bits of a mask."""
    total = 0.0
    for cell in range(len(records)):
        total += -shares[cell] if odd(records[cell], mask) else shares[cell]
    return total


@njit("void(uint64[::1], uint64[::1], float64[::1], float64[::1])", nogil=True, cache=True)
def coefficients(
    records: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    shares: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Fill in the mean parity of every mask."""
    for query in range(len(masks)):
        out[query] = coefficient(records, masks[query], shares)


@njit("void(uint64[::1], uint64[::1], float64[::1], int64, float64[::1])", nogil=True, cache=True)
def multiply_weights(
    records: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    targets: NDArray[np.float64],
    passes: int,
    shares: NDArray[np.float64],
) -> None:
    """Run passes of ``A(x) ~ A(x) exp(chi(x) (target - chi(A)) / 2)`` over all masks, in place.

    Targets and means lie in [-1, 1], so a factor lies in [1/e, e], and the shares are divided by
    their sum after each update: nothing overflows.
    """
    for _ in range(passes):
        for query in range(len(masks)):
            mask = masks[query]
            mean = coefficient(records, mask, shares)
            up = np.exp((targets[query] - mean) / 2.0)
            total = 0.0
            for cell in range(len(records)):
                shares[cell] *= 1.0 / up if odd(records[cell], mask) else up
                total += shares[cell]
            for cell in range(len(records)):
                shares[cell] /= total
