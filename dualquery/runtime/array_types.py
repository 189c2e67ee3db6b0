"""How compiled loops are declared: the decorator, and the types of their arguments."""

from __future__ import annotations

from typing import Any

from numba import types
from numpy.typing import NDArray

from solvers.compiled import kernel as kernel

Array = NDArray[Any]
"""An argument of a compiled loop: the signature in its decorator states dtype and dimensions."""


def read_only(scalar: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is only read: frozen arrays and memory maps fit it too."""
    return types.Array(scalar, dimensions, "C", readonly=True)
