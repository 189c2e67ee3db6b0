"""The query player's weights: integer weights near the real ones, exact sums, exact draws."""

from decimal import Decimal, localcontext

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dualquery.privacy.events import WEIGHT_ERROR
from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.draws.exact_draws import uniform_below
from dualquery.room.draws.exp_kernels import exponential
from dualquery.room.randomness import SeededRandomness
from dualquery.room.weights import MOST_QUERIES, MOST_ROUNDS, QueryWeights


class Words:
    """A source that hands out given words: shows what is done with each."""

    def __init__(self, pairs):
        self._words = np.array(pairs, dtype=np.uint64).ravel()

    def words(self, count):
        taken, self._words = self._words[:count], self._words[count:]
        return np.concatenate([taken, np.full(count - len(taken), 2**64 - 1, dtype=np.uint64)])


def integer_weight(score: int, largest: int, unit: float) -> int:
    high, low = kernels.weight(score, largest, unit)
    return (int(high) << kernels.LOW_BITS) + int(low)


def scores_of(weights: QueryWeights) -> list[int]:
    return [kernels.score_of(weights.scores, q) for q in range(len(weights.scores.counts))]


def both_weights(weights: QueryWeights) -> np.ndarray:
    """Return the integer weights of queries and complements, shape (m, 2), as Python integers."""
    unit, largest = weights._step / weights._n, kernels.largest_score(weights.scores, 2)
    scores = scores_of(weights)
    both = [[integer_weight(sign * score, largest, unit) for sign in (1, -1)] for score in scores]
    return np.array(both, dtype=object)


def played(seed: int, m: int = 50, n: int = 1000, rounds: int = 20, step: float = 0.5):
    generator = np.random.default_rng(seed)
    weights = QueryWeights(generator.integers(0, n + 1, m), n, step)
    for _ in range(rounds):
        weights.update(generator.integers(0, 2, m, dtype=np.uint8))
    return weights


@given(st.integers(0, 10**9), st.floats(1e-9, 1e-2))
@settings(max_examples=300, deadline=None)
def test_an_integer_weight_is_within_the_charged_error(gap: int, unit: float) -> None:
    with mpmath.workdps(60):
        real = mpmath.exp(max(-mpmath.mpf(unit) * gap, mpmath.mpf(-kernels.CLAMP))) * 2**80
        assert abs(mpmath.log(mpmath.mpf(integer_weight(-gap, 0, unit)) / real)) < WEIGHT_ERROR


def test_scores_are_the_integers_of_algorithm_1() -> None:
    weights = QueryWeights(np.array([3, 0, 10]), 10, 0.5)
    weights.update(np.array([1, 0, 0], dtype=np.uint8))
    weights.update(np.array([0, 1, 1], dtype=np.uint8))
    assert scores_of(weights) == [2 * 3 - 10, 0 - 10, 2 * 10 - 10]


def test_the_range_grows_by_two_steps_over_n_a_round() -> None:
    weights = QueryWeights(np.zeros(4, np.int64), 100, 0.3)
    assert weights.range == 0.0
    for rounds in (1, 2, 3):
        weights.update(np.zeros(4, np.uint8))
        assert weights.range == pytest.approx(2 * 0.3 * rounds / 100, rel=1e-12)


def test_rounds_are_too_few_for_scores_to_wrap() -> None:
    weights = QueryWeights(np.array([2**31]), 2**31, step=0.1)
    weights._rounds = MOST_ROUNDS - 1
    weights.update(np.zeros(1, np.uint8))
    assert scores_of(weights) == [MOST_ROUNDS * 2**31]
    with pytest.raises(ValueError, match="scores would wrap"):
        weights.update(np.zeros(1, np.uint8))


@given(st.integers(0, 2**32), st.integers(1, 30), st.floats(0.01, 3.0))
@settings(max_examples=100, deadline=None)
def test_replacing_a_row_moves_every_ratio_within_the_charged_range(seed, rounds, step) -> None:
    generator = np.random.default_rng(seed)
    n, m = 40, 12
    counts = generator.integers(0, n, m)
    moved = np.clip(counts + generator.integers(-1, 2, m), 0, n)
    one, other = QueryWeights(counts, n, step), QueryWeights(moved, n, step)
    for _ in range(rounds):
        truth = generator.integers(0, 2, m, dtype=np.uint8)
        one.update(truth)
        other.update(truth)
    with mpmath.workdps(60):
        ratios = [
            mpmath.log(mpmath.mpf(int(a)) / mpmath.mpf(int(b)))
            for a, b in zip(both_weights(one).ravel(), both_weights(other).ravel(), strict=True)
        ]
        assert max(ratios) - min(ratios) <= one.range + 4 * WEIGHT_ERROR


def test_block_sums_are_exact() -> None:
    weights, blocks = played(seed=1, m=1000), -(-1000 // kernels.BLOCK)
    high, low = sums_of_blocks = kernels.Limbs(
        np.empty(blocks + 1, np.uint64), np.empty(blocks + 1, np.uint64)
    )
    largest = kernels.largest_score(weights.scores, 2)
    law = kernels.Law(weights.scores, 2, largest, weights._step / weights._n)
    kernels.cumulative_sums(law, sums_of_blocks)
    sums = both_weights(weights).sum(axis=1)
    for block in range(blocks + 1):
        assert (int(high[block]) << kernels.LOW_BITS) + int(low[block]) == sum(
            int(s) for s in sums[: block * kernels.BLOCK]
        )


def test_draws_follow_the_weights() -> None:
    """Chi-square over 100 outcomes at level 1e-4, one fixed seed."""
    weights = played(seed=2, rounds=8)
    expected = both_weights(weights).astype(float).ravel()
    expected /= expected.sum()
    draws = 200_000
    sample = weights.sample(draws, SeededRandomness(3))
    seen = np.bincount(2 * sample.queries + (sample.signs < 0), minlength=100)
    assert expected.min() * draws >= 5
    assert stats.chisquare(seen, expected * draws).pvalue > 1e-4


def test_a_draw_finds_the_query_whose_interval_holds_it() -> None:
    weights = played(seed=4, m=130)
    flat = [int(w) for w in both_weights(weights).ravel()]
    borders = np.concatenate([[0], np.cumsum(np.array(flat, dtype=object))])
    for outcome in (0, 1, 77, 128, 259):
        for value in (borders[outcome], borders[outcome + 1] - 1):
            spare = 64 - int(borders[-1] >> kernels.LOW_BITS).bit_length()
            pair = (
                (int(value) >> kernels.LOW_BITS) << spare,
                (int(value) & kernels.LOW_MASK) << (64 - kernels.LOW_BITS),
            )
            sample = weights.sample(1, Words([pair]))
            assert (sample.queries[0], sample.signs[0]) == (outcome // 2, 1 - 2 * (outcome % 2))


def test_uniform_integers_reject_what_is_not_below_the_bound() -> None:
    at = 64 - kernels.LOW_BITS
    pairs = [(3 << 62, 0), (2 << 62, 5 << at), (2 << 62, 4 << at), (1 << 62, 9 << at)]
    high, low = uniform_below(2, 5, 2, Words(pairs))  # below 2 * 2^42 + 5
    assert list(zip(high.tolist(), low.tolist(), strict=True)) == [(1, 9), (2, 4)]


def test_too_many_queries_are_refused() -> None:
    with pytest.raises(ValueError, match="the weights hold at most"):
        QueryWeights(np.broadcast_to(np.int64(0), MOST_QUERIES + 1), 10, 1.0)


BOUND = Decimal(2) ** -51


def relative_error(x: float) -> Decimal:
    with localcontext() as context:
        context.prec = 40
        exact = Decimal(x).exp()
        return abs(Decimal(exponential(x)) - exact) / exact


@settings(max_examples=2_000, deadline=None)
@given(st.floats(-700.0, 0.0))
@example(0.0)
@example(-5e-324)
@example(-700.0)
def test_any_number(x: float) -> None:
    assert relative_error(x) < BOUND


def test_arguments_where_the_whole_number_changes() -> None:
    halves = -(np.arange(70) + 0.5) * np.log(2.0)
    for x in (halves + np.outer((-1.0, 0.0, 1.0), np.spacing(halves))).ravel():
        assert relative_error(float(x)) < BOUND


def test_the_largest_weight_is_one() -> None:
    assert exponential(0.0) == exponential(-0.0) == 1.0
    assert max(exponential(-x) for x in np.geomspace(1e-300, 1.0, 5_000)) <= 1.0
