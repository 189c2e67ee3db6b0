"""The best-response problems of a real run, to compare solvers on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from dualquery.privacy.statement import PrivacyStatement
from dualquery.runtime.progress import NO_PROGRESS, Progress
from solvers import BestResponse, Solution, Solver, get_solver
from solvers.protocol import Options, Wrapper
from solvers.registry import registered

_NAME = "recording"
FIRST_SOLVED = 2
"""The first round needs no solver."""


@dataclass(frozen=True, eq=False)
class Captured:
    """Problems of a run, and what publishing them would cost."""

    problems: dict[int, BestResponse]
    """Round -> problem, ascending. They show drawn queries, so they are outputs of the run."""
    privacy: PrivacyStatement
    """The guarantee of the run, or why it has none."""


def captured_rounds(
    table: Any,
    rounds: Collection[int],
    *,
    options: Mapping[str, Any],
    progress: Progress = NO_PROGRESS,
    **release_options: Any,
) -> Captured:
    """Run DualQuery with local search and return the problems of some rounds.

    Parameters
    ----------
    table
        As for `dualquery.release`.
    rounds
        Round numbers from 2 on; those past the run's last round are left out of the result.
    options
        Fields of DualQuery's configuration but the solver.
    progress
        Told about phases and rounds.
    **release_options
        Further arguments of `dualquery.release`.

    Raises
    ------
    BadInputError
        As `dualquery.release`.
    """
    from dualquery.api import release

    recorder = Recording(
        get_solver("local-search"), {number - FIRST_SOLVED + 1 for number in rounds}
    )
    with registered(_NAME, lambda _: recorder):
        released = release(
            table,
            mechanism="dualquery",
            options={**options, "solver": _NAME},
            progress=progress,
            **release_options,
        )
    problems = sorted(recorder.problems.items())
    return Captured(
        {call + FIRST_SOLVED - 1: problem for call, problem in problems}, released.privacy
    )


class Recording(Wrapper):
    """A solver that keeps the problems of some calls, from 1 on, and lets another one solve."""

    def __init__(self, inner: Solver, calls: Collection[int]) -> None:
        super().__init__(inner)
        self.problems: dict[int, BestResponse] = {}
        """Call -> problem."""
        self._calls = frozenset(calls)
        self._made = 0

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Keep the problem if it is wanted, and solve it."""
        self._made += 1
        if self._made in self._calls:
            self.problems[self._made] = problem
        return super().solve(problem, **options)
