"""Departures that were measured with noise, shrunk by a prior that they tell themselves."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.matrix.departures import Departures
from dualquery.mechanisms.matrix.scale_mixture import SCALES, chances_of_scales, shrunk
from dualquery.room.features import Features

RISKS = {"as expected": 0.60, "a tenth of that": 0.05, "none": 0.05}
"""Largest mean square that is left of noise of mean square 1, by what the departures are."""


def believed(noisy: np.ndarray, expected: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Shrink departures by the prior that they tell themselves."""
    prior = chances_of_scales(noisy, expected, variances)
    return shrunk(noisy, expected, variances, prior)[0]


def departures(kind: str, expected: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Draw departures."""
    normal = expected * generator.standard_normal(len(expected))
    return {"as expected": normal, "a tenth of that": 0.1 * normal, "none": 0.0 * normal}[kind]


@pytest.mark.parametrize("kind", RISKS)
@pytest.mark.parametrize("seed", range(3))
def test_noise_stays_out(kind: str, seed: int) -> None:
    """With weights fixed beforehand, .35 and more of the noise is left in each case."""
    generator = np.random.default_rng(seed)
    expected = generator.uniform(0.5, 2.0, 10_000)
    true = departures(kind, expected, generator)
    noisy = true + generator.standard_normal(len(true))
    assert np.mean((believed(noisy, expected, np.ones(len(noisy))) - true) ** 2) < RISKS[kind]


def test_of_many_that_are_none_a_part_in_four_hundred_is_left() -> None:
    """Of mean square; after fifty rounds of the estimate it was more than twice as much."""
    noisy = np.random.default_rng(1).standard_normal(50_000)
    found = believed(noisy, np.ones(50_000), np.ones(50_000))
    assert np.mean(found**2) < 0.0025


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_are_shrunk_as_expected(count: int) -> None:
    """Within a tenth of the weight that the expectation gives a single one."""
    expected, noisy = np.full(count, 2.0), np.linspace(0.5, 1.5, count)
    np.testing.assert_allclose(
        believed(noisy, expected, np.ones(len(noisy))), 0.8 * noisy, rtol=0.1
    )


def test_units_do_not_matter_and_signs_do_not_change() -> None:
    generator = np.random.default_rng(0)
    expected = generator.uniform(0.5, 2.0, 500)
    noisy = 3.0 * generator.standard_normal(500)
    found = believed(noisy, expected, np.ones(len(noisy)))
    np.testing.assert_allclose(
        believed(1e-6 * noisy, 1e-6 * expected, np.full(500, 1e-12)), 1e-6 * found
    )
    np.testing.assert_allclose(believed(-noisy, expected, np.ones(500)), -found)
    most = (SCALES[-1] * expected) ** 2 / ((SCALES[-1] * expected) ** 2 + 1.0)
    assert (np.abs(found) <= most * np.abs(noisy) + 1e-12).all()


def test_none_were_measured() -> None:
    assert believed(*np.zeros((3, 0))).shape == (0,)


def test_a_departure_that_cannot_be_is_none() -> None:
    """A column without 1s departs from nothing, whatever the noise."""
    assert believed(np.array([5.0, 0.1]), np.array([0.0, 1.0]), np.ones(2))[0] == 0.0


def test_variances_are_those_that_are_left() -> None:
    """Within a tenth, where the prior is the one that departures were drawn from."""
    generator = np.random.default_rng(5)
    expected = np.full(20_000, 1.5)
    prior = np.where(SCALES == 0.0, 0.7, 0.0) + np.where(SCALES == 2.0, 0.3, 0.0)
    true = generator.choice(SCALES, p=prior, size=20_000) * expected
    true *= generator.standard_normal(20_000)
    found, left = shrunk(true + generator.standard_normal(20_000), expected, np.ones(20_000), prior)
    assert left.mean() == pytest.approx(np.mean((found - true) ** 2), rel=0.1)


def rows_of_different_sizes(n: int, generator: np.random.Generator) -> np.ndarray:
    """Draw 40 columns whose chances are those of the columns times a factor of each row."""
    shares = generator.uniform(0.01, 0.1, 40)
    return generator.random((n, 40)) < shares * generator.gamma(1.0, 1.0, (n, 1))


@pytest.mark.parametrize("tied", [True, False])
def test_pairs_tell_of_their_columns_and_of_what_ties_all(tied: bool) -> None:
    """The columns' errors fall by half; the common departure is the variance of rows' factors."""
    generator = np.random.default_rng(1)
    records = rows_of_different_sizes(50_000, generator)
    if not tied:
        records = generator.permuted(records, axis=0)
    pairs = [[a, b] for a in range(40) for b in range(a + 1, 40)]
    bits = np.array([[a, -1] for a in range(40)] + pairs, np.int32)
    features = Features(bits, Domain.binary(40))
    signs = 1.0 - 2.0 * records
    exact = np.append(
        signs.mean(axis=0), (signs.T @ signs / len(signs))[tuple(np.transpose(pairs))]
    )
    noise = 0.005
    off = np.full(40, 0.02)
    means = exact[:40] + off * generator.standard_normal(40)
    chosen = np.arange(40, len(bits))
    noisy = exact[chosen] + noise * generator.standard_normal(len(chosen))
    before = Departures(features, means, off, np.full(len(bits), 0.01))
    none = np.empty((0, 5), np.int32)
    after = before.with_columns(chosen, none, noisy, noise)
    errors = after.means - exact[:40]
    assert np.sqrt(np.mean(errors**2)) < 0.01
    assert after.common == pytest.approx(1.0 if tied else 0.0, abs=0.2)
    # About as many are off by more than is said as with a normal distribution; two in five where
    # rows' sizes tie columns, which pairs tell to first order only.
    assert np.mean(np.abs(errors) > 2.0 * after.uncertain) < (0.5 if tied else 0.1)
    # A pair that was not measured departs by what all have in common.
    rest = after.products(chosen[1:], noisy[1:], noise)[chosen[0]]
    shares = (1.0 - after.means[:2]) / 2.0
    departs = 4.0 * after.common * np.prod(shares * (1.0 - shares))
    departs *= departs**2 / (departs**2 + (0.01 * after.own) ** 2)
    assert rest == pytest.approx(after.means[:2].prod() + departs)
    assert before.with_columns(chosen[:0], none, noisy[:0], noise) is before


def test_a_few_strong_pairs_do_not_tie_all() -> None:
    """One pair in twenty departs by ten noises, to one side: least squares had .4 of a share's
    variance in common."""
    generator = np.random.default_rng(2)
    pairs = [[a, b] for a in range(40) for b in range(a + 1, 40)]
    bits = np.array([[a, -1] for a in range(40)] + pairs, np.int32)
    features, chosen = Features(bits, Domain.binary(40)), np.arange(40, len(bits))
    signs = np.full(40, 0.8)
    exact = signs[bits[chosen]].prod(axis=1)
    exact[::20] += 0.05
    noisy = exact + 0.005 * generator.standard_normal(len(chosen))
    before = Departures(features, signs, np.full(40, 1e-4), np.full(len(bits), 0.01))
    after = before.with_columns(chosen, np.empty((0, 5), np.int32), noisy, 0.005)
    assert abs(after.common) < 0.02
    strong, others = np.arange(0, len(chosen), 20), np.arange(1, len(chosen), 20)
    found = after.products(chosen, noisy, 0.005)[chosen] - after.means[bits[chosen]].prod(axis=1)
    assert found[strong] == pytest.approx(0.05, abs=0.02)
    assert np.sqrt(np.mean(found[others] ** 2)) < 0.002


def test_noise_of_pairs_is_not_taken_for_what_ties_three_columns() -> None:
    """Pairs of 30 columns depart, triples not further: what is found of them is small.

    Were the pairs' departures taken as known, it would be three times as much.
    """
    generator = np.random.default_rng(3)
    columns = range(30)
    pairs = [[a, b, -1] for a in columns for b in range(a + 1, 30)]
    triples = [[a, b, c] for a, b, _ in pairs for c in range(b + 1, 30)]
    bits = np.array([[a, -1, -1] for a in columns] + pairs + triples, np.int32)
    features = Features(bits, Domain.binary(30))
    sizes = (bits >= 0).sum(axis=1)
    expected = 0.01 * 0.5 ** np.maximum(sizes - 2.0, 0.0)
    own = np.where(sizes == 2, expected * generator.standard_normal(len(bits)), 0.0)
    before = Departures(features, np.full(30, 0.8), np.full(30, 1e-5), expected)
    exact = before._means(own)
    noisy = exact + 0.01 * generator.standard_normal(len(bits))
    chosen = np.flatnonzero(sizes > 1)
    found = before.products(chosen, noisy[chosen], 0.01)
    pairs_alone = before.products(chosen[: len(pairs)], noisy[chosen[: len(pairs)]], 0.01)
    further = (found - pairs_alone)[sizes == 3]
    assert np.sqrt(np.mean(further**2)) < 0.002


def test_a_product_that_is_far_off_is_believed_whatever_pairs_say() -> None:
    """By 100 noises: no chance of a scale is 0, or none would be left for it."""
    features = Features(np.array([[a, -1] for a in range(6)], np.int32), Domain.binary(6))
    before = Departures(features, np.full(6, 0.1), np.full(6, 1e-3), np.full(6, 0.01))
    weighed = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]], np.int32)
    after = before.with_columns(np.arange(0), weighed, np.full(2, 0.1), 0.001)
    assert np.isfinite(after.means).all()
    assert np.isfinite(after.common)
