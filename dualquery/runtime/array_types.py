"""Types of the arguments of compiled loops."""

from __future__ import annotations

from numba import types


def read_only(scalar: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is only read: frozen arrays and memory maps fit it too."""
    return types.Array(scalar, dimensions, "C", readonly=True)
