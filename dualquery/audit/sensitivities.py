"""Every sensitivity of the private room by brute force: what moves, against what is charged.

Numbers are taken where noise would be added to them, scores where they would become weights: on
some rows with every legal record of a small domain besides. The largest move over all pairs of
records (or to the table without a record) is the truth.
"""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import beta, norm

from dualquery.audit import cases
from dualquery.audit.cases import CASES, Case, Generator
from dualquery.audit.findings import ERROR, Finding
from dualquery.audit.rooms import Probe, replaced
from dualquery.data.drafts.shapes import PARTITIONS, Values
from dualquery.data.given_table import Unit, Weight
from dualquery.data.readers.python_objects import FrameSource, frame_source
from dualquery.data.readers.source import Source
from dualquery.privacy.accountants.choice import ACCOUNTANTS
from dualquery.privacy.events import ThresholdedCounts
from dualquery.privacy.neighbours import Neighbours
from dualquery.room import learning, randomness
from dualquery.room.journal import NO_JOURNAL
from dualquery.room.private_data import PrivateData
from dualquery.room.row_count import buy_row_count
from dualquery.room.scores import GRID, SCORES, WorstCuboid, WorstQuery
from dualquery.room.statistics import STATISTICS
from dualquery.rows.units import cut_to_units, weigh

EVERYTHING = (*STATISTICS, *SCORES)
"""Every type that the room measures or selects by: the room's own lists."""


def move(case: Case, relation: Neighbours, generator: Generator, finding: Finding) -> None:
    """Compare how far one case moves with what is charged, on all pairs of records."""
    records = cases.carrying(cases.legal_records(case.queries.domain), case.grids, generator)
    base = _unit(len(records), int(generator.integers(1, 4)), relation.copies, generator)
    excess = 0 if relation.rows_public else int(generator.integers(-1, 4))

    def data(unit: Counted) -> PrivateData:
        rows, copies = np.array([*base, *unit], np.int64).T
        table = cases.table_of(records[rows], copies, relation)
        return PrivateData(table, case.queries, relation, len(base) + 1 + excess, grids=case.grids)

    tables = [data(unit) for unit in _units(len(records), relation, generator)]
    asked = f"{len(case.queries)} {type(case.queries).__name__} about {case.queries.domain}"
    what = f"{type(case.counted).__name__} of {asked}, {cases.name_of(relation)}"
    finding.tried += 1
    if isinstance(case.counted, WorstQuery | WorstCuboid):
        scores = [case.counted.exact(each) for each in tables]
        apart = _apart(np.array([each.values for each in scores], np.float64) / GRID, relation)
        finding.compare(float(np.abs(apart).max()), scores[0].move, f"{what}: a score")
    else:
        exact = [case.counted.exact(each) for each in tables]
        apart = _apart(np.array([(e.numbers / e.scales).ravel() for e in exact]), relation)
        charged = exact[0].moves
        planned = case.counted.moves(case.queries, relation)
        if (charged.l1, charged.l2) != (planned.l1, planned.l2):
            finding.violations.append(f"{what}: {charged} is charged and {planned} planned")
        if np.isfinite(charged.l1):
            finding.compare(float(np.abs(apart).sum(axis=1).max()), charged.l1, f"{what}: L1")
        finding.compare(float(np.linalg.norm(apart, axis=1).max()), charged.l2, f"{what}: L2")
    finding.pairs += len(apart)


Counted = tuple[tuple[int, int], ...]
"""Rows of a table: the number of each one's record, and how many copies of it count."""


def _units(universe: int, relation: Neighbours, generator: Generator) -> list[Counted]:
    """Return what one unit may be: each record once, or as often as can be; some; none, last."""
    most = relation.steps // relation.copies
    units: list[Counted] = [((record, 1),) for record in range(universe)]
    if relation.steps > 1:
        units += [((record, relation.copies),) * most for record in range(universe)]
        for _ in range(20):
            size = int(generator.integers(min(2, most), most + 1))
            units.append(_unit(universe, size, relation.copies, generator))
    return units if relation.rows_public else [*units, ()]


def _unit(universe: int, rows: int, copies: int, generator: Generator) -> Counted:
    """Return any rows; each counts 1 to ``copies`` times."""
    records = generator.integers(universe, size=rows).tolist()
    return tuple(zip(records, generator.integers(1, copies + 1, size=rows).tolist(), strict=True))


def _apart(values: NDArray[np.float64], relation: Neighbours) -> NDArray[np.float64]:
    """Return the differences between neighbours: of all tables, or of each to the last one."""
    if not relation.replaces:
        return np.asarray(values[:-1] - values[-1])
    one, other = np.triu_indices(len(values), 1)
    return np.asarray(values[one] - values[other])


def audit_moves(relation: Neighbours, kind: type, tries: int) -> Finding:
    """Try random cases of one statistic, or of one kind of scores."""
    finding = Finding()
    if kind not in CASES:
        finding.violations.append(f"{kind.__name__} is measured by the room, and not tried here")
        return finding
    for seed in range(tries):
        generator = np.random.default_rng(seed)
        move(Case(kind, cases.random_domain(generator), generator), relation, generator, finding)
    return finding


def audit_row_count(relation: Neighbours, tables: int) -> Finding:
    """Compare the noise on the number of rows with its price."""
    finding = Finding()
    for rows in range(1, tables + 1):
        epsilon = 2.0**rows
        shown = []
        for size in (rows, rows + relation.steps):
            probe = Probe()
            with replaced(randomness, "randomness", lambda _, probe=probe: probe):
                table = cases.records_of(np.zeros((size, 1), np.uint8))
                count = buy_row_count(table, epsilon, None, relation)
            if probe.scale == 0.0:
                finding.violations.append("the number of rows is given out without noise")
                return finding
            shown.append(count.n - int(probe.scale * probe.unit))
            finding.compare(relation.steps / probe.scale, count.epsilon, "the number of rows")
        finding.add(Finding(1, 1))
        if shown[1] - shown[0] != relation.steps:
            finding.violations.append(f"the number of rows moves by {shown[1] - shown[0]}")
    return finding


_UNITS, _MOST_ROWS = 4, 5  # of a table, of a unit


def audit_units(relation: Neighbours, tables: int) -> Finding:
    """Read random tables and neighbours of them, and compare the rows of all units but one."""
    finding = Finding()
    for seed in range(tables):
        generator = np.random.default_rng(seed)
        neighbours = _sized(relation, generator)
        most = 1 if neighbours.unit is None else _MOST_ROWS  # a row is a unit of its own
        others = _rows(generator, range(1, _UNITS), most)
        owns = [others[:0], *(_rows(generator, range(1), most) for _ in range(4))]
        mixed = [pl.concat((others, own)).sort("place") for own in owns]
        counted = [_counted(table, neighbours) for table in mixed]
        finding.add(Finding(1, len(owns) * (len(owns) - 1) // 2))
        for table in counted:
            of_units = table.group_by("unit").agg(pl.col("copies").sum())["copies"]
            steps = max(of_units.to_list(), default=0)
            finding.compare(float(steps), float(neighbours.steps), f"table {seed}: a unit's rows")
            if not table.filter(pl.col("unit") > 0).equals(counted[0]):
                finding.violations.append(f"table {seed}: other rows count when one unit changes")
    return finding


def _sized(relation: Neighbours, generator: Generator) -> Neighbours:
    """Return the relation with other numbers of rows and of copies."""
    unit = relation.unit and Unit("unit", int(generator.integers(1, _MOST_ROWS)))
    largest = float(generator.choice((0.3, 1.0, 5.0, 12.5, 1e6)))
    return replace(relation, unit=unit, weight=relation.weight and Weight("weight", largest))


def _rows(generator: Generator, units: range, most: int) -> pl.DataFrame:
    """Return rows of some units in any order, and their places among others, in this order."""
    unit = generator.permutation(np.repeat(units, generator.integers(1, most + 1, len(units))))
    count = len(unit)
    weights = np.stack(
        (np.zeros(count), generator.uniform(0, 15, count), 10 ** generator.uniform(-3, 9, count))
    )
    weight = weights[generator.integers(3, size=count), np.arange(count)]
    place = np.sort(generator.random(count))  # tells rows from each other, too
    return pl.DataFrame({"unit": unit, "weight": weight, "place": place})


def _counted(table: pl.DataFrame, neighbours: Neighbours) -> pl.DataFrame:
    """Return the rows that count, and how often, as a release reads them."""
    source: Source = frame_source(table, "a table")
    cut = None if neighbours.unit is None else cut_to_units(source, neighbours.unit)
    if neighbours.weight is not None:
        _, digits = weigh(cut or source, neighbours.weight)
        copies = sum(part.kept.astype(np.int64) << place for place, part in enumerate(digits))
    else:
        assert cut is not None
        copies = cut.kept.astype(np.int64)
    counted = table.with_columns(copies=pl.Series(np.asarray(copies)))
    return counted.filter(pl.col("copies") > 0).sort("unit", "place")


_FAR = 60.0  # an epsilon at which noise alone costs no delta
_TEXTS, _SCALE, _DELTA = 20_000, 0.4, 0.2
"""Texts of one row each, the noise in their counts, and the delta of their threshold."""


def audit_thresholds(relation: Neighbours) -> Finding:
    """Compare delta with the chance that a text which one table alone has is published.

    The rows of one unit have that text, in any numbers.
    """
    finding = Finding()
    rows = 1 if relation.unit is None else relation.unit.max_rows
    for columns, wide, delta in product((1, 3, 15), (1.0, 8.0), (1e-2, 1e-6)):
        sensitivity = learning.values_sensitivity(columns, relation)
        # A row moves one count of each column, and one of each partition of its shapes.
        moved = rows * math.sqrt((1 + relation.replaces) * columns)
        shapes = learning.shapes_sensitivity(columns, relation)
        finding.compare(moved, sensitivity, f"{columns} columns' values")
        finding.compare(math.sqrt(PARTITIONS) * moved, shapes, f"{columns} columns' shapes")
        scale = wide * sensitivity
        tau = learning.threshold(scale, columns, relation, delta)
        units = [sizes for sizes in product(range(rows + 1), repeat=rows) if sum(sizes) <= rows]
        chances = [[norm.sf(tau - size, scale=scale) for size in unit if size] for unit in units]
        what = f"{columns} columns, {cases.name_of(relation)}, delta {delta:g}: "
        worst = columns * max(map(math.fsum, chances))
        finding.compare(worst, delta / 2, f"{what}texts of one table")
        # Some text of the unit's is published: no such result is possible without it.
        least = min(math.fsum(map(math.log1p, (-p for p in each))) for each in chances)
        shown = -math.expm1(columns * least)
        schedule = (ThresholdedCounts(sensitivity, scale, delta),)
        for accountant in ACCOUNTANTS:
            if accountant.supports(schedule, 0.5) is None:
                charged = accountant.delta(schedule, _FAR)
                finding.compare(shown, charged, f"{what}delta of {accountant.name}")
        finding.add(Finding(1, len(units)))
    return finding


def audit_single_texts() -> Finding:
    """Publish texts that one row each has, and compare their share with what delta allows.

    Each text is drawn for by itself, so that one table stands for as many worst pairs. The share is
    bounded from below by Clopper and Pearson's intervals, wrong with a chance of `ERROR` together.
    """
    relation = Neighbours.REPLACE_ONE
    frame = pl.DataFrame({"a": [f"text {number}" for number in range(_TEXTS)]})
    source = frame_source(frame, "a table")
    assert isinstance(source, FrameSource)
    room = learning.SchemaRoom(source, ("a",), ("a",), relation)
    sensitivity = learning.values_sensitivity(1, relation)
    finding = Finding()
    # Above the largest epsilon noise is drawn otherwise.
    for epsilon in (1.0, 2 * learning.LARGEST_EPSILON):
        event = ThresholdedCounts(sensitivity, _SCALE, _DELTA)
        room.open((event,), None, NO_JOURNAL, epsilon)
        (published,) = room.values([("a", Values())], _SCALE, _DELTA)
        hits = len(published)
        least = float(beta.ppf(ERROR / 2, hits, _TEXTS - hits + 1)) if hits else 0.0
        finding.compare(least, _DELTA / 2, "a single row's text is published")
        finding.add(Finding(_TEXTS, _TEXTS))
    return finding
