"""Tests draw noise that comes again, and it is the noise of a release."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dualquery.room.randomness import SystemRandomness
from tests.noise import repeatable


def drawn(name: str) -> list[NDArray[np.generic]]:
    """Return noise and words of two sources, begun one after the other under a name."""
    with repeatable(name):
        sources = [SystemRandomness(), SystemRandomness()]
        noise = [source.discrete_gaussian(50.0, 2_000) for source in sources]
        return [*noise, sources[0].discrete_laplace(50.0, 2_000), sources[0].words(4)]


def test_a_name_tells_the_noise() -> None:
    for one, again in zip(drawn("a"), drawn("a"), strict=True):
        assert np.array_equal(one, again)
    for one, other in zip(drawn("a"), drawn("b"), strict=True):
        assert not np.array_equal(one, other)


def test_each_source_has_noise_of_its_own_and_of_its_scale() -> None:
    first, second, *_ = drawn("a")
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1
    assert stats.kstest(np.concatenate((first, second)) / 50.0, "norm").pvalue > 1e-3


@pytest.mark.system_noise
def test_the_system_draws_where_a_test_says_so() -> None:
    assert hasattr(SystemRandomness()._stream, "update")  # a cipher of the system's key
    assert SystemRandomness.discrete_gaussian.__module__ == "dualquery.room.randomness"
