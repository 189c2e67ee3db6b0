"""How compiled loops are declared: the decorator, and the types of their arguments."""

from __future__ import annotations

from functools import partial
from typing import Any

from numba import njit, types
from numpy.typing import NDArray

Array = NDArray[Any]
"""An argument of a compiled loop: the signature in its decorator states dtype and dimensions."""

kernel = partial(njit, nogil=True, cache=True)
"""Compile a loop once, for one signature: stored on disk, and run without the interpreter lock."""


def read_only(scalar: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is only read: frozen arrays and memory maps fit it too."""
    return types.Array(scalar, dimensions, "C", readonly=True)
