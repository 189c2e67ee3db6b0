"""Selection of the query that a model answers worst, by the exponential mechanism (MWEM, step 1).

The score of a query is ``|q(D) - q(A)|`` in rows, A being the public model (Hardt, Ligett and
McSherry 2012, Figure 1). The model's answers are rounded to a fixed grid of 1/`GRID` row first, so
that scores are integers on the grid: neighbours differ in them exactly as the proof says, and the
draw is exact (see `dualquery.room.weights`).

When one record is replaced, q(D) moves by at most ``spread`` = max q - min q rows (1 for a
conjunction), and so does a score, up or down. With log-weights ``epsilon * score / (2 spread)``
the log-ratio of two outcomes' probabilities moves by at most ``epsilon`` in all: a draw of bounded
range ``epsilon``. Clamping far below the largest weight keeps this, as there.

When one record is added or removed, counts are centred (`dualquery.room.sensitivity.moves`): they
move by at most half the range of the queries, which then takes the place of ``spread``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.room import weights_kernels as kernels
from dualquery.room.randomness import Randomness
from dualquery.room.weights import draw_outcomes
from dualquery.runtime.errors import BadInputError

GRID = 1024
"""Grid points in one row, a power of two: dividing the unit of the log-weights by it is exact."""

MOST_ALTERNATIVES = (1 << 26) - 1
"""Above this, sums of weights could overflow their two words."""


def error_scores(
    counts: NDArray[np.int64],
    model: NDArray[np.float64],
    n: int,
    low: float = 0.0,
    high: float = 1.0,
    offset: int = 0,
) -> NDArray[np.int64]:
    """Return ``|q(D) - q(A)|`` in units of 1/`GRID` row, exact for the rounded model.

    Parameters
    ----------
    counts
        Integers, shape ``(m,)``: ``n q(D)``, exact.
    model
        float64, shape ``(m,)``: the model's answers, in the same units a row.
    n
        Number of rows.
    low, high
        Bounds on the values of the queries, in these units.
    offset
        Added to every count, in units of 1/`GRID`: what centring takes.

    Raises
    ------
    ValueError
        If the model has another shape or is not finite: its scores would not be what is charged.
    BadInputError
        If scores could overflow, which would make neighbours differ by more than is charged.
    """
    # A count, an offset by as much, and a model's answer of three times as much.
    if 5 * GRID * n * max(abs(low), abs(high)) >= 2.0**63:
        raise BadInputError(
            f"errors of queries with values from {low:g} to {high:g} steps on {n:,} rows do not "
            "fit 64-bit integers; use queries of fewer steps, or a smaller number of rows"
        )
    model = np.asarray(model, dtype=np.float64)
    if model.shape != counts.shape or not np.isfinite(model).all():
        raise ValueError(f"the model's answers must be {len(counts):,} finite numbers")
    # Far-off answers are cut, which is up to the public model; integers could overflow otherwise.
    model = np.clip(model, 2 * low - high, 2 * high - low)
    rounded: NDArray[np.int64] = np.rint(model * float(GRID * n)).astype(np.int64)
    scores: NDArray[np.int64] = np.abs(GRID * counts.astype(np.int64) + offset - rounded)
    return scores


def select_largest(
    scores: NDArray[np.int64],
    allowed: NDArray[np.bool_] | None,
    epsilon: float,
    spread: float,
    randomness: Randomness,
) -> int:
    """Draw one query with log-weight ``epsilon * score / (2 spread)``.

    Parameters
    ----------
    scores
        int64, shape ``(m,)``, from `error_scores`.
    allowed
        bool, shape ``(m,)``: the alternatives, chosen by a public rule; None for all queries.
    epsilon
        Range of the draw, > 0.
    spread
        Rows by which a score can move between neighbours: max q - min q of the queries when a
        record is replaced.
    randomness
        Source of uniform words.

    Returns
    -------
    int
        Position of the query.

    Raises
    ------
    ValueError
        If there are no alternatives, or too many to add their weights.
    """
    places = None if allowed is None else np.flatnonzero(allowed)
    alternatives = scores if places is None else scores[places]
    if not 0 < len(alternatives) <= MOST_ALTERNATIVES:
        raise ValueError(
            f"{len(alternatives):,} queries to select from; 1 to {MOST_ALTERNATIVES:,}"
        )
    unit = epsilon / (2 * spread * GRID)
    sample = draw_outcomes(
        alternatives, 1, kernels.largest_score(alternatives), unit, 1, randomness
    )
    drawn = int(sample.queries[0])
    return drawn if places is None else int(places[drawn])
