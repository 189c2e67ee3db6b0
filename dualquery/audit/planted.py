"""Bugs that are planted in this process, one at a time, and the check that must catch each.

A check that finds nothing shows nothing, unless it would have found a bug. Each entry replaces one
function or method of the project by one with a bug that has been made before, somewhere, or nearly;
the room knows nothing of it. The named check must report a violation then, and none without it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualquery.audit.rooms import replaced
from dualquery.data.schema.grids import Grid
from dualquery.privacy import events
from dualquery.privacy.neighbours import Neighbours
from dualquery.room import learning, randomness, row_count, statistics
from dualquery.room.draws import exact_draws, exponential
from dualquery.room.noise import gaussian
from dualquery.room.randomness import SeededRandomness, SystemRandomness
from dualquery.room.row_count import RowCount
from dualquery.room.scores import WorstCuboid
from dualquery.room.sensitivity import contrasts, moves
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.strategy import LightCounts
from dualquery.rows import units
from dualquery.rows.packed import Records

Faulty = Callable[..., Any]
"""Stands for a function, which it gets first, before what that would be given."""


@dataclass(frozen=True)
class Planted:
    """A bug: what it stands in the place of, and who must notice."""

    name: str
    check: str  # name of the check that must catch it (`dualquery.audit.suite`)
    owner: Any  # a module, whose function is replaced wherever it was imported; or a class
    attribute: str
    faulty: Faulty

    def plant(self) -> AbstractContextManager[None]:
        """Return a context in which the bug is there."""
        original = getattr(self.owner, self.attribute)

        def by(*given: Any, **named: Any) -> Any:
            return self.faulty(original, *given, **named)

        static = isinstance(vars(self.owner)[self.attribute], staticmethod)
        return replaced(self.owner, self.attribute, staticmethod(by) if static else by)


def _rows_that_others_crowd_out(original: Faulty, source: Any, unit: Any, *schema: Any) -> Any:
    found = original(source, unit, *schema)
    rows = original(source, replace(unit, max_rows=10**6), *schema).kept
    # As many rows as all units may have together, whoever has them.
    return replace(found, kept=rows & (np.cumsum(rows) <= unit.max_rows * found.units))


def _weights_by_the_largest(original: Faulty, piece: Any, weight: Any) -> Any:
    scaled = (values := piece.frame[weight.column]) / (values.max() or 1e-9) * weight.max
    return original(piece._replace(frame=piece.frame.with_columns(scaled)), weight)


def _beyond_its_range(_: Faulty, grid: Grid, numbers: Any) -> Any:
    points = np.rint((numbers - grid.low) / grid.step).astype(np.int64)
    return (points[:, None] >> np.arange(grid.digits) & 1).astype(np.bool_)


PLANTED = tuple(Planted(*each) for each in (
    ("half the range of a draw: a selection", "games/mwem/replace-one",
     exponential, "select_largest",
     lambda original, *given: original(*given[:-2], given[-2] / 2, given[-1])),
    ("half the range of a draw: DualQuery's samples", "games/dualquery/replace-one",
     exact_draws, "draw_outcomes",
     lambda original, scores, sides, unit, *given: original(scores, sides, sides * unit, *given)),
    ("sqrt 2 left out on tables", "sensitivity/OneCuboid/replace-one",
     moves, "table_moves", lambda *_: Moves.of_entries(1, 1)),
    ("a cuboid's score that moves by 1", "sensitivity/WorstCuboid/replace-one",
     WorstCuboid, "exact", lambda original, *given: replace(original(*given), move=1.0)),
    ("parities as if one moved", "sensitivity/OddCounts/replace-one",
     moves, "parity_moves", lambda *_: Moves.of_entries(1, 1)),
    ("a limit on loads that is left out", "sensitivity/FeatureSums/replace-one",
     LightCounts, "__call__",
     lambda original, counts, *given: original(replace(counts, limit=None), *given)),
    ("contrasts of half their squared length", "sensitivity/FeatureSums/add-remove",
     contrasts, "squared_lengths", lambda original, *given: original(*given) / 2.0),
    ("noise on all queries by a bound that is too small", "sensitivity/AllQueries/replace-one",
     moves, "differing_queries",
     lambda original, *given: replace(original(*given), count=original(*given).count // 2)),
    ("rows counted twice", "sensitivity/OneQuery/replace-one",
     Records, "total", lambda original, *given: 2 * original(*given)),
    ("a seed used again", "releases/fresh draws",
     randomness, "randomness", lambda *_: SeededRandomness(0)),
    ("one draw for a whole vector", "releases/fresh draws",
     SystemRandomness, "discrete_gaussian",
     lambda original, source, scale, count: np.repeat(original(source, scale, 1), count)),
    ("no noise at all", "games/gaussian/replace-one",
     gaussian, "add_gaussian", lambda _, counts, *__: counts.astype(np.float64)),
    ("noise of a tenth of its scale", "releases/gaussian/add-remove",
     SystemRandomness, "discrete_gaussian",
     lambda original, source, scale, count: original(source, scale / 10, count)),
    ("units whose rows are charged as one", "sensitivity/OneCuboid/replace-one of units",
     Moves, "between",
     lambda original, relation, *steps: original(replace(relation, unit=None), *steps)),
    ("rows of a unit that stay or go by what others have",
     "sensitivity/rows that count/replace-one of units",
     units, "cut_to_units", _rows_that_others_crowd_out),
    ("copies of a row that are charged as one", "sensitivity/OneCuboid/replace-one with weights",
     Moves, "between",
     lambda original, relation, *steps: original(replace(relation, weight=None), *steps)),
    ("weights in parts of the table's largest one",
     "sensitivity/rows that count/replace-one with weights",
     units, "_copies", _weights_by_the_largest),
    ("numbers of a column that are not brought into its range",
     "sensitivity/ColumnSums/replace-one", Grid, "encode", _beyond_its_range),
    ("the true n in what complements give out", "games/gaussian/add-remove",
     statistics, "_as_counts",
     lambda _, data, asked, seen: np.where(moves.complemented(asked), data.rows.n - seen, seen)),
    ("the true n as the noisy number of rows", "releases/laplace/add-remove",
     row_count, "buy_row_count",
     lambda _, records, epsilon, *__: RowCount(records.n, Neighbours.ADD_REMOVE, epsilon / 25)),
    ("half of how far counts of values move", "sensitivity/learned schema/add-remove",
     learning, "values_sensitivity", lambda original, *given: original(*given) / 2.0),
    ("a learned schema's units charged as one row",
     "sensitivity/learned schema/replace-one of units", learning, "rows_of_unit", lambda _, __: 1),
    ("a threshold whose delta nobody charges", "sensitivity/learned schema/replace-one",
     events, "threshold_delta", lambda *_: 0.0),
    ("a threshold that is one too low", "sensitivity/learned schema/add-remove",
     learning, "threshold", lambda original, *given: float(original(*given)) - 1.0),
    ("a threshold that is one too low, as drawn", "releases/single texts",
     learning, "threshold", lambda original, *given: float(original(*given)) - 1.0),
))  # fmt: skip
