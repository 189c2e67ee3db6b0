"""One private room for each table, made to give out the same results; and how likely these were.

A mechanism runs once, on `Rooms` in the place of a curator. Each call goes to one real
`dualquery.room.curator.Curator` for every table, so all of the room's code runs. Only where a
result is drawn (`Exact.noisy`, ``look_up``, ``report_noisy_max``, ``randomize``), a guide says what
is drawn, and the audit notes how likely that is on every table. That the samplers follow their laws
is for `dualquery.audit.repeated`, and for their own tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.audit.guides import Guide
from dualquery.audit.laws import Law, Noise, noisy_max_law, reports_law, weights_law
from dualquery.audit.patching import replaced
from dualquery.data.cells import axis_sizes, column_values, rows_of_values
from dualquery.data.domain import Domain
from dualquery.room.curator import Curator
from dualquery.room.draws import noisy_max, randomized, weighted_kernels
from dualquery.room.exact import Exact, Numbers

Records = NDArray[np.uint8]


class Violation(Exception):  # noqa: N818 - what an audit looks for, not an error of its own
    """The rooms differ in what they give out although their draws show the same."""


class Probe:
    """Stands for a source of randomness: draws one scale, so that the scale can be seen.

    ``scale`` is that of the last noise; ``unit`` says how many scales were drawn: many of integer
    noise, whose scale may be a fraction.
    """

    seeded = False
    scale, unit, integers = 0.0, 1.0, False

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return zeros: what is drawn with them is replaced."""
        return np.zeros(count, np.uint64)

    def discrete_gaussian(self, scale: float, count: int) -> NDArray[np.int64]:
        """Return one scale."""
        self.scale, self.unit, self.integers = scale, 1.0, False
        return np.full(count, round(scale), np.int64)

    def discrete_laplace(self, scale: float, count: int) -> NDArray[np.int64]:
        """Return so many scales that they are a whole number, exactly."""
        _, exponent = math.frexp(scale)
        self.scale, self.unit, self.integers = scale, math.ldexp(1.0, 53 - exponent), True
        return np.full(count, int(scale * self.unit), np.int64)


class Rooms:
    """Stands for a curator: forwards every call to the curators of all tables.

    ``make`` makes the curator of a table by its number, with a source of randomness. ``guide`` says
    what the draws show, a single integer within ``reach`` of the exact number.
    """

    def __init__(
        self, make: Callable[[int, Probe], Curator], tables: int, guide: Guide, reach: int
    ) -> None:
        self._probe = Probe()
        self._curators = [make(table, self._probe) for table in range(tables)]
        self._guide = guide
        self._reach = reach
        self._shown: list[Any] = []
        self._show: Callable[[Any], Any]  # what an outcome of the last draw shows
        self._table = 0
        self._next = 0
        self.laws: list[list[Law]] = []
        """The laws of each draw so far, one a table."""

    def log_chances(self) -> NDArray[np.float64]:
        """Return the log-chance of all that was shown, on each table: float64, ``(tables,)``."""
        total = np.zeros(len(self._curators))
        for shown, laws in zip(self._shown, self.laws, strict=True):
            total += [law.log_chance(shown) for law in laws]
        return total

    def log_chances_of(self, outcomes: list[tuple[int, ...]]) -> Iterator[NDArray[np.float64]]:
        """Yield the log-chances if the last draw had shown each of these outcomes instead."""
        last = self.laws[-1]
        before = self.log_chances() - [law.log_chance(self._shown[-1]) for law in last]
        for outcome in outcomes:
            yield before + [law.log_chance(self._show(outcome)) for law in last]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            begun = len(self.laws)
            results = []
            for number, curator in enumerate(self._curators):
                self._table, self._next = number, begun
                results.append(getattr(curator, name)(*arguments, **named))
                if self._next != len(self.laws):
                    raise Violation(f"{name}: table {number} makes fewer draws than table 0")
            for number, result in enumerate(results):
                if not _same(results[0], result):
                    raise Violation(
                        f"{name} gives out {results[0]} on table 0 and {result} on table {number}, "
                        "although the draws showed the same"
                    )
            return results[0]

        return call

    def _draw(
        self,
        law: Law,
        choose: Callable[[], Any],
        show: Callable[[Any], Any] = lambda chosen: chosen,
    ) -> Any:
        """Note the law of a draw on the present table; return what it shows on all tables."""
        if self._table == 0:
            self._show = show
            self._shown.append(show(choose()))
            self.laws.append([law])
        elif self._next == len(self.laws):
            raise Violation(f"table {self._table} makes more draws than table 0")
        else:
            self.laws[self._next].append(law)
        self._next += 1
        return self._shown[self._next - 1]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Let the guide say what is drawn, at the four places where results are drawn."""
        noisy, report = Exact.noisy, noisy_max.report_noisy_max
        with ExitStack() as stack:
            for owner, name, by in (
                (Exact, "noisy", lambda *given: self._noisy(noisy, *given)),
                (weighted_kernels, "look_up", self._look_up),
                (noisy_max, "report_noisy_max", lambda *given: self._report(report, *given)),
                (randomized, "randomize", self._randomize),
            ):
                stack.enter_context(replaced(owner, name, by))
            yield

    def _noisy(
        self, noisy: Callable[..., Any], exact: Exact, scale: float, draw: Callable[..., Any]
    ) -> Numbers:
        probed, probe = noisy(exact, scale, draw), self._probe
        numbers = exact.numbers.astype(np.float64).ravel()
        scales = (probed - exact.numbers).astype(np.float64).ravel() / probe.unit
        law = Noise(numbers, scales, probe.integers)

        def integer(chosen: tuple[int, ...]) -> tuple[int, int]:
            (place,) = chosen
            end = (place == 2 * self._reach) - (place == 0)
            return int(numbers[0]) + place - self._reach, int(end)

        if probe.integers and numbers.size == 1:
            shown = self._draw(law, lambda: self._guide.choose(2 * self._reach + 1), integer)
        else:
            noise = partial(self._guide.noise, numbers.size)
            shown = self._draw(law, noise, lambda drawn: numbers + drawn * scales)
        values = np.array(shown[:1]) if isinstance(shown, tuple) else shown
        if probe.integers:
            values = np.rint(values).astype(np.int64)
        return np.asarray(values.reshape(exact.numbers.shape))

    def _look_up(
        self,
        law: weighted_kernels.Law,
        _sums: Any,
        _drawn: Any,
        queries: NDArray[np.int64],
        signs: NDArray[np.int8],
    ) -> int:
        known = weights_law(law, len(queries))
        shown = self._draw(known, lambda: self._guide.choose(len(known.logs), len(queries)))
        outcomes = np.array(shown)
        queries[:], signs[:] = outcomes // law.sides, 1 - 2 * (outcomes % law.sides)
        return len(queries)

    def _report(
        self,
        report: Callable[..., int],
        scores: NDArray[np.int64],
        allowed: NDArray[np.bool_] | None,
        *others: Any,
    ) -> int:
        report(scores, allowed, *others)  # shows the probe its scale
        places = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
        law = noisy_max_law(scores[places], self._probe.scale)
        (shown,) = self._draw(law, lambda: self._guide.choose(len(places)))
        return int(places[shown])

    def _randomize(
        self,
        rows: Records,
        domain: Domain,
        columns: NDArray[np.int64],
        epsilon: float,
        _source: Any,
    ) -> Records:
        sizes = axis_sizes(domain)[columns].tolist()
        chances = []
        for values in column_values(rows, domain)[:, columns]:
            row = np.ones(1)
            for value, size in zip(values, sizes, strict=True):
                said = np.full(size, randomized.steps_of(epsilon, size) / randomized.WORDS)
                said[value] = 1.0 - (said.sum() - said[value])
                row = np.outer(row, said).ravel()
            chances.append(row)
        law = reports_law(chances)
        (shown,) = self._draw(law, lambda: self._guide.choose(len(law.logs)))
        reported = np.zeros((len(rows), domain.columns), np.int64)
        # The outcomes of the law are the tables of as many reports, in this order.
        ways = itertools.combinations_with_replacement(range(int(np.prod(sizes))), len(rows))
        cells = np.array(next(itertools.islice(ways, shown, None)))
        reported[:, columns] = np.stack(np.unravel_index(cells, sizes), axis=1)
        return rows_of_values(reported, domain)


def _same(one: Any, other: Any) -> bool:
    """Tell whether two results are the same to whoever gets them."""
    if type(one) is not type(other):
        return False
    if is_dataclass(one) and not isinstance(one, type):
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype == float)
    return bool(one == other)
