"""Tiny tables with all their neighbours, and random cases of everything that the room counts."""

import itertools
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes, cells_of, rows_of_values
from dualquery.data.given_table import Unit, Weight
from dualquery.data.schema.grids import Grid
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries import parities
from dualquery.queries.conjunctions import Workload
from dualquery.queries.derived_queries import Cuboids, asked_sets
from dualquery.queries.family import Queries
from dualquery.queries.generate.workloads import all_marginals, count_distinct, random_conjunctions
from dualquery.queries.ranges import RangeQueries
from dualquery.queries.tabulated import HistogramQueries
from dualquery.room import scores, statistics
from dualquery.room.features import Features
from dualquery.room.strategy import Strategy
from dualquery.rows.packed import Records, RecordsBuilder
from dualquery.rows.repeats import first_occurrences, pad_right
from dualquery.rows.row_sums import Rows
from dualquery.rows.weighted_rows import WeightedRows

Generator = np.random.Generator


class FewCopies(Weight):
    """A weight of at most three copies, so that much can be tried; others have about a thousand."""

    copies = 3


UNITS = tuple(Neighbours.parse(each.value, Unit("unit", 2)) for each in RELATIONS)
WEIGHTS = (
    Neighbours.parse("replace-one", None, FewCopies("weight", 3.0)),
    Neighbours.parse("add-remove", Unit("unit", 2), FewCopies("weight", 3.0)),
)
"""Both relations of units of two rows; rows that count by their weight, alone or of units."""

Cells = tuple[int, ...]
"""A table by the cells of its rows, increasing; a cell is a legal record's number."""


def legal_records(domain: Domain) -> NDArray[np.uint8]:
    """Return every legal record, in the order of the histogram's cells: uint8, ``(c, bits)``."""
    sizes = axis_sizes(domain).tolist()
    records = rows_of_values(np.indices(sizes).reshape(len(sizes), -1).T, domain)
    if domain.max_ones is not None:
        records = records[records.sum(axis=1) <= domain.max_ones]
    return records


def records_of(rows: NDArray[np.uint8]) -> Records:
    """Return rows, uint8 ``(r, bits)``, as the private room reads them."""
    builder = RecordsBuilder(rows.shape[1])
    builder.append_dense(np.asarray(rows, np.uint8))
    return builder.build()


def table_of(rows: NDArray[np.uint8], copies: NDArray[np.int64], relation: Neighbours) -> Rows:
    """Return rows, each with the number of its copies: 1 unless they have weights."""
    if relation.weight is None:
        return records_of(rows)
    digits = range(relation.copies.bit_length())
    return WeightedRows(tuple(records_of(rows[copies >> digit & 1 == 1]) for digit in digits))


def carrying(
    records: NDArray[np.uint8], grids: tuple[Grid, ...], generator: Generator
) -> NDArray[np.uint8]:
    """Return records with numbers behind them: beyond one end, beyond the other, any between."""
    if not grids:
        return records
    parts = []
    for low, high in ((-1.0, 0.0), (1.0, 2.0), (0.0, 1.0)):
        shares = generator.uniform(low, high, (len(grids), len(records)))
        numbers = [g.low + share * (g.high - g.low) for g, share in zip(grids, shares, strict=True)]
        digits = [grid.encode(each) for grid, each in zip(grids, numbers, strict=True)]
        parts.append(np.hstack((records, *digits)).astype(np.uint8))
    return np.concatenate(parts)


def name_of(relation: Neighbours) -> str:
    """Return what checks call a relation."""
    units = "" if relation.unit is None else " of units"
    return relation.value + units + ("" if relation.weight is None else " with weights")


def tables_of(universe: int, rows: int, relation: Neighbours) -> list[Cells]:
    """Return the tables of a number of rows; if that is private, those of a unit more, too."""
    sizes = [rows] if relation.rows_public else range(rows, rows + relation.steps + 1)
    every = itertools.combinations_with_replacement
    return [cells for size in sizes for cells in every(range(universe), size)]


@cache
def pairs_of(universe: int, rows: int, relation: Neighbours) -> tuple[tuple[Cells, Cells], ...]:
    """Return all neighbours among these, each pair in both orders."""
    found = []
    for one, other in itertools.permutations(tables_of(universe, rows, relation), 2):
        shared = sum(min(one.count(c), other.count(c)) for c in range(universe))
        gone, come = len(one) - shared, len(other) - shared
        # A unit that comes or goes leaves no other in its place.
        if max(gone, come) <= relation.steps and (relation.replaces or 0 in (gone, come)):
            found.append((one, other))
    return tuple(found)


def random_domain(generator: Generator) -> Domain:
    """Return up to five columns of one to four bits, few of whose records are legal."""
    while True:
        sizes = generator.choice([1, 1, 1, 2, 3, 4], size=generator.integers(1, 6))
        domain = Domain(np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))
        if cells_of(domain) <= 48:
            return domain


def random_workload(domain: Domain, generator: Generator) -> Workload:
    """Return conjunctions of any literals: several on one column, and repeated ones, included."""
    way = int(generator.integers(1, min(4, domain.bits) + 1))
    positive = generator.choice([0.0, 0.2, 0.5, 1.0])
    rows = []
    for _ in range(generator.integers(1, 25)):
        size = int(generator.integers(1, way + 1))
        bits = generator.choice(domain.bits, size, replace=False)
        codes = 2 * bits + (generator.random(size) >= positive)
        rows.append(np.pad(codes, (0, way - size), constant_values=-1))
    return Workload(np.array(rows, np.int32), domain, repeats=True)


def proper_workload(domain: Domain, generator: Generator) -> Workload:
    """Return conjunctions as users have them generated."""
    way = int(generator.integers(1, min(3, domain.columns) + 1))
    most = min(20, count_distinct(domain, way))
    seed = int(generator.integers(1 << 31))
    return random_conjunctions(domain, most, way, seed=seed)


def marginals(domain: Domain, generator: Generator) -> Workload:
    """Return every cell of every marginal of some way."""
    return all_marginals(domain, int(generator.integers(1, min(3, domain.columns) + 1)))


def other_family(domain: Domain, generator: Generator) -> Queries:
    """Return queries that are no conjunctions."""
    kind = generator.integers(3)
    if kind == 0:
        return parities.Parities(domain, int(generator.integers(1, min(3, domain.columns) + 1)))
    if kind == 1:
        return RangeQueries.all_products(domain, int(generator.integers(1, domain.columns + 1)))
    values = generator.normal(size=(generator.integers(1, 7), cells_of(domain)))
    return HistogramQueries(values * generator.choice([0.1, 1.0, 20.0]), domain)


def few_ones(_: Domain, generator: Generator) -> Workload:
    """Return conjunctions about binary columns; a record has few 1s."""
    binary = Domain.binary(int(generator.integers(3, 6)))
    most = int(generator.integers(1, binary.bits))
    return random_workload(Domain(binary.offsets, most), generator)


def random_features(domain: Domain, generator: Generator) -> Features:
    """Return products of indicators and signs on different columns."""
    rows = []
    way = int(generator.integers(1, min(3, domain.columns) + 1))
    for _ in range(generator.integers(1, 16)):
        size = int(generator.integers(1, way + 1))
        columns = np.sort(generator.choice(domain.columns, size, replace=False))
        binary = axis_sizes(domain)[columns] == 2
        within = np.where(binary, 0, generator.integers(0, domain.sizes[columns]))
        bits = domain.offsets[columns] + within
        rows.append(np.pad(bits, (0, way - size), constant_values=-1))
    factors = pad_right(np.array(rows, np.int32))
    different = first_occurrences(factors, domain.bits) == np.arange(len(factors))
    plain = Features(np.ascontiguousarray(factors[different]), domain)
    return with_some_blocks(plain, generator) if generator.random() < 0.5 else plain


def with_some_blocks(plain: Features, generator: Generator) -> Features:
    """Return features in which some sets of columns are measured whole, by contrasts."""
    domain = plain.domain
    _, of = np.unique(plain.columns, axis=0, return_inverse=True)
    whole = (generator.random(of.max() + 1) < 0.5)[of.ravel()]
    rows = [plain.bits[~whole]]
    for columns in np.unique(plain.columns[whole], axis=0):
        sizes = [size if size > 2 else 1 for size in domain.sizes[columns[columns >= 0]].tolist()]
        cells = np.indices(sizes).reshape(len(sizes), -1).T + domain.offsets[columns[columns >= 0]]
        missing = plain.bits.shape[1] - len(sizes)
        rows.append(np.pad(cells, ((0, 0), (0, missing)), constant_values=-1).astype(np.int32))
    bits = np.concatenate(rows)
    return Features(bits, domain, np.arange(len(bits)) >= len(rows[0]))


def random_strategy(queries: Queries, generator: Generator) -> Strategy:
    """Return features with scales of their own, and a limit that cuts some rows or none."""
    features = random_features(queries.domain, generator)
    scales = np.exp(generator.normal(scale=generator.choice([0.0, 1.0]), size=len(features)))
    blocks = features.blocks
    leaders = blocks.features[np.unique(blocks.of, return_index=True)[1]]
    scales[blocks.features] = scales[leaders][blocks.of]
    # The room makes it anew for its own neighbours.
    free = Strategy(features, scales, Neighbours.REPLACE_ONE)
    share = generator.choice([0.0, 0.3, 0.7, 1.0, 2.0])
    limit = None if generator.random() < 0.3 else float(share * free.loads.proven())
    return Strategy(features, scales, Neighbours.REPLACE_ONE, limit)


def _any_queries(domain: Domain, generator: Generator) -> Any:
    makers = (random_workload, proper_workload, marginals, other_family, few_ones)
    return makers[generator.integers(len(makers))](domain, generator)


def _position(queries: Any, generator: Generator) -> int:
    return int(generator.integers(len(queries)))


def _positions(queries: Any, generator: Generator) -> NDArray[np.int64]:
    return generator.integers(len(queries), size=generator.integers(1, 12))


def _grids(_: Any, generator: Generator) -> tuple[Grid, ...]:
    steps = generator.integers(1, 200, size=generator.integers(1, 4)).tolist()
    return tuple(Grid(str(n), -1.0, 1.0, each, exact=False) for n, each in enumerate(steps))


def _model(queries: Any, generator: Generator) -> NDArray[np.float64]:
    far = generator.choice([1.0, 1.5])
    return np.asarray(generator.uniform(far * queries.low, far * queries.high, len(queries)))


CASES: Mapping[type, tuple[Callable[..., Any], Callable[..., Any] | None]] = {
    statistics.AllQueries: (_any_queries, None),
    statistics.SomeQueries: (random_workload, _positions),
    statistics.OneQuery: (_any_queries, _position),
    statistics.OneCuboid: (marginals, lambda queries, g: _position(Cuboids.of(queries), g)),
    statistics.QueryTable: (proper_workload, _position),
    statistics.EveryCell: (proper_workload, None),
    statistics.OddCounts: (lambda *given: asked_sets(proper_workload(*given)).workload, None),
    statistics.FeatureSums: (proper_workload, random_strategy),
    statistics.ColumnSums: (proper_workload, _grids),
    statistics.RowTotal: (proper_workload, None),
    scores.WorstQuery: (_any_queries, _model),
    scores.WorstCuboid: (marginals, _model),
}
"""The queries of a case, and what is counted of them, made of the queries and a generator."""


class Case:
    """Something that the room counts, on the queries that it holds."""

    def __init__(self, kind: type, domain: Domain, generator: Generator) -> None:
        made, given = CASES[kind]
        self.queries: Any = made(domain, generator)
        self.counted: statistics.PrivateStatistic | scores.PrivateScores
        self.counted = kind() if given is None else kind(given(self.queries, generator))
        self.grids: tuple[Grid, ...] = getattr(self.counted, "grids", ())
