"""Random domains, queries and features, and slow but obvious answers to hold others against."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from dualquery.audit.cases import legal_records as all_records
from dualquery.audit.cases import records_of
from dualquery.data.domain import Domain
from dualquery.estimates.cell_evidence import CellEvidence
from dualquery.estimates.measurements import Measurements
from dualquery.privacy.neighbours import RELATIONS
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import products_of
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.queries.parities import Parities
from dualquery.queries.products import Products
from dualquery.room.features import Features

__all__ = ["all_records", "records_of"]

MEMORY = 1 << 30
# Binary columns of one bit and of two, and wide ones.
MIXED = Domain(np.array([0, 1, 3, 6, 7, 11]))
WIDE = Domain(np.array([0, 3, 6, 10]))
BINARY = Domain.binary(6)

both_relations = pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.value)


def refused(draw: Callable[..., object], *given: object, why: str = "would cost more") -> None:
    """Check that the room refuses a draw, before it is made."""
    with pytest.raises(RuntimeError, match=why):
        draw(*given)


def domain_of(*bits: int, max_ones: int | None = None) -> Domain:
    """Return a domain of columns with these numbers of bits."""
    return Domain(np.concatenate(([0], np.cumsum(bits))).astype(np.int64), max_ones)


def random_case(seed: int, most_columns: int = 8) -> Workload:
    """Return up to 30 random signed conjunctions over a random small domain."""
    generator = np.random.default_rng(seed)
    columns = int(generator.integers(2, most_columns + 1))
    domain = domain_of(*generator.choice([1, 1, 1, 3, 4], columns).tolist())
    way = int(generator.integers(1, min(columns, 4) + 1))
    return random_conjunctions(domain, min(30, (2**way) * columns // way), way, True, seed)


def truth(literals: NDArray[np.int32], rows: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return whether each query (row of codes, -1 ignored) holds on each record: (m, n)."""
    held = np.ones((len(literals), len(rows)), bool)
    for q, query in enumerate(literals):
        for code in query[query >= 0]:
            held[q] &= (rows[:, code >> 1] ^ (code & 1)) == 1
    return held


def random_literals(
    m: int, bits: int, way: int, rng: np.random.Generator, ragged: bool = False
) -> NDArray[np.int32]:
    """Return signed conjunctions over different bits, some shorter than ``way`` when ragged."""
    literals = np.array([rng.choice(bits, way, replace=False) for _ in range(m)]) * 2
    literals += rng.integers(0, 2, literals.shape)
    if ragged:
        literals[np.arange(way) >= rng.integers(1, way + 1, m)[:, None]] = -1
    return literals.astype(np.int32)


def truth_table(workload: Workload) -> np.ndarray:
    """Return every query's value on every legal record: float64, shape (m, cells)."""
    return np.stack([workload.on_record(row) for row in all_records(workload.domain)], 1) * 1.0


def parities(sizes: int, way: int) -> Products:
    """Return all parities of 1 to ``way`` binary columns: +1 for an even number of 1s, else -1."""
    return products_of(Parities(sizes, way))


def values_on(features: Features, records: np.ndarray) -> np.ndarray:
    """Return each feature's value on each record, or its mean if columns have these shares."""
    values = np.ones((len(records), len(features)))
    for f, bits in enumerate(features.bits):
        for bit in bits[bits >= 0]:
            held = records[:, bit].astype(np.float64)
            size = max(int(features.domain.sizes[features.domain.column_of_bit[bit]]), 2)
            contrast = size == 2 or features.centred[f]
            values[:, f] *= 1 - size * held if contrast else held
    return values


def any_scales(features: Features, seed: int) -> np.ndarray:
    """Return scales that differ from feature to feature, but not within a block of contrasts."""
    scales = np.random.default_rng(seed).uniform(0.5, 3.0, len(features))
    blocks = features.blocks
    firsts = np.unique(blocks.of, return_index=True)[1]
    scales[blocks.features] = scales[blocks.features][firsts[blocks.of]]
    return scales


def any_conjunctions(domain: Domain, seed: int, m: int = 60, way: int = 3) -> Workload:
    """Return conjunctions of any bits: several on one column, impossible ones and short ones."""
    generator, rows = np.random.default_rng(seed), []
    for _ in range(m):
        bits = generator.choice(domain.bits, generator.integers(1, way + 1), replace=False)
        codes = 2 * bits + generator.integers(0, 2, len(bits))
        rows.append(np.pad(codes, (0, way - len(codes)), constant_values=-1))
    return Workload(np.array(rows, np.int32), domain, {}, repeats=True)


def functionals(measurements: Measurements, rows: np.ndarray, domain: Domain) -> np.ndarray:
    """Return each number's value on every row, uint8 ``(n, bits)``: float64, ``(m, n)``."""
    sizes, values = np.maximum(domain.sizes, 2), np.ones((len(measurements), len(rows)))
    for number, (start, stop) in enumerate(
        zip(measurements.starts[:-1], measurements.starts[1:], strict=True)
    ):
        for code in measurements.factors[start:stop].tolist():
            if code >= 0:
                values[number] *= rows[:, code >> 1] ^ (code & 1)
            elif code > -(2**30):
                values[number] *= 1.0 - 2.0 * rows[:, -code - 1]
            else:
                bit = -(2**30) - code
                values[number] *= 1.0 - sizes[domain.column_of_bit[bit]] * rows[:, bit]
    return values


def on_cells(evidence: CellEvidence) -> np.ndarray:
    """Return each number's value on every cell of its columns, in C order: ``(m, cells)``."""
    lines = np.ones((len(evidence.values), 1))
    for factors, chosen in zip(evidence.factors, evidence.chosen, strict=True):
        lines = (lines[:, :, None] * factors[chosen][:, None, :]).reshape(len(lines), -1)
    return lines - evidence.less[:, None]
