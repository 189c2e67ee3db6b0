"""Numba kernels of multiplicative weights with parities as queries, on an explicit vector."""

import numpy as np

from dualquery.runtime.array_types import Array, kernel


@kernel("boolean(uint64, uint64)", inline="always")
def odd(record: np.uint64, mask: np.uint64) -> bool:
    """Return whether a record has an odd number of the mask's bits."""
    word = record & mask
    for shift in (32, 16, 8, 4, 2, 1):
        word ^= word >> np.uint64(shift)
    return bool(word & np.uint64(1))


@kernel("float64(uint64[::1], uint64, float64[::1])")
def coefficient(records: Array, mask: np.uint64, shares: Array) -> float:
    """Return the mean parity of the bits of a mask."""
    total = 0.0
    for cell in range(len(records)):
        total += -shares[cell] if odd(records[cell], mask) else shares[cell]
    return total


@kernel("void(uint64[::1], uint64[::1], float64[::1], float64[::1])")
def coefficients(records: Array, masks: Array, shares: Array, out: Array) -> None:
    """Fill in the mean parity of every mask."""
    for query in range(len(masks)):
        out[query] = coefficient(records, masks[query], shares)


@kernel("void(uint64[::1], uint64[::1], float64[::1], int64, float64[::1])")
def multiply_weights(
    records: Array, masks: Array, targets: Array, passes: int, shares: Array
) -> None:
    """Run passes of ``A(x) ~ A(x) exp(chi(x) (target - chi(A)) / 2)`` over all masks, in place.

    Only the ratio of odd to even records matters. Targets and means lie in [-1, 1], so it lies in
    [1/e^2, e^2], and the shares are divided by their sum after each update: nothing overflows.
    """
    for _ in range(passes):
        for query in range(len(masks)):
            mask = masks[query]
            mean = coefficient(records, mask, shares)
            ratio = np.exp(mean - targets[query])
            total = 0.0
            for cell in range(len(records)):
                shares[cell] *= ratio if odd(records[cell], mask) else 1.0
                total += shares[cell]
            for cell in range(len(records)):
                shares[cell] /= total
