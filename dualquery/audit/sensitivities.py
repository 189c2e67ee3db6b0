"""Every sensitivity of the private room by brute force: what moves, against what is charged.

Numbers are taken where noise would be added to them, scores where they would become weights: on
some rows with every legal record of a small domain besides. The largest move over all pairs of
records (or to the table without a record) is the truth. Domains, workloads, strategies, limits and
models are random; the measurements that mechanisms plan for such workloads are tried, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dualquery.audit import strategies
from dualquery.audit.findings import Finding
from dualquery.audit.patching import replaced_everywhere
from dualquery.audit.rooms import Probe
from dualquery.audit.strategies import Generator
from dualquery.audit.tables import legal_records, name_of, records_of, table_of
from dualquery.data.domain import Domain
from dualquery.data.schema.grids import Grid
from dualquery.mechanisms.protocol import Budget, Mechanism, Session, Task
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.forms.cuboids import Cuboids
from dualquery.queries.forms.fourier import asked_sets
from dualquery.room import randomness
from dualquery.room.private_data import PrivateData
from dualquery.room.row_count import buy_row_count
from dualquery.room.scores import GRID, SCORES, PrivateScores, WorstCuboid, WorstQuery
from dualquery.room.statistics import (
    STATISTICS,
    AllQueries,
    ColumnSums,
    EveryCell,
    FeatureSums,
    OneCuboid,
    OneQuery,
    Parities,
    PrivateStatistic,
    QueryTable,
    RowTotal,
    SomeQueries,
)
from dualquery.runtime.errors import BadInputError

_MIXED_UNITS = 20
"""Units of random records, besides those of one record."""

EVERYTHING = (*STATISTICS, *SCORES)
"""Every type that the room measures or selects by: the room's own lists."""


@dataclass(frozen=True, eq=False)
class Case:
    """Something that the room counts, on the queries that it holds."""

    queries: Any
    counted: PrivateStatistic | PrivateScores
    grids: tuple[Grid, ...] = ()
    """Of the numbers that records carry: every pair of records carries every pair of ends."""


def move(case: Case, relation: Neighbours, generator: Generator, finding: Finding) -> None:
    """Compare how far one case moves with what is charged, on all pairs of records."""
    records = carrying(legal_records(case.queries.domain), case.grids, generator)
    base = _unit(len(records), int(generator.integers(1, 4)), relation.copies, generator)
    excess = 0 if relation.rows_public else int(generator.integers(-1, 4))

    def data(unit: Counted) -> PrivateData:
        rows, copies = np.array([*base, *unit], np.int64).T
        table = table_of(records[rows], copies, relation)
        return PrivateData(table, case.queries, relation, len(base) + 1 + excess, grids=case.grids)

    units = _units(len(records), relation, generator)
    tables = [data(unit) for unit in units]
    what = f"{type(case.counted).__name__} of {_told(case.queries)}, {name_of(relation)}"
    finding.tried += 1
    if isinstance(case.counted, WorstQuery | WorstCuboid):
        scores = [case.counted.exact(each) for each in tables]
        apart = _apart(np.array([each.values for each in scores], np.float64) / GRID, relation)
        finding.compare(float(np.abs(apart).max()), scores[0].move, f"{what}: a score")
    else:
        exact = [case.counted.exact(each) for each in tables]
        apart = _apart(np.array([(e.numbers / e.scales).ravel() for e in exact]), relation)
        charged, planned = exact[0].moves, case.counted.moves(case.queries, relation)
        if (charged.l1, charged.l2) != (planned.l1, planned.l2):
            finding.violations.append(f"{what}: {charged} is charged and {planned} planned")
        if np.isfinite(charged.l1):
            finding.compare(float(np.abs(apart).sum(axis=1).max()), charged.l1, f"{what}: L1")
        finding.compare(float(np.linalg.norm(apart, axis=1).max()), charged.l2, f"{what}: L2")
    finding.pairs += len(apart)


def carrying(
    records: NDArray[np.uint8], grids: tuple[Grid, ...], generator: Generator
) -> NDArray[np.uint8]:
    """Return records with numbers behind them: beyond one end, beyond the other, any between."""
    if not grids:
        return records
    parts = []
    for number in (0.0, 1.0, None):
        digits = [
            grid.encode(
                generator.uniform(grid.low, grid.high, len(records))
                if number is None
                else np.full(len(records), (grid.low - 1.0, grid.high + 1.0)[int(number)])
            )
            for grid in grids
        ]
        parts.append(np.hstack((records, *digits)).astype(np.uint8))
    return np.concatenate(parts)


Counted = tuple[tuple[int, int], ...]
"""Rows of a table: the number of each one's record, and how many copies of it count."""


def _units(universe: int, relation: Neighbours, generator: Generator) -> list[Counted]:
    """Return what one unit may be; no rows at all come last.

    Every record by itself; of units and weighted rows every record as often as can be, and some
    other ones.
    """
    most = relation.steps // relation.copies
    units: list[Counted] = [((record, 1),) for record in range(universe)]
    if relation.steps > 1:
        units += [((record, relation.copies),) * most for record in range(universe)]
        for _ in range(_MIXED_UNITS):
            size = int(generator.integers(min(2, most), most + 1))
            units.append(_unit(universe, size, relation.copies, generator))
    if not relation.rows_public:
        units.append(())
    return units


def _unit(universe: int, rows: int, copies: int, generator: Generator) -> Counted:
    """Return any rows, each of which counts up to so many times."""
    records = generator.integers(universe, size=rows).tolist()
    return tuple(zip(records, generator.integers(1, copies + 1, size=rows).tolist(), strict=True))


def _apart(values: NDArray[np.float64], relation: Neighbours) -> NDArray[np.float64]:
    """Return the differences between neighbours: of all tables, or of each to the last one."""
    if not relation.replaces:
        return np.asarray(values[:-1] - values[-1])
    one, other = np.triu_indices(len(values), 1)
    return np.asarray(values[one] - values[other])


def _told(queries: Any) -> str:
    domain = queries.domain
    most = "" if domain.max_ones is None else f", at most {domain.max_ones} 1s"
    columns = ", ".join(map(str, domain.sizes.tolist()))
    return f"{len(queries)} {type(queries).__name__} on columns of {columns} bits{most}"


# --- a case of everything that the room counts ----------------------------------------------------

Make = Callable[[Domain, Generator], Case]


def _any_queries(domain: Domain, generator: Generator) -> Any:
    makers = (
        strategies.random_workload,
        strategies.proper_workload,
        strategies.marginals,
        strategies.other_family,
        strategies.few_ones,
    )
    return makers[generator.integers(len(makers))](domain, generator)


def _all_queries(domain: Domain, generator: Generator) -> Case:
    return Case(_any_queries(domain, generator), AllQueries())


def _some_queries(domain: Domain, generator: Generator) -> Case:
    queries = strategies.random_workload(domain, generator)
    positions = generator.integers(len(queries), size=generator.integers(1, 12))
    return Case(queries, SomeQueries(positions))


def _one_query(domain: Domain, generator: Generator) -> Case:
    queries = _any_queries(domain, generator)
    return Case(queries, OneQuery(int(generator.integers(len(queries)))))


def _one_cuboid(domain: Domain, generator: Generator) -> Case:
    queries = strategies.marginals(domain, generator)
    return Case(queries, OneCuboid(int(generator.integers(len(Cuboids.of(queries))))))


def _query_table(domain: Domain, generator: Generator) -> Case:
    queries = strategies.proper_workload(domain, generator)
    return Case(queries, QueryTable(int(generator.integers(len(queries)))))


def _every_cell(domain: Domain, generator: Generator) -> Case:
    return Case(strategies.proper_workload(domain, generator), EveryCell())


def _parities(domain: Domain, generator: Generator) -> Case:
    return Case(asked_sets(strategies.proper_workload(domain, generator)).workload, Parities())


def _feature_sums(domain: Domain, generator: Generator) -> Case:
    queries = strategies.proper_workload(domain, generator)
    return Case(queries, FeatureSums(strategies.random_strategy(domain, generator)))


def _column_sums(domain: Domain, generator: Generator) -> Case:
    grids = tuple(
        Grid(str(place), -1.0, 1.0, int(generator.integers(1, 200)), exact=False)
        for place in range(generator.integers(1, 4))
    )
    return Case(strategies.proper_workload(domain, generator), ColumnSums(grids), grids)


def _row_total(domain: Domain, generator: Generator) -> Case:
    return Case(strategies.proper_workload(domain, generator), RowTotal())


def _model(queries: Any, generator: Generator) -> NDArray[np.float64]:
    far = generator.choice([1.0, 1.5])
    return np.asarray(generator.uniform(far * queries.low, far * queries.high, len(queries)))


def _worst_query(domain: Domain, generator: Generator) -> Case:
    queries = _any_queries(domain, generator)
    return Case(queries, WorstQuery(_model(queries, generator)))


def _worst_cuboid(domain: Domain, generator: Generator) -> Case:
    queries = strategies.marginals(domain, generator)
    return Case(queries, WorstCuboid(_model(queries, generator)))


CASES: Mapping[type, Make] = {
    AllQueries: _all_queries,
    SomeQueries: _some_queries,
    OneQuery: _one_query,
    OneCuboid: _one_cuboid,
    QueryTable: _query_table,
    EveryCell: _every_cell,
    Parities: _parities,
    FeatureSums: _feature_sums,
    ColumnSums: _column_sums,
    RowTotal: _row_total,
    WorstQuery: _worst_query,
    WorstCuboid: _worst_cuboid,
}
"""How a case of each is made."""


def audit_moves(kind: type, relation: Neighbours, cases: int) -> Finding:
    """Try random cases of one statistic, or of one kind of scores."""
    finding = Finding()
    make = CASES.get(kind)
    if make is None:
        finding.violations.append(f"{kind.__name__} is measured by the room, and not tried here")
        return finding
    for seed in range(cases):
        generator = np.random.default_rng(seed)
        case = make(strategies.random_domain(generator), generator)
        move(case, relation, generator, finding)
    return finding


# --- what mechanisms plan to measure --------------------------------------------------------------


class _Heard(Exception):  # noqa: N818 - ends a run that is not wanted
    """A mechanism asked for a measurement."""


class _Listener:
    """Stands for a curator, and gives out nothing."""

    def __init__(self) -> None:
        self.statistic: PrivateStatistic | None = None

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*given: Any, **_: Any) -> NoReturn:
            if given and isinstance(given[0], STATISTICS):
                self.statistic = given[0]
            raise _Heard

        return call


def audit_planned(mechanism: Mechanism[Any], relation: Neighbours, workloads: int) -> Finding:
    """Try what a mechanism measures first, on random workloads that it accepts."""
    finding = Finding()
    for case, generator in _planned(mechanism, relation, workloads):
        move(case, relation, generator, finding)
    return finding


def _planned(
    mechanism: Mechanism[Any], relation: Neighbours, workloads: int
) -> Iterator[tuple[Case, Generator]]:
    for seed in range(workloads):
        generator = np.random.default_rng(seed)
        domain = strategies.random_domain(generator)
        make = (strategies.proper_workload, strategies.marginals)[seed % 2]
        task = Task(make(domain, generator), 1000)
        listener = _Listener()
        try:
            plan = mechanism.plan(task, Budget(1.0, 1e-5, neighbours=relation))
            mechanism.run(task, plan, listener, Session(public_seed=0))  # type: ignore[arg-type]  # stands for a curator
        except BadInputError:
            continue
        except _Heard:
            if listener.statistic is not None:
                yield Case(mechanism.statistics(task.queries), listener.statistic), generator


# --- the number of rows ---------------------------------------------------------------------------


def audit_row_count(tables: int, relation: Neighbours = Neighbours.ADD_REMOVE) -> Finding:
    """Compare the noise on the number of rows with its price."""
    finding = Finding()
    for rows in range(1, tables + 1):
        epsilon = 2.0**rows
        shown = []
        for size in (rows, rows + relation.steps):
            probe = Probe()
            with replaced_everywhere(randomness, "randomness", lambda _, probe=probe: probe):
                table = records_of(np.zeros((size, 1), np.uint8))
                count = buy_row_count(table, epsilon, None, relation)
            if probe.scale == 0.0:
                finding.violations.append("the number of rows is given out without noise")
                return finding
            shown.append(count.n - int(probe.scale * probe.unit))
            finding.compare(relation.steps / probe.scale, count.epsilon, "the number of rows")
        finding.tried += 1
        finding.pairs += 1
        if shown[1] - shown[0] != relation.steps:
            finding.violations.append(f"the number of rows moves by {shown[1] - shown[0]}")
    return finding
