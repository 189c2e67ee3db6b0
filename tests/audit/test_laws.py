"""The audit's own formulas, against sums over what is drawn and against the accountants'."""

import math

import numpy as np
import pytest

from dualquery.audit.laws import Draws, Noisy, hockey_stick, noisy_max_law, reports_law
from dualquery.privacy.accountants.exact import gaussian_delta
from dualquery.room.draws.noisy_max import report_noisy_max
from dualquery.room.randomness import SeededRandomness

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0)


@pytest.mark.parametrize("shift", [0.05, 0.7, 3.0])
def test_gaussian_noise_has_the_accountants_curve(shift) -> None:
    ours = hockey_stick(np.array(EPSILONS), shift)
    np.testing.assert_allclose(ours, gaussian_delta(shift, np.array(EPSILONS)), rtol=1e-9)


def test_gaussian_losses_add_up_to_one_gaussian() -> None:
    def loss(moves: list[float], scales: list[float]):
        own = np.array(scales)
        return Noisy(np.array(moves), own, False).loss_to(Noisy(np.zeros(2), own, False))

    both = loss([3.0, 0.0], [2.0, 5.0]).and_then(loss([0.0, -4.0], [2.0, 2.0]))
    assert both.shift == pytest.approx(2.5)
    assert both.delta(1.0) == pytest.approx(float(hockey_stick(np.array([1.0]), 2.5)[0]))


@pytest.mark.parametrize(("moves", "scale"), [([3], 1.7), ([1, -2], 0.8), ([0], 2.0)])
def test_laplace_losses_are_those_of_all_its_values(moves, scale) -> None:
    ratio, values = math.exp(-1 / scale), np.arange(-80, 81)

    def chances(centre: float) -> np.ndarray:
        return (1 - ratio) / (1 + ratio) * ratio ** np.abs(values - centre)

    one, other = np.ones(1), np.ones(1)
    for move in moves:
        one = np.multiply.outer(one, chances(0)).ravel()
        other = np.multiply.outer(other, chances(move)).ravel()
    scales = np.full(len(moves), scale)
    first, moved = (Noisy(np.array(n, float), scales, True) for n in ([0] * len(moves), moves))
    loss = first.loss_to(moved)
    for epsilon in EPSILONS:
        truth = np.maximum(one - math.exp(epsilon) * other, 0).sum()
        assert loss.delta(epsilon) == pytest.approx(truth, abs=3e-7)
        assert loss.delta(epsilon) <= truth + 1e-12


def test_an_outcome_that_one_table_cannot_give_has_an_infinite_loss() -> None:
    loss = Draws(np.log([0.9, 0.1])).loss_to(Draws(np.array([0.0, -np.inf])))
    assert loss.delta(50.0) == pytest.approx(0.1)


def test_a_scale_that_depends_on_the_table_is_seen() -> None:
    one, other = (Noisy(np.zeros(1), np.array([s]), integers=False) for s in (1.0, 2.0))
    with pytest.raises(ValueError, match="scale of the noise depends on the table"):
        one.loss_to(other)


def test_noisy_max_reports_by_its_law() -> None:
    """A fixed seed; the chance of a false alarm is below 1e-4 (four standard deviations)."""
    scores, runs = np.array([0, 3000, 3000, -500]), 3000
    source = SeededRandomness(4)
    seen = [report_noisy_max(scores, None, 1.5, 1, source) for _ in range(runs)]
    chances = np.exp(noisy_max_law(tuple(scores.tolist()), 2 * 1024 / 1.5).logs)
    off = np.abs(np.bincount(seen, minlength=4) / runs - chances)
    assert (off < 4 * np.sqrt(chances / runs)).all()


def test_reports_of_rows_are_told_by_their_number_alone() -> None:
    law = reports_law([np.array([0.7, 0.3]), np.array([0.2, 0.8])])
    np.testing.assert_allclose(np.exp(law.logs), [0.14, 0.62, 0.24])
    assert Draws(np.log([0.5, 0.5]), 2).log_chance((0, 1)) == pytest.approx(math.log(0.5))
