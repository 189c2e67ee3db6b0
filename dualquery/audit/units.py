"""Which rows of a unit stay, and how often each counts: by the unit's own rows alone, and in all
no more than the relation of neighbours says.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from dualquery.audit.findings import Finding
from dualquery.data.cuts import CutTable
from dualquery.data.readers.python_objects import frame_source
from dualquery.data.readers.source import Source
from dualquery.data.units import Unit, Weight, cut_to_units, weigh
from dualquery.privacy.neighbours import Neighbours

_UNITS, _MOST_ROWS = 4, 5
"""Units of a table, and rows of one."""

_LARGEST = (0.3, 1.0, 5.0, 12.5, 1e6)
"""Largest weights that count."""

Row = tuple[int, int, float]
"""Its unit, what tells it from others, its weight."""


def audit_units(tables: int, relation: Neighbours) -> Finding:
    """Read random tables and neighbours of them, and compare the rows of all units but one.

    Parameters
    ----------
    tables
        How many, each with a few neighbours.
    relation
        Whether rows are those of units, or have weights, or both; sizes are drawn anew.
    """
    finding = Finding()
    for seed in range(tables):
        generator = np.random.default_rng(seed)
        neighbours = _sized(relation, generator)
        most = 1 if neighbours.unit is None else _MOST_ROWS  # a row is a unit of its own
        others = _rows(generator, range(1, _UNITS), most)
        alternatives = [[], *(_rows(generator, range(1), most) for _ in range(4))]
        counted = [_counted(_mixed(others, own, generator), neighbours) for own in alternatives]
        finding.tried += 1
        finding.pairs += len(counted) * (len(counted) - 1) // 2
        for table in counted:
            steps = max((sum(rows.values()) for rows in table.values()), default=0)
            finding.compare(float(steps), float(neighbours.steps), f"table {seed}: a unit's rows")
            if any(table.get(unit) != counted[0].get(unit) for unit in range(1, _UNITS)):
                finding.violations.append(f"table {seed}: other rows count when one unit changes")
    return finding


def _sized(relation: Neighbours, generator: np.random.Generator) -> Neighbours:
    """Return the relation with other numbers of rows and of copies."""
    unit, weight = relation.unit, relation.weight
    if unit is not None:
        unit = Unit("unit", int(generator.integers(1, _MOST_ROWS)))
    if weight is not None:
        weight = Weight("weight", float(generator.choice(_LARGEST)))
    return replace(relation, unit=unit, weight=weight)


def _rows(generator: np.random.Generator, units: range, most: int) -> list[Row]:
    """Return rows of some units in any order."""
    rows = [
        (
            unit,
            int(generator.integers(1 << 30)),
            float(
                generator.choice([0.0, generator.uniform(0, 15), 10 ** generator.uniform(-3, 9)])
            ),
        )
        for unit in units
        for _ in range(generator.integers(1, most + 1))
    ]
    return [rows[place] for place in generator.permutation(len(rows))]


def _mixed(others: list[Row], own: list[Row], generator: np.random.Generator) -> pl.DataFrame:
    """Return a table of the rows of both, each in its order, shuffled into each other."""
    whose = generator.permutation([0] * len(others) + [1] * len(own))
    left = [iter(others), iter(own)]
    rows = [next(left[side]) for side in whose]
    schema = {"unit": pl.Int64, "row": pl.Int64, "weight": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _counted(table: pl.DataFrame, neighbours: Neighbours) -> dict[int, dict[int, int]]:
    """Return how often each row counts, unit by unit, as a release reads them."""
    source: Source = frame_source(table, "a table")
    if neighbours.unit is not None:
        source = cut_to_units(source, neighbours.unit)
    if neighbours.weight is not None:
        digits = weigh(source, neighbours.weight).digits
        copies = sum(part.kept.astype(np.int64) << place for place, part in enumerate(digits))
    else:
        assert isinstance(source, CutTable)
        copies = source.kept.astype(np.int64)
    counted: dict[int, dict[int, int]] = {}
    rows = table.select("unit", "row").iter_rows()
    for (unit, row), times in zip(rows, np.asarray(copies).tolist(), strict=True):
        if times:
            counted.setdefault(unit, {})[row] = times
    return counted
