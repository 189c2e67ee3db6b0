"""How far blocks of contrasts move: against every set of columns that may differ."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data.domain import Domain, axis_sizes
from dualquery.room.sensitivity import contrasts
from tests.cases import domain_of


def largest_by_formula(domain: Domain, columns: np.ndarray, weights: np.ndarray) -> float:
    """Return the largest value of the module's (1), over every set of columns, one by one."""
    sizes = axis_sizes(domain)
    lengths = weights * contrasts.squared_lengths(domain, columns)
    one_bit, largest = domain.sizes == 1, 0.0
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
    max_ones = draw(st.sampled_from([None, None, 1, 2]))
    # Records of few 1s have columns of one bit only.
    known = [1, 1, 2, 3, 4, 9] if max_ones is None else [1]
    sizes = draw(st.lists(st.sampled_from(known), min_size=1, max_size=7))
    domain = domain_of(*sizes, max_ones=max_ones)
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
    bound = bound_of(domain, columns, weights, most_tried)
    assert bound >= largest * (1 - 1e-12)
    if len(np.unique(columns[columns >= 0])) <= most_tried:
        assert bound == pytest.approx(largest, rel=1e-9)


def bound_of(domain: Domain, columns: np.ndarray, weights: np.ndarray, most_tried: int) -> float:
    """Return the bound if so many columns are tried."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(contrasts, "MOST_TRIED", most_tried)
        return contrasts.largest_distance(domain, columns, weights)


def every_set(columns: int, *ways: int) -> np.ndarray:
    sets = [chosen for way in ways for chosen in combinations(range(columns), way)]
    return np.array([chosen + (-1,) * (max(ways) - len(chosen)) for chosen in sets])


@pytest.mark.parametrize("most_tried", [0, 3, 20])
def test_three_columns_of_a_triple_that_differ_change_its_sign(most_tried: int) -> None:
    """Of five binary columns all ten triples change, if all of the five differ."""
    bound = bound_of(domain_of(*[1] * 5), every_set(5, 3), np.ones(10), most_tried)
    assert bound == pytest.approx(40.0)


def test_columns_of_few_values_are_tried_and_the_lesser_bound_counts() -> None:
    columns = every_set(6, 1, 2)
    few_first, few_last = domain_of(*[1, 1, 1, 9, 9, 9]), domain_of(*[9, 9, 9, 1, 1, 1])
    mirrored = np.where(columns >= 0, 5 - columns, 9)
    mirrored = np.where(np.sort(mirrored, axis=1) == 9, -1, np.sort(mirrored, axis=1))
    # Blocks that all cost alike.
    weights = 1.0 / contrasts.squared_lengths(few_first, columns)
    found = bound_of(few_first, columns, weights, 3)
    assert bound_of(few_last, mirrored, weights, 3) == pytest.approx(found)
    assert found < 0.95 * bound_of(few_first, columns, weights, 0)
    # Twelve binary columns beside a wide one: counting them tells more than three of them do.
    domain, columns = domain_of(*[1] * 12 + [9]), every_set(13, 1, 2)
    weights = 1.0 / contrasts.squared_lengths(domain, columns)
    signs = every_set(12, 1, 2)
    counted = bound_of(domain_of(*[1] * 12), signs, np.ones(len(signs)), 0)
    assert bound_of(domain, columns, weights, 3) <= counted + 4.0 * (len(columns) - len(signs))
