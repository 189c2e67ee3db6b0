"""Releases made again and again on two neighbouring tables: a lower bound on epsilon from these.

`dualquery.release` runs as users run it: unseeded, with its own number of rows. A third of the
releases choose a set of results that is far more likely on one table than on the other; the rest
bound its two chances by Clopper and Pearson's intervals (1934), and with them epsilon: ``ln((p -
delta) / q)``. It exceeds epsilon with a chance of `ERROR` at most.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import beta

from dualquery.api import release
from dualquery.audit.cases import name_of
from dualquery.audit.findings import ERROR, Finding
from dualquery.data import Binary, Categorical, Numeric, TableSchema
from dualquery.mechanisms.registry import configure
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.keep.folder import Release
from dualquery.room.randomness import randomness
from dualquery.runtime.errors import BadInputError

EPSILON, DELTA = 1.0, 5e-4
"""What each release may spend; delta if its mechanism is not pure."""

LEAST = 80
"""Releases of each table, at least. If one always gives a result that the other never does, two
thirds of 80 show an epsilon of 1.12, more than the 1 that is stated."""

COLUMNS = (Binary("a"), Binary("b"), Categorical("c", (("x",), ("y",), ("z",))))
SIZE = Numeric("size", (0.0, 5.0, 10.0))  # the column whose mean is bought
QUERIES = ["a=1", "b=1", "c=x", "a=1 & b=1", "a=0 & c=x"]
USUAL, ODD = {"a": 0, "b": 0, "c": "z", "size": 0.0}, {"a": 1, "b": 1, "c": "x", "size": 10.0}
ROWS = {True: 60, False: 400}
"""Rows of the tables, by whether their number is public: noise seldom carries an answer beyond 0 or
1, where it is cut, and a bought number is enough to plan with. Units of K rows: K times as many."""

Values = NDArray[np.float64]
Event = Callable[[Values], int]
"""A set of results: the number of some results, ``(r, k)``, that lie in it."""


@dataclass(frozen=True)
class Setting:
    """Which releases are made."""

    mechanism: str
    options: Mapping[str, Any]
    relation: Neighbours  # how the two tables differ
    means: bool = False  # whether the mean of a column is bought

    def __str__(self) -> str:
        return f"{self.mechanism}, {name_of(self.relation)}" + ", a mean" * self.means


def audit_releases(asked: Setting, seconds: float, most: int) -> Finding:
    """Make releases of two tables for some seconds, `LEAST` to ``most``; bound epsilon below."""
    finding = Finding()
    tables = _pair(asked)
    for delta in sorted((0.0, DELTA), reverse=not configure(asked.mechanism, asked.options).pure):
        try:
            stated = _made(tables[0], asked, delta).privacy
            break
        except BadInputError as error:
            refused = f"{asked}: not released, {error}"
    else:
        finding.remarks.append(refused)
        return finding
    if stated.epsilon is None or stated.delta is None:
        finding.violations.append(f"{asked}: {stated.guarantee()}")
        return finding
    results: tuple[list[Values], list[Values]] = ([], [])
    end = time.monotonic() + seconds
    while len(results[1]) < most and (len(results[1]) < LEAST or time.monotonic() < end):
        for table, found in zip(tables, results, strict=True):
            found.append(_numbers(_made(table, asked, delta)))
    low = max(bounds(np.array(results[0]), np.array(results[1]), stated.delta))
    finding.tried, finding.pairs = 2 * len(results[1]), 1
    finding.compare(max(low, 0.0), stated.epsilon, f"{asked}: epsilon")
    return finding


def _pair(asked: Setting) -> list[pl.DataFrame]:
    """Return two tables that differ in one unit, whose rows differ in everything."""
    unit, weight = asked.relation.unit, asked.relation.weight
    rows = 1 if unit is None else unit.max_rows
    kept = [USUAL, ODD] * (ROWS[asked.relation.rows_public] // 2 * rows)
    tables = []
    for own in ([USUAL] * rows * asked.relation.replaces, [ODD] * rows):
        table = pl.DataFrame([*kept, *own])
        if not asked.means:
            table = table.drop(SIZE.name)
        if unit is not None:
            units = [*range(len(kept)), *[-1] * len(own)]
            table = table.with_columns(pl.Series(unit.column, units))
        if weight is not None:
            table = table.with_columns(pl.lit(weight.max).alias(weight.column))
        tables.append(table)
    return tables


def _made(table: pl.DataFrame, asked: Setting, delta: float) -> Release:
    columns = (*COLUMNS, SIZE) if asked.means else COLUMNS
    return release(
        table,
        schema=TableSchema(columns, name="audit", declared=True), queries=QUERIES,
        means=[SIZE.name] if asked.means else None, mechanism=asked.mechanism,
        options=asked.options, epsilon=EPSILON, delta=delta, threads=1,
        neighbours=asked.relation.value, unit=asked.relation.unit, weight=asked.relation.weight,
    )  # fmt: skip


def _numbers(made: Release) -> Values:
    """Return what a release gives out: counts, shares among its records, number of rows, means."""
    bits = made.schema.domain.bits
    shares = np.zeros(bits) if made.records is None else made.records.mean(axis=0)
    means = [bought.mean for bought in made.means]
    return np.concatenate((made.answers * made.n, shares, [made.n], means))


def bounds(one: Values, other: Values, delta: float, error: float = ERROR / 4) -> Iterator[float]:
    """Yield lower bounds on epsilon by ``(results, numbers)``, each table being the first once."""
    half = len(one) // 3
    for first, second in ((one, other), (other, one)):
        tried = first[:half], second[:half]
        event = max(_events(*tried), key=lambda each: _shown(each, *tried, delta, 0.05))
        yield _shown(event, first[half:], second[half:], delta, error)


def _shown(event: Event, one: Values, other: Values, delta: float, error: float) -> float:
    return _epsilon((event(one), len(one)), (event(other), len(other)), delta, error)


def _events(one: Values, other: Values) -> Iterator[Event]:
    """Yield sets of results that the two tables may tell apart."""
    both = np.concatenate((one, other))
    apart = one.mean(axis=0) - other.mean(axis=0)
    within = (np.cov(one.T) + np.cov(other.T)) / 2.0
    # Fisher's linear discriminant (1936), with and without the numbers' correlations.
    fisher = np.linalg.pinv(within, rcond=1e-8, hermitian=True) @ apart
    for direction in (apart / (both.var(axis=0) + 1e-12), fisher, *np.eye(both.shape[1])):
        seen = both @ direction
        for bound in np.unique(np.quantile(seen, np.linspace(0.02, 0.98, 25))):
            for inside in (np.greater, np.less, np.equal):
                yield partial(_hits, direction, float(bound), inside)


def _hits(direction: Values, bound: float, inside: Callable[..., Any], results: Values) -> int:
    return int(inside(results @ direction, bound).sum())


@cache
def _epsilon(one: tuple[int, int], other: tuple[int, int], delta: float, error: float) -> float:
    """Return a lower bound on epsilon from hits and trials on two tables, each wrong so often."""
    hits, trials = one
    least = float(beta.ppf(error, hits, trials - hits + 1)) if hits else 0.0
    hits, trials = other
    most = float(beta.ppf(1.0 - error, hits + 1, trials - hits)) if hits < trials else 1.0
    return math.log((least - delta) / most) if least > delta else -math.inf


def audit_fresh_draws() -> Finding:
    """Check that no draw is made twice; honest ones agree with a chance below 2^-100."""
    finding = Finding()
    one, other = randomness(None), randomness(None)
    drawn: list[NDArray[Any]] = []
    for source in (one, one, other):
        noise = source.discrete_gaussian(2.0**40, 8), source.discrete_laplace(2.0**40, 8)
        drawn += [source.words(8), *noise]
    seen = [each.tobytes() for each in drawn]
    # At this budget answers are hardly ever cut to 0 or 1, which would make them agree.
    asked = Setting("matrix", {"components": 0}, Neighbours.REPLACE_ONE)
    seen += [_made(_pair(asked)[0], asked, DELTA).answers.tobytes() for _ in range(2)]
    finding.tried = len(seen)
    if len(set(seen)) < len(seen) or any(len(np.unique(each)) <= 4 for each in drawn):
        finding.violations.append("the same numbers were drawn twice")
    return finding
