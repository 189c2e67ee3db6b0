"""Rows that are counted once: the same totals, by as few passes as there are new sums."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.queries.counting import ConjunctionCounts
from dualquery.queries.family import as_records
from dualquery.rows.cached import CachedRows
from dualquery.rows.histogram import Histogram

DOMAIN = Domain.binary(5)
RECORDS = as_records(np.random.default_rng(3).integers(0, 2, (300, 5)).astype(np.uint8), DOMAIN)
NARROW = ConjunctionCounts(np.array([[0], [3], [9]], np.int32))
WIDE = ConjunctionCounts(np.array([[0, 3], [2, 5], [4, -1]], np.int32))


@pytest.fixture
def watched() -> SimpleNamespace:
    """Rows that note every pass over them."""
    return SimpleNamespace(n=RECORDS.n, bits=RECORDS.bits, total=Mock(wraps=RECORDS.total))


@pytest.mark.parametrize("asked", [NARROW, WIDE, Histogram(DOMAIN)])
def test_a_sum_is_computed_once(watched: SimpleNamespace, asked) -> None:
    rows = CachedRows(watched)
    for _ in range(3):
        found = rows.total(asked, 1)
        np.testing.assert_array_equal(found, RECORDS.total(asked, 1))
        found[:] = -1  # the caller's own
    assert watched.total.call_count == 1


def test_different_sums_are_not_mixed_up(watched: SimpleNamespace) -> None:
    rows = CachedRows(watched)
    for asked in (NARROW, WIDE, ConjunctionCounts(WIDE.literals[::-1].copy()), Histogram(DOMAIN)):
        np.testing.assert_array_equal(rows.total(asked, 1), RECORDS.total(asked, 1))
    assert watched.total.call_count == 4


def test_lists_are_counted_together_in_one_pass(watched: SimpleNamespace) -> None:
    rows = CachedRows(watched)
    rows.count_together([NARROW, WIDE, NARROW], 1)
    rows.count_together([WIDE], 1)
    rows.count_together([], 1)
    for asked in (NARROW, WIDE):
        np.testing.assert_array_equal(rows.total(asked, 1), RECORDS.total(asked, 1))
    assert [len(each.args[0].literals) for each in watched.total.mock_calls] == [6]


def test_what_draws_random_numbers_is_never_kept(watched: SimpleNamespace) -> None:
    class Drawn:
        def __call__(self, rows, threads, /):
            return np.array([rows.n])

    rows = CachedRows(watched)
    for _ in range(2):
        rows.total(Drawn(), 1)
    assert watched.total.call_count == 2
