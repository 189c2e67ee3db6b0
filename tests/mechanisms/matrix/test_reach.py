"""How far a fit's answers may be from noisy ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.reach import by_mean_square, by_outliers, move_near
from dualquery.mechanisms.matrix.trials import Trial, split

Float64 = NDArray[np.float64]

DEVIATION = 0.01


def test_the_further_an_answer_is_beyond_reach_the_nearer_it_is_moved() -> None:
    """Among 10,005 answers a distance of 2.5 deviations is noise; ones of 6 and 12 are not."""
    good = np.full(10_000, 0.25)
    model = np.concatenate(([0.5, 0.62, 0.5, 0.001, 0.9], good))
    unbiased = np.concatenate(([0.38, 0.38, 0.45, -0.5, 1.6], good))
    deviations = np.concatenate(([0.02, 0.02, 0.02, 0.1, 0.1], np.zeros(len(good))))
    found = move_near(model, unbiased, deviations)
    expected = np.concatenate(([0.38 + 16 / 6 * 0.02, 0.38 + 16 / 12 * 0.02, 0.5, 0.0, 1.0], good))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_reach_is_far_for_noise_and_near_for_a_faulty_model() -> None:
    noise = np.random.default_rng(5).standard_normal(20_000)
    # On average 9.3 are beyond 3.5, and twice as many would have to be: probability below 0.01.
    assert by_outliers(np.abs(noise)) > 3.5
    # A fifth of the answers are wrong by 5 deviations: far more than noise leaves beyond 3.
    faulty = noise + 5.0 * (np.arange(len(noise)) % 5 == 0)
    assert 1.0 < by_outliers(np.abs(faulty)) < 3.0
    assert by_outliers(np.zeros(3)) == 0.0


def test_what_noise_explains_is_not_moved() -> None:
    """Beyond 5.327 deviations is a thousandth of an answer in 10,000, on average."""
    far = np.concatenate(([5.32], np.zeros(9_999)))
    assert by_outliers(far) == 5.32
    assert by_outliers(far + np.concatenate(([0.02], np.zeros(9_999)))) == 4.0


def test_noise_alone_seldom_moves_an_answer() -> None:
    """In one of 1,000 draws: more than 1 of 60 has a chance of two in 1,000."""
    fitted, deviations = np.full(20_000, 0.5), np.full(20_000, DEVIATION)
    moved = 0
    for seed in range(60):
        noise = DEVIATION * np.random.default_rng(seed).standard_normal(len(fitted))
        moved += bool((move_near(fitted, fitted + noise, deviations) != fitted).any())
    assert moved <= 1


def trial_of(fitted: Float64, unbiased: Float64, generator: np.random.Generator) -> Trial:
    """Return a trial of a fit that did not see the noise."""
    deviations = np.full(len(unbiased), DEVIATION)
    return Trial(fitted, *split(unbiased, deviations, generator))


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_optimism_is_twice_the_covariance_with_what_was_shown(part: float) -> None:
    """Of answers that take over a part of the noise that they were shown, of 1.25 variances."""
    generator = np.random.default_rng(1)
    truth, deviations = np.full(200_000, 0.3), np.full(200_000, DEVIATION)
    shown, held_back = split(truth, deviations, generator)
    trial = Trial(truth + part * (shown - truth), shown, held_back)
    optimism = trial.optimism(deviations) / DEVIATION**2
    off = 5.0 * optimism.std() / len(truth) ** 0.5
    assert optimism.mean() == pytest.approx(2.0 * part * 1.25, abs=off)
    assert off < 0.12


def test_groups_tell_where_a_fit_errs() -> None:
    """One that errs in large answers only, by twice the noise, is believed in the small ones."""
    generator = np.random.default_rng(2)
    small, large = np.full(20_000, 0.001), generator.uniform(0.2, 0.4, 20_000)
    truth = np.concatenate((small, large))
    deviations = np.full(len(truth), DEVIATION)
    unbiased = truth + DEVIATION * generator.standard_normal(len(truth))
    fitted = truth.copy()
    fitted[20_000:] += generator.laplace(0.0, 2.0 * DEVIATION / 2**0.5, 20_000)
    trial = trial_of(fitted, unbiased, generator)
    group = np.arange(len(truth)) // 2000
    distances = np.abs(fitted - unbiased) / DEVIATION
    reach = by_mean_square(distances, deviations, trial, group)
    # The mean square of 2,000 trials' noise has a standard error of .16.
    assert reach[:10].min() > 1.5
    assert np.median(reach[:10]) > 3.0
    assert np.median(reach[10:]) == pytest.approx(2**0.5 / 2.0, rel=0.1)

    moved = move_near(fitted, unbiased, deviations, trial)
    assert np.abs(moved - truth)[:20_000].mean() < 0.08 * DEVIATION
    before, noise, after = (np.abs(x - truth)[20_000:] for x in (fitted, unbiased, moved))
    assert after.max() < 0.6 * before.max()
    assert (after**2).mean() < 0.9 * min((before**2).mean(), (noise**2).mean())


def test_a_fit_that_takes_over_noise_is_not_moved_to_it() -> None:
    """It is near the noisy answers, and yet no nearer to the truth than they tell."""
    generator = np.random.default_rng(3)
    truth = generator.uniform(0.1, 0.4, 40_000)
    deviations = np.full(len(truth), DEVIATION)
    unbiased = truth + DEVIATION * generator.standard_normal(len(truth))
    shown, held_back = split(unbiased, deviations, generator)
    trial = Trial(truth + 0.1 * (shown - truth), shown, held_back)
    fitted = truth + 0.1 * (unbiased - truth)
    moved = move_near(fitted, unbiased, deviations, trial)
    assert np.abs(moved - truth).mean() < 1.1 * np.abs(fitted - truth).mean()


def test_answers_without_noise_are_kept() -> None:
    fitted, exact = np.array([0.2, 0.9]), np.array([0.25, 0.8])
    for trial in (None, Trial(fitted, exact, exact)):
        np.testing.assert_array_equal(move_near(fitted, exact, np.zeros(2), trial), exact)
