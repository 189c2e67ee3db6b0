"""Repeated rows are found whatever number of keys they need."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualquery.rows.repeats import first_occurrences


@given(
    codes=st.sampled_from([2, 5, 1_024_000, 2**31 - 1]),
    way=st.integers(1, 7),
    m=st.integers(0, 40),
    seed=st.integers(0, 10**6),
)
def test_first_occurrences(codes: int, way: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    few = np.concatenate(([-1, codes - 1], rng.integers(-1, codes, 2)))
    rows = rng.choice(few, (m, way)).astype(np.int32)
    seen: dict[tuple[int, ...], int] = {}
    expected = [seen.setdefault(tuple(row), i) for i, row in enumerate(rows.tolist())]
    np.testing.assert_array_equal(first_occurrences(rows, codes), expected)
