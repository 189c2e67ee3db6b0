"""Exact counts against the definition."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.queries.counting import CountingPass
from dualquery.rows.packed import RecordsBuilder
from tests.cases import random_literals, records_of, truth

SIZES = [1, 63, 64, 65, 4095, 4096, 4097, 8192, 8300]


@settings(max_examples=80, deadline=None)
@given(
    n=st.sampled_from(SIZES),
    bits=st.integers(6, 40),
    way=st.integers(1, 6),
    density=st.sampled_from([0.0, 0.0005, 0.01, 0.3, 0.9, 1.0]),
    ragged=st.booleans(),
    threads=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_counts_are_those_of_the_definition(n, bits, way, density, ragged, threads, seed) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.random((n, bits)) < density).astype(np.uint8)
    literals = random_literals(30, bits, way, rng, ragged)
    records, expected = records_of(rows), truth(literals, rows).sum(axis=1)
    counts = CountingPass(literals).run(records, threads)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, expected)
    for words in (-1, 64):  # all blocks packed, all sparse
        prepared = CountingPass(literals)
        prepared._sparse_words = words
        np.testing.assert_array_equal(prepared.run(records, threads), expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("way", [1, 2, 3, 4])
def test_the_zero_records_that_fill_a_block_are_not_counted(n: int, way: int) -> None:
    records = records_of(np.zeros((n, 5)))
    negated = np.arange(1, 2 * way, 2, dtype=np.int32)
    mixed = negated.copy()
    mixed[-1] -= 1
    padded = np.full(way, -1, np.int32)
    padded[0] = 9
    counts = CountingPass(np.stack((negated, mixed, padded))).run(records, threads=2)
    np.testing.assert_array_equal(counts, [n, 0, n])


def test_wide_sparse_records_are_counted_on_the_mentioned_bits() -> None:
    bits, n = 300_000, 5000
    rng = np.random.default_rng(1)
    indices = rng.integers(0, 50, 3 * n).astype(np.int32) * 6000
    builder = RecordsBuilder(bits)
    builder.append_ones(np.arange(0, 3 * n + 1, 3), indices)
    records = builder.build()
    literals = 12_000 * random_literals(40, 25, 3, rng) // 2
    literals += rng.integers(0, 2, literals.shape, np.int32)
    literals = literals[(np.diff(np.sort(literals >> 1, axis=1), axis=1) > 0).all(axis=1)]
    mentioned = np.unique(literals >> 1)
    narrow = (indices.reshape(n, 3, 1) == mentioned).any(axis=1).astype(np.uint8)
    local = (2 * np.searchsorted(mentioned, literals >> 1) + (literals & 1)).astype(np.int32)
    np.testing.assert_array_equal(
        CountingPass(literals).run(records, threads=2), truth(local, narrow).sum(axis=1)
    )


def test_no_records_give_counts_of_zero() -> None:
    counts = CountingPass(np.array([[1], [2]], np.int32)).run(RecordsBuilder(3).build(), threads=2)
    np.testing.assert_array_equal(counts, [0, 0])


def test_a_fault_in_one_block_ends_the_count() -> None:
    class Failing:
        bits, n = 3, 4096 * 50
        packed = 0

        def stream(self) -> Iterator[Any]:
            yield from [self] * 50

        def pack(self, attributes: object) -> None:
            self.packed += 1
            raise RuntimeError("block lost")

    rows = Failing()
    with pytest.raises(RuntimeError, match="block lost"):
        CountingPass(np.array([[1]], np.int32)).run(rows, threads=2)
    assert rows.packed <= 2
