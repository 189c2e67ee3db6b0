"""The exponential as a fixed sequence of IEEE operations: proven, portable and vectorised.

A library's ``exp`` is a call a number, with an error that its maker states or not. Here every
operation is an addition, subtraction or multiplication in double precision, which rounds in the
same way everywhere, so that the error has a proof, runs on different machines agree bit for bit,
and the processor does eight numbers at a time.
"""
# ruff: noqa: ARG001 - Numba prescribes the parameters of an intrinsic.

from typing import Any

import numpy as np
from numba import float64, types
from numba.core.extending import intrinsic

from dualquery.runtime.array_types import kernel

_PER_LN2 = 1.4426950408889634
# ln 2 in two parts: the first has 32 bits, so that its product with a whole number below 2^21 is
# exact.
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10
# Adding this rounds a small number to a whole one, which the lowest bits of the sum then hold.
_ROUNDER = 6755399441055744.0


def _other_type(typing_context: Any, value: Any) -> Any:
    """Return the 64 bits of a float64 as a uint64, and those of a uint64 as a float64."""
    target = {types.float64: types.uint64, types.uint64: types.float64}.get(value)
    if target is None:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(target))

    return target(value), generate


_reinterpret: Any = intrinsic(_other_type)


@kernel(float64(float64))
def exponential(x: float) -> float:
    """Return ``exp(x)`` for ``x`` in ``[-700, 0]``, off by less than 2^-51 of it; 1 for 0.

    With ``k`` the whole number next to ``x / ln 2``, ``exp(x) = 2^k exp(r)`` for
    ``r = x - k ln 2`` of magnitude at most 0.347. The parts of the error, as shares of the result
    (at least 0.707 before the scaling by 2^k, which is exact):

    - ``r``: the first difference is exact, because both terms are multiples of the last place of
      ``x`` and cancel to less than half. The second one rounds by at most 2^-55; the
      product that it subtracts and the bits of ln 2 left out are off by far less: 2^-54.9.
    - the Taylor polynomial of degree 13: ``0.347^14 / 14! / 0.7`` = 2^-57.2.
    - Horner's scheme: the last addition rounds by at most 2^-53 (2^-54 below 1), its product by
      2^-55, and what it multiplies by ``r`` was off by at most 2^-52: less than
      (2^-53 + 2^-55 + 0.347 * 2^-52) for ``r >= 0``, and (2^-54 + 2^-55 + 0.347 * 2^-52) / 0.707
      for ``r < 0``: 2^-51.9 in either case.
    """
    shifted = x * _PER_LN2 + _ROUNDER
    k = shifted - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    # The exponent field of p, raised by k; the bits of the rounder shift out at the top.
    return float(_reinterpret(_reinterpret(p) + (_reinterpret(shifted) << np.uint64(52))))
