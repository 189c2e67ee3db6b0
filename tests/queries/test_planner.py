"""However a workload is counted, the counts are those of the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.queries.counting import passes as counting
from dualquery.rows.packed import Records, RecordsBuilder
from tests.queries.naive import random_literals, truth


def records_of(rows: Any) -> Records:
    builder = RecordsBuilder(rows.shape[1])
    builder.append_dense(rows)
    return builder.build()


@settings(max_examples=60, deadline=None)
@given(
    way=st.integers(1, 5),
    density=st.sampled_from([0.0, 0.0002, 0.002, 0.05, 1.0]),
    n=st.sampled_from([1, 64, 4096, 8200]),
    seed=st.integers(0, 2**32),
)
def test_sparse_and_packed_counting_agree(way: int, density: float, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.random((n, 20)) < density).astype(np.uint8)
    literals = random_literals(60, 20, way, rng, ragged=True)
    expected = truth(literals, rows).sum(axis=1)
    for words in (-1, 64):
        prepared = counting.CountingPass(literals)
        object.__setattr__(prepared, "_sparse_words", words)
        np.testing.assert_array_equal(prepared.run(records_of(rows), 2), expected)
