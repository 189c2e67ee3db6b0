"""Report noisy max: the alternative with the largest score after noise (Dwork and Roth 2014).

**Lemma** (their Claim 3.9, for integer noise). Neighbours move a score by at most ``move`` rows
either way. Fix the noise of all alternatives but one: that one is reported when its own noise
reaches a threshold (where scores tie, the first is reported, so the threshold is a whole number of
grid points), and between neighbours the distance from its score to the threshold moves by at most
``2 move`` rows. A discrete Laplace variable of scale ``2 move / epsilon`` reaches a threshold that
much further away with a probability at least ``exp(-epsilon)`` times as large. So the report is
pure ``epsilon``-differentially private.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.calibrate import laplace_scale
from dualquery.privacy.events import LaplaceNoise
from dualquery.room.ground import Ground
from dualquery.room.ledger import Ledger
from dualquery.room.randomness import Randomness, positive
from dualquery.room.scores import GRID, ExactScores


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Report noisy max."""

    epsilon: float
    """Pure cost of the report: the noise on every score has the scale ``2 / epsilon`` times as
    much score as one record can make. Finite, > 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))

    def select(
        self,
        scores: ExactScores,
        allowed: NDArray[np.bool_] | None,
        ledger: Ledger,
        source: Randomness,
    ) -> int:
        """Charge for the report, and return the position of the alternative that is reported."""
        scale = noisy_max_scale(self.epsilon, scores.move) / GRID
        ground = Ground(__name__, scores.statistic, scores.move, scale, "dualquery.room.scores")

        def drawn() -> NDArray[np.int64]:
            place = report_noisy_max(scores.values, allowed, self.epsilon, scores.move, source)
            return np.array(place)

        return int(ledger.draw(LaplaceNoise(self.epsilon), ground, drawn, shape=()))


def noisy_max_scale(epsilon: float, spread: float) -> float:
    """Return the scale of the noise on scores in units of 1/`GRID` row."""
    return laplace_scale(epsilon, 2 * spread * GRID)


def report_noisy_max(
    scores: NDArray[np.int64],
    allowed: NDArray[np.bool_] | None,
    epsilon: float,
    spread: float,
    randomness: Randomness,
) -> int:
    """Return the position of the query with the largest noisy score.

    Scores are int64, shape ``(m,)``, in units of 1/`GRID` row, and move by ``spread`` rows at most.
    A public rule says which are ``allowed``; None allows all; `ValueError` if there are none.
    """
    places = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
    if len(places) == 0:
        raise ValueError("no queries to report from")
    noise = randomness.discrete_laplace(noisy_max_scale(epsilon, spread), len(places))
    return int(places[np.argmax(scores[places] + noise)])
