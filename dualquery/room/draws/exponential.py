"""Selection by the exponential mechanism (McSherry and Talwar 2007; MWEM, step 1).

**Lemma.** A score moves by at most ``move`` rows between neighbours, up or down. With log-weights
``epsilon * score / (2 move)`` the log-ratio of two outcomes' probabilities moves by at most
``epsilon`` in all: a draw of bounded range ``epsilon``. Scores are integers and the draw from them
is exact; weights far below the largest are clamped, which keeps this
(`dualquery.room.draws.exact_draws`, whose rounding `RANGE_SLACK` pays for).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import RANGE_SLACK, SampledQueries
from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.draws.exact_draws import draw_outcomes
from dualquery.room.ground import Ground
from dualquery.room.ledger import Ledger
from dualquery.room.randomness import Randomness, positive
from dualquery.room.scores import GRID, ExactScores

MOST_ALTERNATIVES = (1 << 26) - 1
"""Above this, sums of weights could overflow their two words."""


@dataclass(frozen=True, slots=True)
class Exponential:
    """The exponential mechanism."""

    epsilon: float
    """Range of the draw: the log-weight of an alternative is ``epsilon / 2`` for as much score as
    one record can make. Finite, > 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))

    def select(
        self,
        scores: ExactScores,
        allowed: NDArray[np.bool_] | None,
        ledger: Ledger,
        source: Randomness,
    ) -> int:
        """Charge for the draw, and return the position of the alternative that is drawn."""
        ground = Ground(__name__, scores.statistic, scores.move, proof="dualquery.room.scores")

        def drawn() -> NDArray[np.int64]:
            place = select_largest(scores.values, allowed, self.epsilon, scores.move, source)
            return np.array(place)

        event = SampledQueries(self.epsilon + RANGE_SLACK, 1)
        return int(ledger.draw(event, ground, drawn, shape=()))


def select_largest(
    scores: NDArray[np.int64],
    allowed: NDArray[np.bool_] | None,
    epsilon: float,
    spread: float,
    randomness: Randomness,
) -> int:
    """Draw one query with log-weight ``epsilon * score / (2 spread)``; return its position.

    Scores are int64, shape ``(m,)``, in units of 1/`GRID` row, and move by ``spread`` rows at most.
    A public rule says which are ``allowed``; None allows all. `ValueError` if there are none, or
    too many to add their weights.
    """
    places = None if allowed is None else np.flatnonzero(allowed)
    alternatives = scores if places is None else scores[places]
    if not 0 < len(alternatives) <= MOST_ALTERNATIVES:
        raise ValueError(
            f"{len(alternatives):,} queries to select from; 1 to {MOST_ALTERNATIVES:,}"
        )
    unit = epsilon / (2 * spread * GRID)
    sample = draw_outcomes(kernels.Scores.of(alternatives), 1, unit, 1, randomness)
    drawn = int(sample.queries[0])
    return drawn if places is None else int(places[drawn])
