"""How far blocks of contrasts move: against every set of columns that may differ."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data.cells import axis_sizes
from dualquery.data.domain import Domain
from dualquery.room.sensitivity import contrasts


def domain_of(sizes: list[int], max_ones: int | None = None) -> Domain:
    return Domain(np.concatenate([[0], np.cumsum(sizes)]), max_ones)


def largest_by_formula(domain: Domain, columns: np.ndarray, weights: np.ndarray) -> float:
    """Return the largest value of the module's (1), over every set of columns, one by one."""
    sizes = axis_sizes(domain)
    lengths = weights * contrasts.squared_lengths(domain, columns)
    one_bit = domain.sizes == 1
    largest = 0.0
    for number in range(1 << len(sizes)):
        differs = number >> np.arange(len(sizes)) & 1 == 1
        if domain.max_ones is not None and (differs & one_bit).sum() > 2 * domain.max_ones:
            continue
        factors = np.where(differs, -1.0 / (sizes - 1.0), 1.0)
        products = np.where(columns >= 0, factors[columns], 1.0).prod(axis=1)
        largest = max(largest, float((2.0 * lengths * (1.0 - products)).sum()))
    return largest


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Domain, np.ndarray, np.ndarray]:
    """Some sets of up to three of up to seven columns, and their weights."""
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3, 4, 9]), min_size=1, max_size=7))
    domain = domain_of(sizes, draw(st.sampled_from([None, None, 1, 2])))
    every = [
        chosen + (-1,) * (3 - len(chosen))
        for way in (1, 2, 3)
        for chosen in combinations(range(len(sizes)), way)
    ]
    columns = draw(st.lists(st.sampled_from(every), min_size=1, max_size=12, unique=True))
    weights = draw(st.lists(st.floats(0.1, 10.0), min_size=len(columns), max_size=len(columns)))
    return domain, np.array(columns), np.array(weights)


@settings(max_examples=300, deadline=None)
@given(blocks(), st.sampled_from([0, 1, 2, 3, 20]))
def test_no_set_of_columns_is_further_apart_than_the_bound(
    case: tuple[Domain, np.ndarray, np.ndarray], most_tried: int
) -> None:
    """And where all columns are tried, it is the largest distance itself."""
    domain, columns, weights = case
    largest = largest_by_formula(domain, columns, weights)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(contrasts, "MOST_TRIED", most_tried)
        bound = contrasts.largest_distance(domain, columns, weights)
    assert bound >= largest * (1 - 1e-12)
    if len(np.unique(columns[columns >= 0])) <= most_tried:
        assert bound == pytest.approx(largest, rel=1e-9)


def test_trying_columns_of_few_values_brings_the_bound_near() -> None:
    """Pairs of five binary columns and seven of three or four values: 1.2 times, for 1.5."""
    domain = domain_of([1] * 5 + [3] * 4 + [4] * 3)
    columns = np.array([[a, -1] for a in range(12)] + list(combinations(range(12), 2)))
    weights = 1.0 / np.sqrt(contrasts.squared_lengths(domain, columns))
    largest = largest_by_formula(domain, columns, weights)
    found = []
    for most_tried in (0, 10):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(contrasts, "MOST_TRIED", most_tried)
            found.append(contrasts.largest_distance(domain, columns, weights) / largest)
    assert found[0] > 1.5
    assert 1.0 <= found[1] < 1.25
