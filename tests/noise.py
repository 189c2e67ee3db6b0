"""Noise that is the same in every run of a test, so that none fails by chance now and then."""

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray

from dualquery.releases.make import making
from dualquery.room.randomness import SeededRandomness, SystemRandomness


class NoNoise(SeededRandomness):
    """Draws no noise, so that a measurement shows what it is added to."""

    def discrete_laplace(self, scale, count):
        return np.zeros(count, np.int64)

    def discrete_gaussian(self, scale, count):
        return np.zeros(count, np.int64)


@contextmanager
def repeatable(name: str) -> Iterator[None]:
    """Let the sources of private randomness and public seeds made inside follow from a name."""
    numbers = itertools.count()

    def seed(bits: int = 64) -> int:
        text = f"{name} {next(numbers)}".encode()
        return int.from_bytes(hashlib.sha256(text).digest(), "big") >> (256 - bits)

    def begin(source: SystemRandomness) -> None:
        source._stream = SeededRandomness(seed())
        source._process = os.getpid()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemRandomness, "_begin_stream", begin)
        patch.setattr(SystemRandomness, "words", lambda s, count: s._stream.words(count))
        for noise in ("discrete_gaussian", "discrete_laplace"):
            patch.setattr(SystemRandomness, noise, _from_stream(noise))
        patch.setattr(making.secrets, "randbits", seed)
        yield


def _from_stream(noise: str) -> Callable[[SystemRandomness, float, int], NDArray[np.int64]]:
    """Return the method of a source that draws a kind of noise from its stream."""

    def draw(source: SystemRandomness, scale: float, count: int) -> NDArray[np.int64]:
        return getattr(source._stream, noise)(scale, count)

    return draw
