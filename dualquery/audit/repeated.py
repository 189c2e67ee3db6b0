"""Releases made again and again on two neighbouring tables: a lower bound on epsilon from these.

`dualquery.release` runs as users run it: unseeded, with its own number of rows. A third of the
releases choose a set of results that is far more likely on one table than on the other; the rest
bound its two chances by Clopper and Pearson's intervals (1934), and with them epsilon: ``ln((p -
delta) / q)``. It exceeds the true epsilon with a chance of `ERROR` at most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import beta

from dualquery.api import release
from dualquery.audit.findings import Finding
from dualquery.audit.tables import name_of
from dualquery.data.schema.columns import Binary, Categorical, Numeric
from dualquery.data.schema.table import TableSchema
from dualquery.mechanisms.registry import configure
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.randomness import randomness
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.releases.keep.folder import Release

ERROR = 1e-6
"""Chance at most that a check of honest releases reports a violation."""

DELTA = 1e-3
"""For mechanisms that are not pure."""

LEAST = 80
"""Releases of each table, at least: fewer would not show a result that one table always gives and
the other never. By two thirds of 80 its epsilon is 1.1 at least, more than the 1 that is stated."""

COLUMNS = (Binary("a"), Binary("b"), Categorical("c", (("x",), ("y",), ("z",))))
USUAL, ODD = {"a": 0, "b": 0, "c": "z", "size": 0.0}, {"a": 1, "b": 1, "c": "x", "size": 10.0}
"""The rows of the tables."""
SIZE = Numeric("size", (0.0, 5.0, 10.0))
"""The column whose mean is bought."""
ROWS = {True: 60, False: 400}
"""Rows of the tables, by whether their number is public: so many that noise seldom carries an
answer beyond 0 or 1, where it is cut, and where their number is bought, enough to plan with; of
units as many more as a unit has."""

QUERIES = ["a=1", "b=1", "c=x", "a=1 & b=1", "a=0 & c=x"]

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Event:
    """A set of results: a number of theirs lies above, below or at a bound."""

    direction: Values
    bound: float
    inside: Callable[[Values, float], NDArray[np.bool_]]

    def share(self, results: Values) -> tuple[int, int]:
        """Return how many of some results, ``(r, k)``, lie in the set, and r."""
        return int(self.inside(results @ self.direction, self.bound).sum()), len(results)


@dataclass(frozen=True)
class Asked:
    """Which releases are made."""

    mechanism: str
    options: Mapping[str, Any]
    relation: Neighbours
    """How the two tables differ."""
    epsilon: float
    """What each release may spend; > 0."""
    means: bool = False
    """Whether the mean of a column is bought."""

    def __str__(self) -> str:
        return f"{self.mechanism}, {name_of(self.relation)}" + ", a mean" * self.means


def audit_releases(asked: Asked, seconds: float, most: int) -> Finding:
    """Make releases of two tables for some seconds, and bound epsilon from below.

    A few hundred releases bound epsilon by 3 at most. ``most`` of each table are made, and at least
    `LEAST`.
    """
    finding = Finding()
    try:
        delta = _accepted_delta(asked)
    except BadInputError as error:
        finding.remarks.append(f"{asked}: not released, {error}")
        return finding
    tables = _pair(asked)
    stated = _made(tables[0], asked, delta).privacy
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


def _pair(asked: Asked) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two tables that differ in one unit, and in this as much as can be."""
    relation = asked.relation
    unit = 1 if relation.unit is None else relation.unit.max_rows
    kept = [USUAL, ODD] * (ROWS[relation.rows_public] // 2 * unit)
    first = [USUAL] * unit if relation.replaces else []
    return _table(kept, first, asked), _table(kept, [ODD] * unit, asked)


def _table(kept: list[dict[str, Any]], unit: list[dict[str, Any]], asked: Asked) -> pl.DataFrame:
    """Return a table of rows that are there in any case and those of one unit."""
    table = pl.DataFrame([*kept, *unit])
    if not asked.means:
        table = table.drop(SIZE.name)
    if asked.relation.unit is not None:
        units = [*range(len(kept)), *[-1] * len(unit)]
        table = table.with_columns(pl.Series(asked.relation.unit.column, units))
    if asked.relation.weight is not None:
        weights = pl.lit(asked.relation.weight.max).alias(asked.relation.weight.column)
        table = table.with_columns(weights)
    return table


def _made(table: pl.DataFrame, asked: Asked, delta: float) -> Release:
    """Make one release."""
    columns = (*COLUMNS, SIZE) if asked.means else COLUMNS
    return release(
        table,
        schema=TableSchema(columns, name="audit", declared=True), queries=QUERIES,
        means=[SIZE.name] if asked.means else None, mechanism=asked.mechanism,
        options=asked.options, epsilon=asked.epsilon, delta=delta, threads=1,
        neighbours=asked.relation.value, unit=asked.relation.unit, weight=asked.relation.weight,
    )  # fmt: skip


def _accepted_delta(asked: Asked) -> float:
    """Return the mechanism's own delta, or the other one; `BadInputError` if it refuses both."""
    table, _ = _pair(asked)
    pure = configure(asked.mechanism, asked.options).pure
    first, second = (0.0, DELTA) if pure else (DELTA, 0.0)
    try:
        _made(table, asked, first)
    except BadInputError:
        _made(table, asked, second)
        return second
    return first


def _numbers(made: Release) -> Values:
    """Return what a release gives out: answers, shares among its records, number of rows, means."""
    bits = made.schema.domain.bits
    shares = np.zeros(bits) if made.records is None else made.records.mean(axis=0)
    means = [bought.mean for bought in made.means]
    return np.concatenate((made.answers, shares, [made.n], means))


def bounds(one: Values, other: Values, delta: float, error: float = ERROR / 4) -> Iterator[float]:
    """Yield lower bounds on epsilon by ``(results, numbers)``, each table being the first once."""
    half = len(one) // 3
    for first, second in ((one, other), (other, one)):
        promises = {
            event: _epsilon(event.share(first[:half]), event.share(second[:half]), delta, 0.05)
            for event in _events(first[:half], second[:half])
        }
        event = max(promises, key=promises.__getitem__)
        yield _epsilon(event.share(first[half:]), event.share(second[half:]), delta, error)


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
                yield Event(direction, float(bound), inside)


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
    scale = 2.0**40
    seen = [source.words(8).tobytes() for source in (one, one, other)]
    seen += [source.discrete_gaussian(scale, 8).tobytes() for source in (one, one, other)]
    seen += [source.discrete_laplace(scale, 8).tobytes() for source in (one, one, other)]
    asked = Asked("matrix", {"components": 0}, Neighbours.REPLACE_ONE, 1.0)
    table, _ = _pair(asked)
    for _ in range(2):
        # At this budget answers are hardly ever cut to 0 or 1, which would make them agree.
        made = _made(table, asked, DELTA)
        seen.append(made.answers.tobytes())
    finding.tried = len(seen)
    if len(set(seen)) < len(seen):
        finding.violations.append("the same numbers were drawn twice")
    return finding
