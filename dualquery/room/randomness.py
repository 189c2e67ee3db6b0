"""Where random numbers come from: the operating system for a release, a seed for an experiment.

Both sources draw from the *same* distributions, so that an experiment shows what a release does. A
release that used a seed states no guarantee: whoever knows the seed can undo the noise.
"""

import math
import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError

LARGEST_SCALE = 2.0**50
"""Noise of a larger scale could saturate at the ends of int64, or overflow when a count is added:
either would show the count. Up to here that has a chance below exp(-2^12) a draw."""

_OPENDP_DRAWS = 1 << 16
"""Numbers drawn at a time: OpenDP takes and returns Python lists, which use much memory."""


class Randomness(Protocol):
    """A source of random numbers for the private room."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` independent uniform 64-bit words."""
        ...

    def discrete_gaussian(self, scale: float, count: int) -> NDArray[np.int64]:
        """Return ``count`` integers with ``P(k) ~ exp(-k^2 / (2 scale^2))``."""
        ...

    def discrete_laplace(self, scale: float, count: int) -> NDArray[np.int64]:
        """Return ``count`` integers with ``P(k) ~ exp(-|k| / scale)``."""
        ...


class SystemRandomness:
    """Cryptographic randomness: AES-256-CTR keyed by the operating system; noise from OpenDP."""

    def __init__(self) -> None:
        self._begin_stream()

    def _begin_stream(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        key, nonce = os.urandom(32), os.urandom(16)
        self._stream = Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor()
        self._process = os.getpid()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` words of the key stream; a forked process begins a stream of its own."""
        if os.getpid() != self._process:
            self._begin_stream()
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype=np.uint64)

    def discrete_gaussian(self, scale: float, count: int) -> NDArray[np.int64]:
        """Draw from OpenDP's exact sampler (Canonne, Kamath and Steinke 2020, Algorithm 3)."""
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance

        check_scale(scale)
        return _opendp_noise(make_gaussian(_vectors(), l2_distance(T="f64"), scale=scale), count)

    def discrete_laplace(self, scale: float, count: int) -> NDArray[np.int64]:
        """Draw from OpenDP's exact sampler (Canonne, Kamath and Steinke 2020, Algorithm 2)."""
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance

        check_scale(scale)
        return _opendp_noise(make_laplace(_vectors(), l1_distance(T="i64"), scale=scale), count)


def _vectors() -> Any:
    """Import OpenDP, whose samplers ask for a word of consent: not all of its proofs are vetted."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features  # the prelude imports scikit-learn and pandas, too

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))


def _opendp_noise(measurement: Any, count: int) -> NDArray[np.int64]:
    """Return what an OpenDP measurement of independent noise adds to ``count`` zeros."""
    noise = np.empty(count, dtype=np.int64)
    for start in range(0, count, _OPENDP_DRAWS):
        part = noise[start : start + _OPENDP_DRAWS]
        part[:] = measurement([0] * len(part))
    return noise


class SeededRandomness:
    """Reproducible randomness for experiments: NumPy's Philox generator. Protects nobody."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(seed))

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return ``count`` words of the generator."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)

    def discrete_gaussian(self, scale: float, count: int) -> NDArray[np.int64]:
        """Draw by rejection from the discrete Laplace, as the exact sampler does, in floats."""
        check_scale(scale)
        width = int(np.floor(scale)) + 1
        kept: list[NDArray[np.int64]] = []
        missing = count
        while missing > 0:
            # About 0.6 of the proposals are kept, whatever the scale.
            proposal = self._two_sided_geometric(width, 2 * missing + 16)
            excess = (np.abs(proposal) - scale**2 / width) ** 2 / (2 * scale**2)
            kept.append(proposal[self._generator.random(len(proposal)) < np.exp(-excess)][:missing])
            missing -= len(kept[-1])
        return np.concatenate(kept) if kept else np.zeros(0, np.int64)

    def discrete_laplace(self, scale: float, count: int) -> NDArray[np.int64]:
        """Draw as the difference of two geometric variables."""
        check_scale(scale)
        return self._two_sided_geometric(scale, count)

    def _two_sided_geometric(self, scale: float, count: int) -> NDArray[np.int64]:
        success = -np.expm1(-1.0 / scale)
        plus, minus = self._generator.geometric(success, size=(2, count))
        return np.asarray(plus - minus, dtype=np.int64)


def check_scale(scale: float) -> None:
    """Raise `BadInputError` unless integer noise of a scale can be drawn and added safely."""
    if not 0.0 < scale <= LARGEST_SCALE:
        raise BadInputError(
            f"the budget asks for noise of scale {scale:g} rows, above {LARGEST_SCALE:.3g}: no "
            "answer would be left; ask for a larger --epsilon or --delta"
        )


def positive(name: str, value: float) -> float:
    """Return a parameter as a float; `ValueError` if it is not finite and above 0."""
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} is {number}; a finite number above 0 is needed")
    return number


def check_seed(seed: int | None) -> None:
    """Raise `BadInputError` unless a seed is a whole number from 0 on, or None."""
    if seed is not None and seed < 0:
        raise BadInputError(f"--seed is {seed}; a whole number from 0 on is needed")


def randomness(seed: int | None) -> Randomness:
    """Return the source for a release (``seed`` None) or for an experiment."""
    return SystemRandomness() if seed is None else SeededRandomness(seed)
