"""SplitMix64 for compiled loops: words that look random, each a hash of its place in a stream.

Word k of the stream of ``key`` is ``mix(key + k GOLDEN)`` (Steele, Lea and Flood, OOPSLA 2014, with
Stafford's constants). It needs no word before it, so any order and any thread gives the same.
Nothing private may depend on these words: they are no source of noise.
"""

from __future__ import annotations

import numpy as np
from numba import float64, uint64

from dualquery.runtime.array_types import kernel

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
