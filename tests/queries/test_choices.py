"""Counting and listing choices from different columns, against itertools."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.queries.generate.workloads import chosen_columns, count_choices, list_choices
from dualquery.runtime.errors import BadInputError


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6), data=st.data())
def test_lists_every_choice_in_order(sizes: list[int], data: st.DataObject) -> None:
    way = data.draw(st.integers(1, len(sizes)))
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    items = np.arange(indptr[-1], dtype=np.int32)
    sets = [items[a:b].tolist() for a, b in itertools.pairwise(indptr)]
    expected = sorted(
        itertools.chain.from_iterable(
            itertools.product(*chosen) for chosen in itertools.combinations(sets, way)
        )
    )
    assert list_choices(indptr, items, way).tolist() == [list(row) for row in expected]
    assert count_choices(np.array(sizes), way) == len(expected)


def test_counts_are_exact_beyond_any_float() -> None:
    assert count_choices(np.full(512_000, 2), 20) == math.comb(512_000, 20) * 2**20
    assert count_choices(np.array([3, 3]), 3) == 0


@pytest.mark.parametrize(
    ("columns", "way", "message"),
    [
        ([0, 4], 1, "query column 4 does not exist: the table has 4 columns"),
        ([1, 2, 1], 1, "query column 1 is named twice"),
        ([1, 2], 3, "3-way queries need 3 different columns, but there are 2; ask for --way 2"),
        (None, 0, "not way = 0"),
    ],
)
def test_wrong_columns_are_named(columns: list[int] | None, way: int, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        chosen_columns(Domain.binary(4), columns, way)
