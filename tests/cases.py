"""Random domains and queries, and slow but obvious answers to hold the representations against."""

from __future__ import annotations

import numpy as np

from dualquery.audit.cases import legal_records as all_records
from dualquery.audit.cases import records_of
from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import products_of
from dualquery.queries.generate.random import random_conjunctions
from dualquery.queries.parities import Parities
from dualquery.queries.products import Products

__all__ = [
    "MEMORY",
    "all_records",
    "domain_of",
    "parities",
    "random_case",
    "records_of",
    "truth_table",
]

MEMORY = 1 << 30


def domain_of(*bits: int, max_ones: int | None = None) -> Domain:
    """Return a domain of columns with these numbers of bits."""
    return Domain(np.concatenate(([0], np.cumsum(bits))).astype(np.int64), max_ones)


def random_case(seed: int, most_columns: int = 8) -> Workload:
    """Return up to 30 random signed conjunctions over a random small domain."""
    generator = np.random.default_rng(seed)
    columns = int(generator.integers(2, most_columns + 1))
    domain = domain_of(*generator.choice([1, 1, 1, 3, 4], columns).tolist())
    way = int(generator.integers(1, min(columns, 4) + 1))
    few = 2**way  # some domains have no more queries than this
    return random_conjunctions(domain, min(30, few * columns // way), way, True, seed)


def truth_table(workload: Workload) -> np.ndarray:
    """Return every query's value on every legal record: float64, shape (m, cells)."""
    return np.stack([workload.on_record(row) for row in all_records(workload.domain)], 1) * 1.0


def parities(sizes: int, way: int) -> Products:
    """Return all parities of 1 to ``way`` binary columns: +1 for an even number of 1s, else -1."""
    return products_of(Parities(sizes, way))
