"""Which results the rooms of a game give out: every one in turn, or some at random."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray


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
        number = self._taken[self._depth]
        self._depth += 1
        ways = itertools.combinations_with_replacement(range(outcomes), draws)
        return next(itertools.islice(ways, number, None))

    def noise(self, count: int) -> NDArray[np.float64]:
        """Refuse: a vector of noisy numbers has too many values."""
        raise TooManyPaths(f"{count} noisy numbers at once")

    def outcomes(self) -> list[tuple[int, ...]]:
        """Return all outcomes of the path's last draw."""
        return list(itertools.combinations_with_replacement(range(self._of[0]), self._of[1]))

    @property
    def at_first(self) -> bool:
        """Whether the path's last draw has its first outcome."""
        return not self._taken or self._taken[-1] == 0

    def next_path(self, *, known: bool = False) -> bool:
        """Go to the next path; return whether there is one.

        Where the paths that differ in the last draw alone are ``known`` from this one, only that to
        its last outcome is taken besides.
        """
        if not self.paths and math.prod(self._widths) > 4 * self._most:
            raise TooManyPaths(f"about {math.prod(self._widths):,} paths")
        if not known or not self._taken:
            self.paths += 1
        elif self.at_first:
            self.paths += self._widths[-1]
            self._taken[-1] = max(0, self._widths[-1] - 2)
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
"""Says what draws show."""
