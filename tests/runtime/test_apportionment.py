"""Whole numbers of records in proportion to shares."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dualquery.models.mixture import apportion

SHARES = st.lists(st.floats(0, 1e6), min_size=1, max_size=60).filter(any)


@given(SHARES, st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_no_run_is_off_by_more_than_one(shares, total, start) -> None:
    weights = np.array(shares)
    found = apportion(weights, total, start)
    assert found.sum() == total
    assert (found >= 0).all()
    off = np.concatenate(([0.0], np.cumsum(found - weights / weights.sum() * total)))
    assert off.max() - off.min() <= 1 + 1e-6


@given(st.integers(1, 50), st.integers(1, 9))
def test_whole_shares_stay_as_they_are(number, repeats) -> None:
    found = apportion(np.full(number, 0.1), repeats * number)
    assert np.array_equal(found, np.full(number, repeats))


def test_shares_that_are_alike_are_not_favoured() -> None:
    """Largest remainders would give all 90 to the first half, whose share is 54."""
    assert abs(apportion(np.array([0.6] * 90 + [0.4] * 90), 90)[:90].sum() - 54) <= 1
