"""The best-response problems of a real run, to compare solvers on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dualquery.privacy.statement import PrivacyStatement
from dualquery.runtime.progress import NO_PROGRESS, Progress
from solvers import BestResponse, get_solver
from solvers.comparison.recording import Recording
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
