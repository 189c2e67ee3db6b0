"""What error to expect of each mechanism that can tell, side by side, before a budget is spent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dualquery.estimates.expected import ExpectedError
from dualquery.mechanisms.registry import configure
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from dualquery.mechanisms.dualquery.parameters import Chosen
    from dualquery.mechanisms.protocol import Budget, Task

MECHANISMS = ("matrix", "dualquery", "gaussian", "laplace")
"""Those whose error can be told beforehand."""


@dataclass(frozen=True)
class Forecast:
    """The errors to expect of mechanisms, and why none can be told of others.

    Parameters
    ----------
    errors, reasons
        By the mechanism's name; none is in both.
    """

    errors: dict[str, ExpectedError] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def forecast(
    task: Task, budget: Budget, game: Chosen | None, progress: Progress = NO_PROGRESS
) -> Forecast:
    """Return the errors to expect at a budget. Looks at no data and spends nothing.

    Parameters
    ----------
    task
        What is asked, and of how many rows.
    budget
        All of it is for the mechanism; pure ones leave delta unspent.
    game
        DualQuery's parameters as its policy chooses them, since planning them takes seconds; None
        if they are not all the policy's, of which nothing is known.
    progress
        Told about each mechanism.
    """
    from dualquery.mechanisms.dualquery.expected import game_error

    found = Forecast()
    for name in MECHANISMS:
        progress.phase(f"planning {name}")
        if name == "dualquery":
            if game is None:
                found.reasons[name] = "measured with the policy's parameters only"
            else:
                found.errors[name] = game_error(task, game.schedule)
            continue
        mechanism = configure(name, {})
        spent = replace(budget, delta=0.0) if mechanism.pure else budget
        try:
            expected = mechanism.expected_error(task, mechanism.plan(task, spent))
        except BadInputError as fault:
            found.reasons[name] = str(fault)
            continue
        if expected is not None:
            found.errors[name] = expected
    return found
