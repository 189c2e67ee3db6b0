"""Representations of a distribution over records, all of them exact (see `protocol`).

``histogram`` holds the whole domain, ``factored`` a table for each independent component,
``junction-tree`` tables on cliques of the measured scopes.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products
from dualquery.runtime.errors import BadInputError
from mwem.columns import Columns
from mwem.representations.dense import Histogram, dense_bytes, require_memory
from mwem.representations.junction_tree import Factored, JunctionTree
from mwem.representations.protocol import Representation

__all__ = [
    "Factored",
    "Histogram",
    "JunctionTree",
    "Representation",
    "choose",
    "dense_bytes",
    "make",
]

Name = Literal["auto", "histogram", "factored", "junction-tree"]

_SMALL = 1 << 12  # up to this many cells the explicit vector is the fastest representation


def choose(name: Name, queries: Products, iterations: int, memory: int, noisy_init: bool) -> Name:
    """Return the name of the representation to use: ``auto`` is the cheapest one that is exact.

    Public facts decide. Noisy counts of all cells give every cell a weight of its own, so they need
    the explicit vector; in small domains that is the fastest, too. Otherwise it is the junction
    tree, which in the worst case has the components of `Factored` as its cliques.

    Raises
    ------
    BadInputError
        If a histogram is needed, or asked for, that does not fit the memory limit.
    """
    if noisy_init and name not in ("auto", "histogram"):
        raise BadInputError(
            f"noisy_init counts every cell, so it needs representation=histogram, not {name}"
        )
    if name == "histogram" or noisy_init:
        require_memory(queries, iterations, memory)
        return "histogram"
    if name == "auto":
        log_cells = float(np.log2(queries.sizes).sum())
        small = log_cells <= math.log2(_SMALL) or len(queries.sizes) == 1
        small = small and dense_bytes(queries, 0) <= memory
        return "histogram" if small else "junction-tree"
    return name


def make(
    name: str,
    queries: Products,
    memory: int,
    threads: int,
    start: Columns | NDArray[np.float64] | None = None,
) -> Representation:
    """Build a representation at A_0: uniform, independent columns, or any array for a histogram."""
    if name == "histogram":
        return Histogram(queries, memory, threads, start)
    assert not isinstance(start, np.ndarray)
    return (Factored if name == "factored" else JunctionTree)(queries, memory, threads, start)
