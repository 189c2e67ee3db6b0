"""The product distribution against enumeration of all records."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dualquery.data.domain import Domain
from dualquery.mechanisms.baselines.independent import to_distributions
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload
from tests.cases import all_records
from tests.tables import legal

ALARM = 1e-4


def chance(domain: Domain, probabilities: np.ndarray, record: np.ndarray) -> float:
    """Return the probability of a record when columns are independent."""
    product = 1.0
    for start, size in zip(domain.offsets[:-1], domain.sizes, strict=True):
        bits, p = record[start : start + size], probabilities[start : start + size]
        product *= float(p[bits == 1][0]) if size > 1 or bits[0] else 1.0 - float(p[0])
    return product


@st.composite
def cases(draw: st.DrawFn) -> tuple[Workload, np.ndarray]:
    """Return conjunctions of any bits, several of one column too, and column distributions."""
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3, 4]), min_size=1, max_size=4))
    domain = Domain(np.concatenate(([0], np.cumsum(sizes))))
    probabilities = np.empty(domain.bits)
    for start, size in zip(domain.offsets[:-1], sizes, strict=True):
        raw = np.array(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)), float)
        if size == 1:
            probabilities[start] = raw[0] / 5
        else:
            raw[0] += raw.sum() == 0
            probabilities[start : start + size] = raw / raw.sum()
    bits = st.integers(0, domain.bits - 1)
    signs = st.dictionaries(bits, st.integers(0, 1), min_size=1, max_size=4)
    queries = draw(st.lists(signs, min_size=1, max_size=6))
    rows = np.full((len(queries), 4), -1, np.int32)
    for row, query in zip(rows, queries, strict=True):
        row[: len(query)] = [2 * bit + sign for bit, sign in query.items()]
    return Workload(rows, domain, repeats=True), probabilities


@given(cases())
def test_answers_are_the_sums_over_all_records(case) -> None:
    workload, probabilities = case
    expected = sum(
        chance(workload.domain, probabilities, record) * workload.on_record(record)
        for record in all_records(workload.domain)
    )
    answers = ProductMixture.single(workload.domain, probabilities).answers(workload)
    np.testing.assert_allclose(answers, expected, atol=1e-6)
    assert answers.min() >= 0
    assert answers.max() <= 1


def test_drawn_records_follow_the_distribution() -> None:
    """Chi-square over all 12 records at a fixed seed; false alarm 1e-4."""
    domain = Domain(np.array([0, 1, 4, 6]))
    probabilities = np.array([0.3, 0.5, 0.2, 0.3, 0.9, 0.1])
    drawn = ProductMixture.single(domain, probabilities).sample(20_000, np.random.default_rng(0))
    every = all_records(domain)
    observed = [(drawn == record).all(axis=1).sum() for record in every]
    expected = [20_000 * chance(domain, probabilities, record) for record in every]
    assert stats.chisquare(observed, expected).pvalue > ALARM


@st.composite
def shares(draw: st.DrawFn) -> tuple[Domain, np.ndarray]:
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 7]), min_size=1, max_size=4))
    domain = Domain(np.concatenate(([0], np.cumsum(sizes))))
    noisy = draw(
        st.lists(
            st.one_of(st.floats(-3, 3), st.floats(-1e9, 1e9)),
            min_size=domain.bits,
            max_size=domain.bits,
        )
    )
    return domain, np.array(noisy)


@given(shares())
def test_projection_makes_distributions(case) -> None:
    domain, noisy = case
    found = to_distributions(domain, noisy)
    assert found.min() >= 0
    assert found.max() <= 1
    sums = np.add.reduceat(found, domain.offsets[:-1])
    np.testing.assert_allclose(sums[domain.sizes > 1], 1, rtol=1e-12)
    # What is a distribution already stays as it is.
    np.testing.assert_allclose(to_distributions(domain, found), found, atol=1e-12)
    assert legal(domain, ProductMixture.single(domain, found).sample(3, np.random.default_rng(0)))


@given(shares(), st.integers(0, 1000))
def test_projection_is_the_nearest_point(case, seed) -> None:
    domain, noisy = case
    noisy = np.clip(noisy, -3, 3)
    found = to_distributions(domain, noisy)
    other = to_distributions(domain, np.random.default_rng(seed).normal(size=domain.bits))
    # The angle to any other distribution is obtuse: the mark of a Euclidean projection.
    assert np.dot(noisy - found, other - found) <= 1e-9
