"""Releases made again and again on two neighbouring tables: a lower bound on epsilon from these.

`dualquery.release` runs as users run it: unseeded, its own randomness and samplers, its own number
of rows. A third of the releases choose a set of results that is far more likely on one table than
on the other; the rest bound its two chances by Clopper and Pearson's intervals (1934), and with
them epsilon: ``ln((p - delta) / q)``. It exceeds the true epsilon with a chance of `ERROR` at most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import beta

from dualquery.api import release
from dualquery.audit.findings import Finding
from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.mechanisms.registry import configure
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.randomness import randomness
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.releases.folder import Release

ERROR = 1e-6
"""Chance at most that a check of honest releases reports a violation."""

DELTA = 1e-3
"""For mechanisms that are not pure."""

LEAST = 100
"""Releases of each table, at least: fewer would not show a result that one table never gives."""

SCHEMA = TableSchema(
    (Binary("a"), Binary("b"), Categorical("c", (("x",), ("y",), ("z",)))),
    name="audit",
    declared=True,
)
ROWS = {Neighbours.REPLACE_ONE: 60, Neighbours.ADD_REMOVE: 400}
"""Rows of the tables: so many that noise seldom carries an answer beyond 0 or 1, where it is cut,
and where their number is bought, enough to plan with."""

QUERIES = ["a=1", "b=1", "c=x", "a=1 & b=1", "a=0 & c=x"]

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Event:
    """A set of results: those of which a number lies on one side of a bound, or is equal to it."""

    direction: Values
    bound: float
    kind: str

    def share(self, results: Values) -> tuple[int, int]:
        """Return how many of some results, ``(r, k)``, lie in the set, and r."""
        seen = results @ self.direction
        match self.kind:
            case "above":
                inside = seen > self.bound
            case "below":
                inside = seen < self.bound
            case _:
                inside = seen == self.bound
        return int(inside.sum()), len(results)


def audit_releases(
    mechanism: str,
    options: Mapping[str, Any],
    relation: Neighbours,
    epsilon: float,
    seconds: float,
    most: int,
) -> Finding:
    """Make releases of two tables for some seconds, and bound epsilon from below.

    A few hundred releases bound it by 3 at most. So faults show where little is stated, and honest
    releases show some of what they may show only where much is.

    Parameters
    ----------
    mechanism, options
        Whose releases are made.
    relation
        How the two tables differ.
    epsilon
        What each release may spend; > 0.
    seconds
        How long, about; at least `LEAST` of each table are made.
    most
        Releases of each table, at most.
    """
    finding = Finding()
    try:
        delta = _accepted_delta(mechanism, options, relation, epsilon)
    except BadInputError as error:
        finding.remarks.append(f"{mechanism}, {relation.value}: not released, {error}")
        return finding
    tables = _pair(relation)
    stated = _made(tables[0], mechanism, options, relation, epsilon, delta).privacy
    if stated.epsilon is None or stated.delta is None:
        finding.violations.append(f"{mechanism}, {relation.value}: {stated.guarantee()}")
        return finding
    results: tuple[list[Values], list[Values]] = ([], [])
    end = time.monotonic() + seconds
    while len(results[1]) < most and (len(results[1]) < LEAST or time.monotonic() < end):
        for table, found in zip(tables, results, strict=True):
            found.append(_numbers(_made(table, mechanism, options, relation, epsilon, delta)))
    low = max(_bounds(np.array(results[0]), np.array(results[1]), stated.delta))
    finding.tried, finding.pairs = 2 * len(results[1]), 1
    finding.compare(max(low, 0.0), stated.epsilon, f"{mechanism}, {relation.value}: epsilon")
    return finding


def _pair(relation: Neighbours) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two tables that differ in one row, and in this as much as can be."""
    usual, odd = {"a": 0, "b": 0, "c": "z"}, {"a": 1, "b": 1, "c": "x"}
    rows = [usual, odd] * (ROWS[relation] // 2)
    kept = rows[1:] if relation is Neighbours.REPLACE_ONE else rows
    return pl.DataFrame(rows), pl.DataFrame([*kept, odd])


def _made(
    table: pl.DataFrame,
    mechanism: str,
    options: Mapping[str, Any],
    relation: Neighbours,
    epsilon: float,
    delta: float,
) -> Release:
    """Make one release."""
    return release(
        table,
        schema=SCHEMA,
        queries=QUERIES,
        mechanism=mechanism,
        options=options,
        epsilon=epsilon,
        delta=delta,
        neighbours=relation.value,
        threads=1,
    )


def _accepted_delta(
    mechanism: str, options: Mapping[str, Any], relation: Neighbours, epsilon: float
) -> float:
    """Return the mechanism's own delta, or the other one; `BadInputError` if it refuses both."""
    table, _ = _pair(relation)
    first, second = (0.0, DELTA) if configure(mechanism, options).pure else (DELTA, 0.0)
    try:
        _made(table, mechanism, options, relation, epsilon, first)
    except BadInputError:
        _made(table, mechanism, options, relation, epsilon, second)
        return second
    return first


def _numbers(made: Release) -> Values:
    """Return what a release gives out: answers, shares among its records, the number of rows."""
    bits = SCHEMA.domain.bits
    shares = np.zeros(bits) if made.records is None else made.records.mean(axis=0)
    return np.concatenate((made.answers, shares, [made.n]))


def _bounds(one: Values, other: Values, delta: float) -> Iterator[float]:
    """Yield lower bounds on epsilon, each table being the first once."""
    half = len(one) // 3
    for first, second in ((one, other), (other, one)):
        promises = {
            event: _epsilon(event.share(first[:half]), event.share(second[:half]), delta, 0.05)
            for event in _events(first[:half], second[:half])
        }
        event = max(promises, key=promises.__getitem__)
        yield _epsilon(event.share(first[half:]), event.share(second[half:]), delta, ERROR / 4)


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
            for kind in ("above", "below", "equal"):
                yield Event(direction, float(bound), kind)


def _epsilon(one: tuple[int, int], other: tuple[int, int], delta: float, error: float) -> float:
    """Return a lower bound on epsilon from hits and trials on two tables, each wrong so often."""
    hits, trials = one
    least = float(beta.ppf(error, hits, trials - hits + 1)) if hits else 0.0
    hits, trials = other
    most = float(beta.ppf(1.0 - error, hits + 1, trials - hits)) if hits < trials else 1.0
    return math.log((least - delta) / most) if least > delta else -math.inf


def audit_fresh_draws() -> Finding:
    """Check that no draw is made twice: in one source, in two sources, in two releases.

    Honest draws here agree with a chance below 2^-100.
    """
    finding = Finding()
    one, other = randomness(None), randomness(None)
    scale = 2.0**40
    seen = [source.words(8).tobytes() for source in (one, one, other)]
    seen += [source.discrete_gaussian(scale, 8).tobytes() for source in (one, one, other)]
    seen += [source.discrete_laplace(scale, 8).tobytes() for source in (one, one, other)]
    table, _ = _pair(Neighbours.REPLACE_ONE)
    for _ in range(2):
        # At this budget answers are hardly ever cut to 0 or 1, which would make them agree.
        made = _made(table, "matrix", {"components": 0}, Neighbours.REPLACE_ONE, 1.0, DELTA)
        seen.append(made.answers.tobytes())
    finding.tried = len(seen)
    if len(set(seen)) < len(seen):
        finding.violations.append("the same numbers were drawn twice")
    return finding
