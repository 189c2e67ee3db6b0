"""What a game keeps in memory beside the rows, known before it starts."""

from __future__ import annotations

from dualquery.privacy.events import GameSchedule
from dualquery.queries.family import Queries

BYTES_A_QUERY = 100
"""Of the query player, the transcript, and five numbers of the fit."""
BYTES_A_DRAW = 9
"""Its query and its sign."""
BYTES_REMEMBERED = 100
"""Of a draw that a best response looks at: its literals, weight, and place in the search."""
MATRICES = 5
"""Of rounds by rounds numbers, that the fit of the shares has at a time."""
BYTES_SKETCHED = 60_000
"""Of a record in the sketch of the fit's curvature."""


def bytes_needed(queries: Queries, game: GameSchedule, memory: int, *, fitted: bool) -> int:
    """Return the bytes of a game: records, draws, weights, and the fit.

    Parameters
    ----------
    queries, game
        What is played about, and how long.
    memory
        Rounds whose draws a best response looks at.
    fitted
        Whether the records' shares are fitted.
    """
    bits, rounds = queries.domain.bits, game.rounds
    kept = rounds * (len(queries) // 8 + 3 * bits)
    drawn = game.samples * (BYTES_A_DRAW * (rounds - 1) + BYTES_REMEMBERED * memory)
    fit = rounds * (MATRICES * 8 * rounds + BYTES_SKETCHED) if fitted else 0
    return kept + drawn + BYTES_A_QUERY * len(queries) + fit
