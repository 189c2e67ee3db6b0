"""Features on all records of small domains, straight from their definition."""

from __future__ import annotations

from itertools import product

import numpy as np

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features
from dualquery.rows.packed import RecordsBuilder

# Binary columns of one bit and of two, and wide ones.
MIXED = Domain(np.array([0, 1, 3, 6, 7, 11]))
WIDE = Domain(np.array([0, 3, 6, 10]))
BINARY = Domain.binary(6)


def legal_records(domain: Domain) -> np.ndarray:
    """Return every legal record: uint8, shape (records, bits)."""
    choices = []
    for size in domain.sizes.tolist():
        choices.append([[0], [1]] if size == 1 else np.eye(size, dtype=int).tolist())
    return np.array([np.concatenate(row) for row in product(*choices)], np.uint8)


def values_on(features: Features, records: np.ndarray) -> np.ndarray:
    """Return each feature's value on each record, straight from the definition."""
    values = np.ones((len(records), len(features)), np.int64)
    for f, bits in enumerate(features.bits):
        for bit in bits[bits >= 0]:
            held = records[:, bit].astype(np.int64)
            size = max(int(features.domain.sizes[features.domain.column_of_bit[bit]]), 2)
            contrast = size == 2 or features.centred[f]
            values[:, f] *= 1 - size * held if contrast else held
    return values


def any_scales(features: Features, seed: int) -> np.ndarray:
    """Return scales that differ from feature to feature, but not within a block of contrasts."""
    scales = np.random.default_rng(seed).uniform(0.5, 3.0, len(features))
    blocks = features.blocks
    scales[blocks.features] = scales[blocks.features][
        np.unique(blocks.of, return_index=True)[1][blocks.of]
    ]
    return scales


def packed(records: np.ndarray):
    builder = RecordsBuilder(records.shape[1])
    builder.append_dense(records)
    return builder.build()


def any_conjunctions(domain: Domain, seed: int, m: int = 60, way: int = 3) -> Workload:
    """Return conjunctions of any bits: several on one column, impossible ones and short ones."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(m):
        bits = generator.choice(domain.bits, generator.integers(1, way + 1), replace=False)
        codes = 2 * bits + generator.integers(0, 2, len(bits))
        rows.append(np.pad(codes, (0, way - len(codes)), constant_values=-1))
    return Workload(np.array(rows, np.int32), domain, {}, repeats=True)
