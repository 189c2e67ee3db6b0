"""Scores of alternatives to select from: how badly a public model answers queries or marginals.

The score of a query is ``|q(D) - q(A)|`` in rows, A being the public model (Hardt, Ligett and
McSherry 2012, Figure 1). The model's answers are rounded to a fixed grid of 1/`GRID` row first, so
that scores are integers on the grid: neighbours differ in them exactly as the proof says.

**Lemma.** When one record is replaced, n q(D) moves by at most ``spread`` = max q - min q rows (1
for a conjunction), and so does a score, up or down: ``||a| - |b|| <= |a - b|``. When one is added
or removed, counts are centred (`dualquery.room.sensitivity.moves`): they move by at most half the
range of the queries.

The set of scores is closed, as that of statistics is (`dualquery.room.statistics`).
"""

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from dualquery.room.private_data import PrivateData
from dualquery.room.sensitivity.moves import score_move, table_moves, twice_the_middle
from dualquery.runtime.errors import BadInputError

GRID = 1024
"""Grid points in one row, a power of two: dividing the unit of the log-weights by it is exact."""


@dataclass(frozen=True, eq=False)
class ExactScores:
    """Scores on their way to a selection. Private."""

    statistic: str  # name of the scores
    values: NDArray[np.int64]  # (alternatives,), in units of 1/`GRID` row, at least 0
    move: float  # rows by which each of them moves at most between neighbours, up or down


@dataclass(frozen=True, eq=False, slots=True)
class WorstQuery:
    """Each query by the error of a public model."""

    model: NDArray[np.float64]  # its answers, (m,)

    def exact(self, data: PrivateData) -> ExactScores:
        """Return the errors in steps of the queries, centred where n is private."""
        offset = (GRID // 2) * twice_the_middle(data.queries) * data.excess
        errors = _errors(data, self.model, offset)
        return ExactScores(type(self).__name__, errors, score_move(data.queries, data.neighbours))


@dataclass(frozen=True, eq=False, slots=True)
class WorstCuboid:
    """Each cuboid (`dualquery.queries.derived_queries`) by the errors of a public model.

    The score of a cuboid is the sum of its cells' absolute errors less the number of its cells
    (Hardt, Ligett and McSherry 2012, section 3.3). The cells' counts move by 2 in all when a record
    is replaced (1 when one is added or removed), and so does the score.
    """

    model: NDArray[np.float64]  # its answers, (m,)

    def exact(self, data: PrivateData) -> ExactScores:
        """Return the scores, all raised by the largest number of cells: none is negative."""
        groups = data.cuboids
        cells = np.diff(groups.indptr)
        errors = np.add.reduceat(_errors(data, self.model, 0)[groups.members], groups.indptr[:-1])
        raised = errors + GRID * (cells.max() - cells)
        return ExactScores(type(self).__name__, raised, table_moves(data.neighbours).l1)


PrivateScores = WorstQuery | WorstCuboid
SCORES = get_args(PrivateScores)
"""What can be selected by."""


def _errors(data: PrivateData, model: NDArray[np.float64], offset: int) -> NDArray[np.int64]:
    step = data.queries.step
    low, high = data.queries.low / step, data.queries.high / step
    return error_scores(data.counts, model / step, data.public_rows, low, high, offset)


def error_scores(
    counts: NDArray[np.int64],
    model: NDArray[np.float64],
    n: int,
    low: float = 0.0,
    high: float = 1.0,
    offset: int = 0,
) -> NDArray[np.int64]:
    """Return ``|q(D) - q(A)|`` in units of 1/`GRID` row, exact for the rounded model.

    ``counts`` are integers, ``n q(D)``, exact; ``model`` has the model's answers, float64 ``(m,)``,
    in the same units a row; ``low`` and ``high`` bound the queries' values. ``offset``, in units of
    1/`GRID`, is added to every count: what centring takes.

    `ValueError` if the model has another shape or is not finite: its scores would not be what is
    charged. `BadInputError` if scores could overflow, so that neighbours differ by more than that.
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
    return np.asarray(np.abs(GRID * counts.astype(np.int64) + offset - rounded))
