"""Bugs that are planted in this process, one at a time, and the check that must catch each.

A check that finds nothing is worth as much as what it would have found. Each entry replaces one
function or method of the private room by one with a bug that has been made before, somewhere, or
nearly; the room knows nothing of it. The named check must report a violation then, and none without
it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dualquery.audit.patching import replaced, replaced_everywhere
from dualquery.data import units
from dualquery.data.schema.grids import Grid
from dualquery.data.units import Weight
from dualquery.privacy.neighbours import Neighbours
from dualquery.room import randomness, row_count
from dualquery.room.draws import exponential, weighted
from dualquery.room.loads import LightCounts
from dualquery.room.randomness import SeededRandomness, SystemRandomness
from dualquery.room.row_count import RowCount
from dualquery.room.scores import ExactScores, WorstCuboid
from dualquery.room.sensitivity import bounds, contrasts, moves
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import counts
from dualquery.rows.packed import Records


@dataclass(frozen=True)
class Planted:
    """A bug."""

    name: str
    plant: Callable[[], AbstractContextManager[None]]
    check: str
    """Name of the check that must catch it (`dualquery.audit.suite`)."""


def _half_the_range_of_a_selection() -> AbstractContextManager[None]:
    original = exponential.select_largest

    def faulty(scores: Any, allowed: Any, epsilon: float, spread: float, source: Any) -> int:
        return original(scores, allowed, epsilon, spread / 2, source)

    return replaced_everywhere(exponential, "select_largest", faulty)


def _half_the_range_of_the_game() -> AbstractContextManager[None]:
    original = weighted.draw_outcomes

    def faulty(scores: Any, sides: int, largest: int, unit: float, *others: Any) -> Any:
        return original(scores, sides, largest, sides * unit, *others)

    return replaced_everywhere(weighted, "draw_outcomes", faulty)


def _no_root_of_two() -> AbstractContextManager[None]:
    return replaced_everywhere(moves, "table_moves", lambda _: Moves.of_entries(1, 1))


def _cuboid_score_of_one() -> AbstractContextManager[None]:
    original = WorstCuboid.exact

    def faulty(self: WorstCuboid, data: Any) -> ExactScores:
        return replace(original(self, data), move=1.0)

    return replaced(WorstCuboid, "exact", faulty)


def _one_parity() -> AbstractContextManager[None]:
    return replaced_everywhere(moves, "parity_moves", lambda *_: Moves.of_entries(1, 1))


def _no_limit() -> AbstractContextManager[None]:
    original = LightCounts.__call__

    def faulty(self: LightCounts, rows: Any, threads: int) -> Any:
        return original(replace(self, limit=None), rows, threads)

    return replaced(LightCounts, "__call__", faulty)


def _short_contrasts() -> AbstractContextManager[None]:
    original = contrasts.squared_lengths
    return replaced_everywhere(contrasts, "squared_lengths", lambda *given: original(*given) / 2.0)


def _too_few_queries() -> AbstractContextManager[None]:
    original = bounds.differing_queries

    def faulty(*given: Any) -> bounds.Bound:
        found = original(*given)
        return replace(found, count=found.count // 2)

    return replaced_everywhere(bounds, "differing_queries", faulty)


def _rows_counted_twice() -> AbstractContextManager[None]:
    original = Records.total

    def faulty(self: Records, of: Any, threads: int) -> Any:
        return 2 * original(self, of, threads)

    return replaced(Records, "total", faulty)


def _a_seed_used_again() -> AbstractContextManager[None]:
    class Faulty(SeededRandomness):
        seeded = False

    return replaced_everywhere(randomness, "randomness", lambda _: Faulty(0))


def _a_tenth_of_the_noise() -> AbstractContextManager[None]:
    original = SystemRandomness.discrete_gaussian

    def faulty(self: SystemRandomness, scale: float, count: int) -> Any:
        return original(self, scale / 10, count)

    return replaced(SystemRandomness, "discrete_gaussian", faulty)


def _the_true_rows_in_complements() -> AbstractContextManager[None]:
    def faulty(data: Any, queries: Any, noisy: Any) -> Any:
        return np.where(bounds.complemented(queries), data.rows.n - noisy, noisy)

    return replaced_everywhere(counts, "_as_counts", faulty)


def _the_true_number_of_rows() -> AbstractContextManager[None]:
    def faulty(records: Any, epsilon: float, *_: Any, **__: Any) -> RowCount:
        return RowCount(records.n, Neighbours.ADD_REMOVE, row_count.COUNT_SHARE * epsilon)

    return replaced_everywhere(row_count, "buy_row_count", faulty)


def _units_of_one_row() -> AbstractContextManager[None]:
    original = Moves.between

    def faulty(neighbours: Neighbours, *steps: Any) -> Moves:
        if neighbours.unit is not None:
            neighbours = replace(neighbours, unit=replace(neighbours.unit, max_rows=1))
        return original(neighbours, *steps)

    return replaced(Moves, "between", staticmethod(faulty))


def _rows_that_others_crowd_out() -> AbstractContextManager[None]:
    original = units.cut_to_units

    def faulty(source: Any, unit: Any, schema: Any = None) -> Any:
        found = original(source, unit, schema)
        whole = replace(unit, max_rows=units.MOST_ROWS_PER_UNIT)
        rows = original(source, whole, schema).kept
        # As many rows as all units may have together, whoever has them.
        return replace(found, kept=rows & (np.cumsum(rows) <= unit.max_rows * found.units))

    return replaced_everywhere(units, "cut_to_units", faulty)


def _copies_of_one_row() -> AbstractContextManager[None]:
    original = Moves.between

    def faulty(neighbours: Neighbours, *steps: Any) -> Moves:
        return original(replace(neighbours, weight=None), *steps)

    return replaced(Moves, "between", staticmethod(faulty))


def _weights_by_the_largest() -> AbstractContextManager[None]:
    original = units._copies

    def faulty(values: pl.Series, weight: Weight, *where: Any) -> Any:
        largest = values.to_numpy().max(initial=1e-9)
        return original(values / largest * weight.max, weight, *where)

    return replaced_everywhere(units, "_copies", faulty)


def _numbers_beyond_their_range() -> AbstractContextManager[None]:
    def faulty(self: Grid, numbers: Any) -> Any:
        points = np.rint((numbers - self.low) / self.step).astype(np.int64)
        return (points[:, None] >> np.arange(self.digits) & 1).astype(np.bool_)

    return replaced(Grid, "encode", faulty)


PLANTED = (
    Planted(
        "half the range of a draw: a selection",
        _half_the_range_of_a_selection,
        "games/mwem/replace-one",
    ),
    Planted(
        "half the range of a draw: DualQuery's samples",
        _half_the_range_of_the_game,
        "games/dualquery/replace-one",
    ),
    Planted("sqrt 2 left out on tables", _no_root_of_two, "sensitivity/OneCuboid/replace-one"),
    Planted(
        "a cuboid's score that moves by 1",
        _cuboid_score_of_one,
        "sensitivity/WorstCuboid/replace-one",
    ),
    Planted("parities of which one moves", _one_parity, "sensitivity/Parities/replace-one"),
    Planted("a limit on loads that is left out", _no_limit, "sensitivity/FeatureSums/replace-one"),
    Planted(
        "contrasts of half their squared length",
        _short_contrasts,
        "sensitivity/FeatureSums/add-remove",
    ),
    Planted(
        "noise on all queries by a bound that is too small",
        _too_few_queries,
        "sensitivity/AllQueries/replace-one",
    ),
    Planted("rows counted twice", _rows_counted_twice, "sensitivity/OneQuery/replace-one"),
    Planted("a seed used again", _a_seed_used_again, "releases/fresh draws"),
    Planted(
        "noise of a tenth of its scale", _a_tenth_of_the_noise, "releases/gaussian/replace-one"
    ),
    Planted(
        "units whose rows are charged as one",
        _units_of_one_row,
        "sensitivity/OneCuboid/replace-one of units",
    ),
    Planted(
        "rows of a unit that stay or go by what others have",
        _rows_that_others_crowd_out,
        "sensitivity/rows that count/replace-one of units",
    ),
    Planted(
        "copies of a row that are charged as one",
        _copies_of_one_row,
        "sensitivity/OneCuboid/replace-one with weights",
    ),
    Planted(
        "weights in parts of the table's largest one",
        _weights_by_the_largest,
        "sensitivity/rows that count/replace-one with weights",
    ),
    Planted(
        "numbers of a column that are not brought into its range",
        _numbers_beyond_their_range,
        "sensitivity/ColumnSums/replace-one",
    ),
    Planted(
        "the true n in what complements give out",
        _the_true_rows_in_complements,
        "games/gaussian/add-remove",
    ),
    Planted(
        "the true n as the noisy number of rows",
        _the_true_number_of_rows,
        "releases/laplace/add-remove",
    ),
)
