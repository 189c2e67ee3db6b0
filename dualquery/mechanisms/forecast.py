"""The errors to expect of all mechanisms that have a model of it, before a budget is spent."""

from dataclasses import dataclass, field, replace

from dualquery.estimates.expected import ExpectedError
from dualquery.mechanisms.protocol import Budget, Mechanism, Task
from dualquery.mechanisms.registry import BUILT_IN, PRESETS, configure, mechanism_class
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS, Progress


@dataclass(frozen=True)
class Forecast:
    """The errors to expect of some mechanisms, and why others have no estimate; by their names."""

    errors: dict[str, ExpectedError] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def forecast(
    task: Task, budget: Budget, known: Forecast, progress: Progress = NO_PROGRESS
) -> Forecast:
    """Return the errors to expect at a budget; looks at no data and spends nothing.

    Every built-in mechanism that has a model of its error, and is not ``known``, is planned with
    its defaults and the whole budget; pure ones leave delta unspent.
    """
    found = Forecast({**known.errors}, {**known.reasons})
    for name in BUILT_IN:
        tells = mechanism_class(name).expected_error is not Mechanism.expected_error
        if name in ("auto", *PRESETS) or not tells or name in known.errors or name in known.reasons:
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
