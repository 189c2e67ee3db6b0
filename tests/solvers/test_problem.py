"""The problem: validation, evaluation, and the merging of samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import BestResponse, InvalidProblemError, LinearConstraint, SolverError, TermPool
from solvers.terms import is_canonical, merge_terms
from tests.solvers.instances import from_sample, groups_of, problem, row


def codes(rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, np.int32)


@st.composite
def samples(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray]:
    # Eight literals over 300 attributes exceed 64-bit keys; two attributes make duplicates.
    attributes = draw(st.sampled_from([1, 2, 5, 300]))
    width, count = draw(st.integers(0, 8)), draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    terms = rng.integers(-1, 2 * attributes, (count, width)).astype(np.int32)
    return attributes, terms, rng.choice([-1, 1], count)


def signed_sum(terms: np.ndarray, signs: np.ndarray, record: np.ndarray) -> int:
    """Evaluate a sample query by query, as the paper writes it."""
    total = 0
    for literals, sign in zip(terms, signs, strict=True):
        true = all(record[code >> 1] != (code & 1) for code in literals if code >= 0)
        total += int(true) if sign > 0 else 1 - int(true)
    return total


@given(samples())
@settings(max_examples=150, deadline=None)
def test_a_merged_sample_is_worth_its_queries(sample: tuple[int, np.ndarray, np.ndarray]) -> None:
    attributes, terms, signs = sample
    merged = from_sample(attributes, terms, signs)
    rng = np.random.default_rng(0)
    for _ in range(5):
        record = rng.integers(0, 2, attributes).astype(np.uint8)
        assert merged.value(record) == signed_sum(terms, signs, record)
    assert is_canonical(merged.terms)
    assert len(np.unique(merged.terms, axis=0)) == len(merged.terms)
    assert (merged.weights != 0).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_a_problem_of_a_pool_is_that_of_its_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    attributes = int(rng.integers(1, 6))
    raw = rng.integers(-1, 2 * attributes, (int(rng.integers(1, 40)), 3)).astype(np.int32)
    terms, _, _ = merge_terms(attributes, raw, np.ones(len(raw)))
    if len(terms) == 0:
        return
    terms = terms[rng.integers(0, len(terms), 30)]  # they may repeat
    groups, constraint = groups_of([0]), row([0], [1.0], 0.0, 1.0)
    drawn, weights = rng.integers(0, 30, 12), rng.integers(-3, 4, 12)
    found = TermPool(attributes, terms, groups, (constraint,)).problem(drawn, weights, 7.0)
    plain = BestResponse.merging(
        attributes, terms[drawn], weights.astype(np.float64), groups, (constraint,)
    )
    np.testing.assert_array_equal(found.terms, plain.terms)
    np.testing.assert_array_equal(found.weights, plain.weights)
    assert found.constant == 7.0
    assert found.groups is groups
    assert len(found.rows) == 1


def test_a_pool_takes_canonical_rows_only() -> None:
    for rows in ([[2, 0]], [[-1, 0]], [[0, 1]], [[-1, -1]]):
        with pytest.raises(InvalidProblemError, match="does not ascend"):
            TermPool(3, codes(rows))
    with pytest.raises(InvalidProblemError, match=r"term 1 has the literal codes \[0, 7\]"):
        TermPool(2, codes([[1, 2], [0, 7]]))
    with pytest.raises(InvalidProblemError, match=r"terms have shape \(2,\)"):
        TermPool(2, codes([0, 2]))


def test_violations_name_groups_and_constraints() -> None:
    rows = row([0, 3], [1.0, 2.0], -np.inf, 2.0), row([3], [1.0], 1.0, 1.0)
    instance = problem(4, {}, groups_of([0, 1], [2]), rows)
    assert instance.violations(np.array([1, 0, 1, 1], np.uint8)) == [
        "constraint 0 is 3.0; expected -inf to 2.0"
    ]
    assert instance.violations(np.array([1, 1, 0, 0], np.uint8)) == [
        "group 0 has 2 ones; expected exactly 1",
        "group 1 has 0 ones; expected exactly 1",
        "constraint 1 is 0.0; expected 1.0 to 1.0",
    ]
    assert instance.feasible(np.array([0, 1, 1, 1], np.uint8))
    (said,) = instance.violations(np.full(4, np.nan))
    assert said == "the record holds numbers other than 0 and 1"
    assert not instance.feasible(np.array([0, 1, 1], np.uint8))
    assert not instance.feasible(np.array([0, 1, 1, 2], np.uint8))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: problem(2, {(0,): float("nan")}), "weight of term 0 is nan"),
        (lambda: problem(2, {(0,): 1e308, (1,): 1e308}), "the weights add up to more than"),
        (lambda: problem(2, {}, None, (row([0, 1], [1e308] * 2, 0.0, 1.0),)), "not finite"),
        (lambda: problem(2, {(0, 2): 1.0}), r"term 0 has the literal codes \[0, 4\]"),
        (lambda: BestResponse(2, np.zeros(3, np.int32), np.ones(3)), r"terms have shape \(3,\)"),
        (lambda: problem(3, {}, groups_of([0, 1], [1, 2])), "attribute 1 is in 2 places"),
        (lambda: row([0, 0], [1.0, 2.0], 0.0, 1.0), "names attribute 0 twice"),
        (lambda: row([0], [1.0], 1.0, 0.0), r"bounds \[1.0, 0.0\]"),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    with pytest.raises(InvalidProblemError, match=message) as caught:
        make()
    assert isinstance(caught.value, SolverError)
    assert isinstance(caught.value, ValueError)


def test_constraint_tolerates_rounding() -> None:
    tenths = LinearConstraint(np.arange(3), np.array([0.1, 0.2, 0.3]), 0.6, 0.6)
    assert tenths.holds(np.ones(3, np.uint8))
    assert not tenths.holds(np.array([0, 1, 1], np.uint8))
    large = LinearConstraint(np.arange(3), np.array([2.0**50, 2.0**50, 1.0]), 2.0**51 + 0.5)
    assert large.holds(np.array([1, 1, 0], np.uint8))  # as all searches compute it


@pytest.mark.parametrize("first", [1.0, 1e9, 2.0**53 - 3.0])
@pytest.mark.parametrize("holds", [True, False])
def test_a_constraint_holds_up_to_its_bound_and_not_one_beyond(first, holds) -> None:
    constraint = LinearConstraint(np.arange(3), np.array([first, 1.0, 1.0]), upper=first + holds)
    assert constraint.holds(np.array([1, 1, 0], np.uint8)) is holds
