"""Gaussian noise: discrete noise on a very fine grid, which the exact accountant may price.

**The charge.** Numbers that move by at most ``l2`` in Euclidean length between neighbours, plus
independent Gaussian noise of scale s, cost what the event ``GaussianNoise(l2, s)`` stands for
(where numbers have scales of their own, both are over these: the Renyi divergences of independent
noises add up, Canonne, Kamath and Steinke 2020, Theorem 14).

A float cannot hold a sample of the continuous Gaussian, and an approximate sample added to a count
can show the count in its last bits. So the noise is drawn exactly, from the *discrete* Gaussian,
on a grid of ``2^-g`` with g such that the scale is s, at least `LEAST_STEPS` grid steps. What
`dualquery.privacy.accountants.exact` knows is the continuous Gaussian. This module shows how close
the two are.

**The lemma.** On the grid (unit 1, scale s >= 1) let
``P(j) = exp(-j^2 / 2s^2) / Z``, and let Q(j) be the mass that the continuous Gaussian of scale s
gives to ``[j - 1/2, j + 1/2]``: Q is that Gaussian, rounded. Then, for the logarithm of Q(j)/P(j):

- ``Z = s sqrt(2 pi) (1 + 2 sum_{k>=1} exp(-2 pi^2 s^2 k^2))`` by Poisson's summation, so Z is
  ``s sqrt(2 pi)`` times a factor in ``[1, 1 + 3 exp(-2 pi^2 s^2)]``;
- ``Q(j) s sqrt(2 pi) exp(j^2 / 2s^2)`` is the mean, over u uniform in [-1/2, 1/2], of
  ``cosh(j u / s^2) exp(-u^2 / 2s^2)``. It is at least ``exp(-1 / 8s^2)``, and at most
  ``cosh(j / 2s^2) <= exp(j^2 / 8s^4)``.

Hence ``P <= exp(1 / 8s^2) Q`` everywhere, and ``Q <= exp(xi) P`` with
``xi = K^2 / 8s^2 + 3 exp(-2 pi^2 s^2)`` for ``|j| <= K s``; beyond that Q has mass at most
``2 exp(-K^2 / 2)``.

**What it costs.** Data on the grid plus noise Q is the data plus continuous noise, rounded to the
grid: post-processing of what the event `GaussianNoise` stands for. Compare a run with the run in
which every draw is from Q. A run is a chain of conditional draws, however adaptive, so with m noisy
numbers in all the densities of the runs differ by a factor of at most ``exp(m / 8s^2)`` in one
direction, and at most ``exp(m xi)`` in the other, unless one of the m noises is beyond K s. If the
run with Q is (epsilon, delta)-private, then for neighbours D and D' and every set S of results

    P_D(S) <= e^a Q_D(S) <= e^a (e^epsilon Q_D'(S) + delta)
           <= e^(epsilon + a + m xi) P_D'(S) + e^a (delta + e^epsilon tau)

with ``a = m / 8s^2`` and ``tau = 2 m exp(-K^2 / 2)``. Here s >= 2^39, an event has at most 2^31
numbers and K is 160: for each event `GAUSSIAN_EPSILON_SLACK` is above ``m (K^2 + 1) / 8s^2``, and
`GAUSSIAN_DELTA_GROWTH` above a; tau is below e^-12000 for any number of events, and ``e^epsilon
tau`` below the smallest double for every epsilon up to 10^4, so `GAUSSIAN_DELTA_SLACK` covers it.

**Floating point.** A count c and a noise of z grid steps, ``|z| < 2^53``, are exact doubles, so
the one rounding of the sum ``c + z 2^-g`` is that of the exact value on the grid: post-processing.
A noise of 2^53 steps is far beyond K s, and counted there.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import GaussianNoise
from dualquery.room.ledger import Ledger
from dualquery.room.randomness import Randomness, positive
from dualquery.room.statistics import Exact, Numbers
from dualquery.runtime.errors import BadInputError

LEAST_STEPS = 2.0**39
"""Grid steps in one scale, at least; at most twice as many."""

MOST_NUMBERS = 2**31
"""Numbers that one event may have."""

LARGEST_SCALE = 2.0**40
"""Largest scale, in the unit of the counts: from there on the counts would not lie on the grid."""


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Independent Gaussian noise on every number."""

    scale: float  # standard deviation, in the unit of the numbers; finite, > 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def measure(self, exact: Exact, ledger: Ledger, source: Randomness) -> Numbers:
        """Charge for the noise, draw it, and return the noisy numbers: float64."""
        moves = exact.moves

        def noisy() -> Numbers:
            return exact.noisy(self.scale, lambda given, scale: add_gaussian(given, scale, source))

        # What cannot be drawn is refused before it is charged.
        for scale in exact.noise_scales(self.scale):
            check_gaussian(scale, exact.numbers.size)
        event = GaussianNoise(moves.l2, self.scale)
        ground = exact.ground(__name__, moves.l2, self.scale, float)
        return ledger.draw(event, ground, noisy, exact.numbers.shape)


def add_gaussian(
    counts: NDArray[np.int64], scale: float, source: Randomness
) -> NDArray[np.float64]:
    """Return counts plus independent Gaussian noise, rounded to a grid of 2^-39 scales or less.

    ``counts`` are int64, all below 2^53 in magnitude; ``scale`` is the noise's standard deviation,
    in their unit. `BadInputError` if `check_gaussian` refuses them.
    """
    check_gaussian(scale, counts.size)
    fraction, exponent = math.frexp(scale)  # fraction in [1/2, 1)
    steps = source.discrete_gaussian(2.0 * LEAST_STEPS * fraction, counts.size)
    noise = np.ldexp(steps.astype(np.float64), exponent - 40)
    return counts.astype(np.float64) + noise.reshape(counts.shape)


def check_gaussian(scale: float, numbers: int) -> None:
    """Raise `BadInputError` unless the lemma covers this scale and this many numbers."""
    if not 2.0**-900 < scale < LARGEST_SCALE:
        raise BadInputError(
            f"the budget asks for Gaussian noise of scale {scale:g} steps, not below "
            f"{LARGEST_SCALE:.3g}, to which its proof holds; ask for a larger --epsilon or --delta"
        )
    if numbers > MOST_NUMBERS:
        raise BadInputError(
            f"Gaussian noise on {numbers:,} numbers at once is above the {MOST_NUMBERS:,} that its "
            "proof covers; ask fewer queries"
        )
