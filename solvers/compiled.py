"""How the compiled loops of the solvers are declared."""

from __future__ import annotations

from functools import partial

from numba import njit

kernel = partial(njit, nogil=True, cache=True)
"""Compile once, for one signature: stored on disk, and run without the interpreter lock."""

loop = partial(kernel, _nrt=False)
"""The same for what allocates no array, and so need not count references to any.

To take an array out of a state, a named tuple, counts a reference to it, by an atomic instruction,
wherever the compiler does not see that it is let go again. Loops that do so for every literal spent
up to nine tenths of their time on it. What would allocate does not compile.
"""
