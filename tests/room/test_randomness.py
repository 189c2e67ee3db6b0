"""Both sources of randomness draw from the proofs' distributions; alarms are false at most 1e-4."""

import os

import numpy as np
import pytest
from scipy import stats

from dualquery.room.randomness import LARGEST_SCALE, SeededRandomness, SystemRandomness
from dualquery.runtime.errors import BadInputError

ALARM = 1e-4
SOURCES = {"seeded": (lambda: SeededRandomness(7), 40_000), "system": (SystemRandomness, 4_000)}


def pmf(kind: str, scale: float, integers: np.ndarray) -> np.ndarray:
    """Return the exact probabilities of integers, by summing far into the tails."""
    reach = int(60 * scale) + 60
    support = np.arange(-reach, reach + 1, dtype=float)

    def weight(k: np.ndarray) -> np.ndarray:
        return np.exp(-(k**2) / (2 * scale**2) if kind == "gaussian" else -np.abs(k) / scale)

    return weight(integers.astype(float)) / weight(support).sum()


def chi_square(draws: np.ndarray, kind: str, scale: float) -> float:
    """Return the p-value of Pearson's test, tails merged until five are expected in each cell."""
    reach = int(12 * scale) + 3
    integers = np.arange(-reach, reach + 1)
    expected = pmf(kind, scale, integers) * len(draws)
    enough = np.flatnonzero(expected >= 5)
    low, high = integers[enough[0]], integers[enough[-1]]
    middle = expected[enough[0] : enough[-1] + 1]
    tail = max((len(draws) - middle.sum()) / 2, 1e-12)
    observed = np.bincount(np.clip(draws, low - 1, high + 1) - low + 1, minlength=len(middle) + 2)
    cells = np.concatenate(([tail], middle, [tail]))
    if tail < 5:  # the outermost cells join their neighbours
        cells = np.concatenate(([cells[:2].sum()], cells[2:-2], [cells[-2:].sum()]))
        observed = np.concatenate(([observed[:2].sum()], observed[2:-2], [observed[-2:].sum()]))
    return float(stats.chisquare(observed, cells * observed.sum() / cells.sum()).pvalue)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [0.4, 0.9, 1.0, 2.5, 9.7])
def test_noise_has_the_exact_distribution(source, kind, scale) -> None:
    make, count = SOURCES[source]
    draws = getattr(make(), f"discrete_{kind}")(scale, count)
    assert draws.dtype == np.int64
    assert draws.shape == (count,)
    if (draws != 0).sum() < 10:
        pytest.skip("too narrow to test")
    assert chi_square(draws, kind, scale) > ALARM


def test_the_test_can_fail() -> None:
    """Noise of a scale 15% off, and continuous noise rounded at a small scale, are found out."""
    wide = SeededRandomness(1).discrete_laplace(2.5 * 1.15, 40_000)
    rounded = np.rint(np.random.default_rng(0).normal(0, 0.4, 40_000)).astype(np.int64)
    assert chi_square(wide, "laplace", 2.5) < ALARM
    assert chi_square(rounded, "gaussian", 0.4) < ALARM


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("source", SOURCES)
def test_large_scales_are_followed(kind, source) -> None:
    """Kolmogorov-Smirnov against the continuous law, from which a scale of 1e9 cannot be told."""
    make, count = SOURCES[source]
    draws = getattr(make(), f"discrete_{kind}")(1e9, count)
    law = stats.norm(scale=1e9) if kind == "gaussian" else stats.laplace(scale=1e9)
    assert stats.kstest(draws.astype(float), law.cdf).pvalue > ALARM


@pytest.mark.parametrize("make", [source for source, _ in SOURCES.values()])
def test_words_are_uniform(make) -> None:
    words = make().words(16_384)
    assert words.dtype == np.uint64
    assert words.shape == (16_384,)
    assert stats.chisquare(np.bincount(words.view(np.uint8), minlength=256)).pvalue > ALARM
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0)
    # 64 positions, each a binomial: the largest deviation, by a union bound.
    assert stats.binomtest(int(bits.max()), len(words)).pvalue * 64 > ALARM
    assert stats.binomtest(int(bits.min()), len(words)).pvalue * 64 > ALARM
    assert len(np.unique(words)) == len(words)  # a repeat has a chance of 7e-12


def test_a_seed_reproduces_and_the_system_does_not() -> None:
    def draws(source) -> list:
        return [
            source.words(8).tolist(),
            source.discrete_gaussian(50.0, 8).tolist(),
            source.discrete_laplace(50.0, 8).tolist(),
        ]

    assert draws(SeededRandomness(3)) == draws(SeededRandomness(3))
    assert draws(SeededRandomness(3)) != draws(SeededRandomness(4))
    for one, other in zip(draws(SystemRandomness()), draws(SystemRandomness()), strict=True):
        assert one != other


@pytest.mark.parametrize("make", [source for source, _ in SOURCES.values()])
def test_scales_stay_far_from_the_ends_of_int64(make) -> None:
    """Saturated noise plus a count, or an overflow of the sum, would show the count."""
    source = make()
    assert len(source.words(0)) == 0
    for draw in (source.discrete_gaussian, source.discrete_laplace):
        assert len(draw(2.0, 0)) == 0
        assert np.abs(draw(LARGEST_SCALE, 1000)).max() < 2**58
        for scale in (0.0, -1.0, 2.0**51, 1e300, float("inf"), float("nan")):
            with pytest.raises(BadInputError, match="noise of scale"):
                draw(scale, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_draws_other_words() -> None:
    """Two processes with one key stream would add the same noise."""
    source = SystemRandomness()
    source.words(1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, source.words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reading, 32), np.uint64)
    os.close(reading)
    os.close(writing)
    assert not (theirs == source.words(4)).any()
