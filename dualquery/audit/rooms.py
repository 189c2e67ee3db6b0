"""One private room for each table, made to give out the same results; and how likely these were.

A mechanism runs once, on `Rooms` in the place of a curator. Each call goes to one real
`dualquery.room.curator.Curator` for every table, so all of the room's code runs. Only where a
result is drawn, a guide says what is drawn, and the audit notes how likely that is on every table.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.audit.laws import Law, Noisy, noisy_max_law, reports_law, weights_law
from dualquery.data.domain import Domain, axis_sizes, column_values, rows_of_values
from dualquery.room.curator import Curator
from dualquery.room.draws import noisy_max, randomized, weighted_kernels
from dualquery.room.statistics import Exact, Numbers

Records = NDArray[np.uint8]


class Violation(Exception):  # noqa: N818 - what an audit looks for, not an error of its own
    """The rooms differ in what they give out although their draws show the same."""


class TooManyPaths(Exception):  # noqa: N818 - it ends an enumeration, and is no error
    """The game has results that cannot be enumerated, or too many."""


class EveryPath:
    """Leads through all outcomes of all draws, depth first; more than ``most`` paths end it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: list[int] = []
        self._widths: list[int] = []
        self._depth = 0
        self._of = 0, 0
        self.paths = 0

    def choose(self, outcomes: int, draws: int = 1) -> tuple[int, ...]:
        """Return the path's next draws of outcomes 0, 1, ..., increasing."""
        width = math.comb(outcomes + draws - 1, draws)
        if width > self._most:
            raise TooManyPaths(f"{width:,} outcomes of one draw")
        if self._depth == len(self._taken):
            self._taken.append(0)
            self._widths.append(width)
        self._of = outcomes, draws
        self._depth += 1
        return self.outcomes(self._depth - 1)[0]

    def noise(self, count: int) -> NDArray[np.float64]:
        """Refuse: a vector of noisy numbers has too many values."""
        raise TooManyPaths(f"{count} noisy numbers at once")

    def outcomes(self, depth: int = -1) -> list[tuple[int, ...]]:
        """Return the outcomes of the path's last draw, from the path's own on."""
        every = itertools.combinations_with_replacement(range(self._of[0]), self._of[1])
        return list(itertools.islice(every, self._taken[depth], None))

    def next_path(self, *, known: bool = False) -> bool:
        """Go to the next path, past `outcomes` if these are known; return whether there is one."""
        if not self.paths and math.prod(self._widths) > 4 * self._most:
            raise TooManyPaths(f"about {math.prod(self._widths):,} paths")
        self.paths += 1
        if known:
            self.paths += self._widths[-1] - 1 - self._taken[-1]
            self._taken[-1] = self._widths[-1] - 1
        while self._taken and self._taken[-1] == self._widths[-1] - 1:
            self._taken.pop()
            self._widths.pop()
        if not self._taken:
            return False
        if self.paths >= self._most:
            raise TooManyPaths(f"more than {self._most:,} paths")
        self._taken[-1] += 1
        self._depth = 0
        return True


class RandomPath:
    """Chooses each outcome alike, so that rare results are visited as well."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def choose(self, outcomes: int, draws: int = 1) -> tuple[int, ...]:
        """Return any outcomes."""
        return tuple(sorted(self._generator.integers(outcomes, size=draws).tolist()))

    def noise(self, count: int) -> NDArray[np.float64]:
        """Return normal noise, all of it none, ordinary or large."""
        size = self._generator.choice([0.0, 1.0, 3.0])
        return np.asarray(size * self._generator.normal(size=count))


Guide = EveryPath | RandomPath


class Probe:
    """Stands for a source of randomness: draws ``unit`` times its last ``scale``, to be seen."""

    scale, unit, integers = 0.0, 1.0, False

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return zeros: what is drawn with them is replaced."""
        return np.zeros(count, np.uint64)

    def discrete_gaussian(self, scale: float, count: int) -> NDArray[np.int64]:
        """Return one scale."""
        self.scale, self.unit, self.integers = scale, 1.0, False
        return np.full(count, round(scale), np.int64)

    def discrete_laplace(self, scale: float, count: int) -> NDArray[np.int64]:
        """Return a multiple of the scale that is a whole number, exactly."""
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
        self._table = self._next = 0
        self.laws: list[list[Law]] = []  # of each draw so far, one a table

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

    def _draw(self, law: Law, choose: Callable[[], Any], show: Callable[[Any], Any] = tuple) -> Any:
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
        with (
            replaced(Exact, "noisy", lambda *given: self._noisy(noisy, *given)),
            replaced(weighted_kernels, "look_up", self._look_up),
            replaced(noisy_max, "report_noisy_max", lambda *given: self._report(report, *given)),
            replaced(randomized, "randomize", self._randomize),
        ):
            yield

    def _noisy(
        self, noisy: Callable[..., Any], exact: Exact, scale: float, draw: Callable[..., Any]
    ) -> Numbers:
        probed, probe = noisy(exact, scale, draw), self._probe
        numbers = exact.numbers.astype(np.float64).ravel()
        scales = (probed - exact.numbers).astype(np.float64).ravel() / probe.unit
        law = Noisy(numbers, scales, probe.integers)

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
        values = values.reshape(exact.numbers.shape)
        return np.rint(values).astype(np.int64) if probe.integers else values

    def _look_up(
        self, law: weighted_kernels.Law, _sums: Any, _drawn: Any, queries: Any, signs: Any
    ) -> int:
        known = weights_law(law, len(queries))
        shown = self._draw(known, lambda: self._guide.choose(len(known.logs), len(queries)))
        outcomes = np.array(shown)
        queries[:], signs[:] = outcomes // law.sides, 1 - 2 * (outcomes % law.sides)
        return len(queries)

    def _report(
        self, report: Callable[..., int], scores: NDArray[np.int64], allowed: Any, *others: Any
    ) -> int:
        report(scores, allowed, *others)  # shows the probe its scale
        places = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
        law = noisy_max_law(tuple(scores[places].tolist()), self._probe.scale)
        (shown,) = self._draw(law, lambda: self._guide.choose(len(places)))
        return int(places[shown])

    def _randomize(
        self, rows: Records, domain: Domain, columns: NDArray[np.int64], epsilon: float, _: Any
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


@contextmanager
def replaced(owner: Any, name: str, by: Any) -> Iterator[None]:
    """Replace a method of a class, or a function of a module wherever it was imported by name."""
    original = vars(owner)[name]
    _put(owner, name, original, by)
    try:
        yield
    finally:
        # Modules that were imported meanwhile have it, too.
        _put(owner, name, by, original)


def _put(owner: Any, name: str, old: Any, new: Any) -> None:
    setattr(owner, name, new)
    if isinstance(owner, ModuleType):
        for key, module in list(sys.modules.items()):
            if key.split(".")[0] in ("dualquery", "mwem") and vars(module).get(name) is old:
                setattr(module, name, new)
