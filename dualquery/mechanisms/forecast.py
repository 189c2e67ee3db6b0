"""The errors to expect of all mechanisms that have a model of it, before a budget is spent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dualquery.estimates.expected import ExpectedError
from dualquery.mechanisms.protocol import Mechanism
from dualquery.mechanisms.registry import BUILT_IN, configure, mechanism_class
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from dualquery.mechanisms.protocol import Budget, Task


@dataclass(frozen=True)
class Forecast:
    """The errors to expect of some mechanisms, and why others have no estimate.

    Parameters
    ----------
    errors, reasons
        By the mechanism's name; none is in both.
    """

    errors: dict[str, ExpectedError] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def forecast(
    task: Task, budget: Budget, known: Forecast, progress: Progress = NO_PROGRESS
) -> Forecast:
    """Return the errors to expect at a budget. Looks at no data and spends nothing.

    Every built-in mechanism is planned with its defaults, if it has a model of its error.

    Parameters
    ----------
    task
        What is asked, and of how many rows.
    budget
        All of it is for the mechanism; pure ones leave delta unspent.
    known
        What is known already; these mechanisms are not planned.
    progress
        Listens to which mechanism is planned.
    """
    found = Forecast({**known.errors}, {**known.reasons})
    for name in BUILT_IN:
        tells = mechanism_class(name).expected_error is not Mechanism.expected_error
        if name == "auto" or not tells or name in known.errors or name in known.reasons:
            continue
        progress.phase(f"planning {name}")
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
