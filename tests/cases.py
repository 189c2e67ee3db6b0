"""Random domains and queries, and slow but obvious answers to hold the representations against."""

from __future__ import annotations

import itertools

import numpy as np

from dualquery.data.cells import rows_of_values
from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import products_of
from dualquery.queries.generate.random import random_conjunctions
from dualquery.queries.parities import Parities
from dualquery.queries.products import Products
from dualquery.rows.packed import RecordsBuilder

MEMORY = 1 << 30


def domain_of(*bits: int) -> Domain:
    """Return a domain of columns with so many bits each."""
    return Domain(np.concatenate(([0], np.cumsum(bits))))


def random_case(seed: int, most_columns: int = 8) -> Workload:
    """Return up to 30 random signed conjunctions over a random small domain."""
    generator = np.random.default_rng(seed)
    columns = int(generator.integers(2, most_columns + 1))
    domain = domain_of(*generator.choice([1, 1, 1, 3, 4], columns).tolist())
    way = int(generator.integers(1, min(columns, 4) + 1))
    few = 2**way  # some domains have no more queries than this
    return random_conjunctions(domain, min(30, few * columns // way), way, True, seed)


def records_of(rows: np.ndarray):
    builder = RecordsBuilder(rows.shape[1])
    builder.append_dense(np.asarray(rows, np.uint8))
    return builder.build()


def all_records(domain: Domain) -> np.ndarray:
    """Return every legal record, in the order of the histogram's cells."""
    sizes = np.maximum(domain.sizes, 2)
    values = np.array(list(itertools.product(*(range(size) for size in sizes))))
    return rows_of_values(values, domain)


def truth_table(workload: Workload) -> np.ndarray:
    """Return every query's value on every legal record: float64, shape (m, cells)."""
    return np.stack([workload.on_record(row) for row in all_records(workload.domain)], 1) * 1.0


def parities(sizes: int, way: int) -> Products:
    """Return all parities of 1 to ``way`` binary columns: +1 for an even number of 1s, else -1."""
    return products_of(Parities(sizes, way))
