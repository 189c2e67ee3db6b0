"""Which rows of a unit stay: by its own rows alone, and no more than the public number of them."""

from __future__ import annotations

import numpy as np
import polars as pl

from dualquery.audit.findings import Finding
from dualquery.data.readers.python_objects import frame_source
from dualquery.data.units import Unit, cut_to_units

_UNITS, _MOST_ROWS = 4, 5
"""Units of a table, and rows of one."""


def audit_units(tables: int) -> Finding:
    """Cut random tables and neighbours of them, and compare the rows of all units but one."""
    finding = Finding()
    for seed in range(tables):
        generator = np.random.default_rng(seed)
        most = int(generator.integers(1, _MOST_ROWS))
        others = _rows(generator, range(1, _UNITS))
        kept = [_kept(_mixed(others, own, generator), most) for own in _alternatives(generator)]
        finding.tried += 1
        finding.pairs += len(kept) * (len(kept) - 1) // 2
        for table in kept:
            largest = max(map(len, table.values()), default=0)
            finding.compare(float(largest), float(most), f"table {seed}: rows of a unit")
            if any(table.get(unit) != kept[0].get(unit) for unit in range(1, _UNITS)):
                finding.violations.append(f"table {seed}: other rows stay when one unit changes")
    return finding


def _rows(generator: np.random.Generator, units: range) -> list[tuple[int, int]]:
    """Return rows of some units in any order: the unit, and what tells the row."""
    rows = [
        (unit, int(generator.integers(1 << 30)))
        for unit in units
        for _ in range(generator.integers(1, _MOST_ROWS + 1))
    ]
    return [rows[place] for place in generator.permutation(len(rows))]


def _alternatives(generator: np.random.Generator) -> list[list[tuple[int, int]]]:
    """Return what unit 0 may be: not there, or any rows."""
    return [[], *(_rows(generator, range(1)) for _ in range(4))]


def _mixed(
    others: list[tuple[int, int]], own: list[tuple[int, int]], generator: np.random.Generator
) -> pl.DataFrame:
    """Return a table of the rows of both, each in its order, shuffled into each other."""
    whose = generator.permutation([0] * len(others) + [1] * len(own))
    left = [iter(others), iter(own)]
    rows = [next(left[side]) for side in whose]
    return pl.DataFrame(rows, schema={"unit": pl.Int64, "row": pl.Int64}, orient="row")


def _kept(table: pl.DataFrame, most: int) -> dict[int, list[int]]:
    """Return the rows that stay of each unit."""
    found = cut_to_units(frame_source(table, "a table"), Unit("unit", most))
    stay: dict[int, list[int]] = {}
    for unit, row in table.filter(pl.Series(found.kept)).iter_rows():
        stay.setdefault(unit, []).append(row)
    return stay
