"""Sums of columns: what moves on all neighbours against what is charged, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.audit.tables import records_of
from dualquery.data.schema.grids import Grid
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.statistics import ColumnSums
from tests.cases import domain_of
from tests.noise import NoNoise

GRIDS = (Grid("a", 0.0, 3.0, 3, True), Grid("b", -1.0, 1.0, 2, True))
QUERIES = Workload(np.array([[0]], np.int32), domain_of(1))
N = 2


ROWS = [(0, 0, 1, 1, 0), (1, 1, 0, 0, 1)]
"""A bit, and the digits of a number of each grid."""


def curator(rows, relation, event, public=N, grids=GRIDS) -> Curator:
    return Curator(
        records_of(np.array(rows, np.uint8)), QUERIES, (event,), NoNoise(0), neighbours=relation,
        public_rows=public, grids=grids,
    )  # fmt: skip


@pytest.mark.parametrize("column", [0, 1])
def test_one_of_the_columns_is_summed_by_itself(column: int) -> None:
    """Its sum is that of all columns' measurement, and moves as one column does."""
    event = GaussianNoise(10.0, 10.0)
    found = [
        curator(ROWS, Neighbours.REPLACE_ONE, event).measure(ColumnSums(grids), Gaussian(10.0))
        for grids in (GRIDS, GRIDS[column : column + 1])
    ]
    assert found[1].tolist() == found[0][column : column + 1].tolist()
    assert ColumnSums(GRIDS[:1]).moves(QUERIES, Neighbours.REPLACE_ONE).l2 == 2.0


def test_sums_of_other_numbers_than_the_rows_carry_are_refused() -> None:
    narrower = (Grid("a", 0.0, 3.0, 2, True), GRIDS[1])  # as many digits, and moves that are less
    event = GaussianNoise(10.0, 10.0)
    rows = ROWS
    for grids in (narrower, narrower[:1], (Grid("c", 0.0, 3.0, 3, True),), ()):
        with pytest.raises(ValueError, match="not those of the numbers"):
            curator(rows, Neighbours.REPLACE_ONE, event).measure(ColumnSums(grids), Gaussian(99.0))
    with pytest.raises(ValueError, match="summed once"):
        curator(rows, Neighbours.REPLACE_ONE, event).measure(
            ColumnSums((GRIDS[0], GRIDS[0])), Gaussian(99.0)
        )
    for grids in (GRIDS[:1], ()):
        with pytest.raises(ValueError, match="bits expected"):
            curator(rows, Neighbours.REPLACE_ONE, event, grids=grids)
