"""How compiled loops are declared, and what they do with machine words.

Word k of the stream of ``key`` is ``mix(key + k GOLDEN)`` (SplitMix64: Steele, Lea and Flood,
OOPSLA 2014), the same in any order and thread. It is no source of noise, nor of private choices.
"""
# ruff: noqa: ARG001 - Numba prescribes the parameters of an intrinsic.

from typing import Any

import numpy as np
from numba import float64, types, uint64
from numba.core.extending import intrinsic
from numpy.typing import NDArray

from solvers.compiled import kernel as kernel

Array = NDArray[Any]
"""An argument of a compiled loop: the signature in its decorator states dtype and dimensions."""


def read_only(scalar: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is only read: frozen arrays and memory maps fit it too."""
    return types.Array(scalar, dimensions, "C", readonly=True)


def _popcount(typing_context: Any, word: Any) -> Any:
    """Return the number of 1s of a uint64, as a uint64: one instruction of the processor."""
    if word != types.uint64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


# Compiled code passes the word only, which the type of an intrinsic does not tell.
popcount: Any = intrinsic(_popcount)


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@kernel(uint64(uint64), inline="always")
def mix(z: np.uint64) -> np.uint64:
    """Return a 64-bit hash: a bijection in which every input bit moves half of the output bits."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@kernel(float64(uint64), inline="always")
def unit(word: np.uint64) -> float:
    """Return a number strictly between 0 and 1 made of 53 bits of a word."""
    return (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53
