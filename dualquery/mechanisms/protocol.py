"""What a mechanism is: a frozen configuration that plans on public facts, then runs on a curator.

DualQuery, the baselines and third parties' mechanisms share this protocol. ``plan`` sees public
facts only and fixes the schedule of private events; the accountant prices it; ``run`` gets a
curator that refuses everything beyond that schedule. Third parties add a mechanism through the
entry-point group ``dualquery.mechanisms``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import Neighbours, Schedule
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS

if TYPE_CHECKING:
    from dualquery.estimates.expected import ExpectedError
    from dualquery.estimates.intervals import Intervals
    from dualquery.queries.conjunctions import Workload
    from dualquery.queries.family import Queries, Statistic
    from dualquery.room.curator import Curator


@dataclass(frozen=True, eq=False)
class Task:
    """The public facts: what is asked, and of how many rows (or a number that stands in for it)."""

    queries: Queries
    n: int

    @property
    def workload(self) -> Workload:
        """The queries of a mechanism that answers conjunctions only.

        Raises
        ------
        BadInputError
            If the queries are of another family.
        """
        return require_conjunctions(self.queries)


def require_conjunctions(queries: Queries) -> Workload:
    """Return the queries if they are conjunctions.

    Raises
    ------
    BadInputError
        If they are of another family.
    """
    from dualquery.queries.conjunctions import conjunctions_of

    workload = conjunctions_of(queries)
    if workload is None:
        raise BadInputError(
            f"this mechanism answers conjunctions, not {type(queries).__name__}; use the mechanism "
            "mwem"
        )
    return workload


def default_records(n: int) -> int:
    """Return how many synthetic records a model gives when the user does not say.

    One a private row (their number is public), but no more than a person would read through.
    """
    return min(n, 10_000)


@dataclass(frozen=True)
class Budget:
    """What may be spent, and how it is counted."""

    epsilon: float
    delta: float
    accountant: str = "auto"
    neighbours: Neighbours = Neighbours.REPLACE_ONE


@dataclass(frozen=True)
class Plan:
    """A mechanism's decision, made before any private value is read.

    Parameters
    ----------
    schedule
        The private events to come; the guarantee is computed for exactly these.
    accountant
        Name of the accountant that priced the schedule.
    parameters
        Effective parameters, JSON-able, for the release.
    remark
        One line for whoever waits for the run, if there is something to say of the decision.
    needs_answers
        Whether the run draws on the queries' own exact answers; if not, they are not counted.
    """

    schedule: Schedule
    accountant: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""
    needs_answers: bool = True


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a mechanism gives back. All of it is differentially private or public.

    Parameters
    ----------
    answers
        float64, shape ``(m,)``, in the range of the queries: an answer for every one.
    records
        uint8, shape ``(r, d)``, or None for a mechanism that makes none: synthetic records.
    trace
        One JSON-able line a round of a game, or a trial of a fit.
    solver
        Totals over the rounds' best responses, if there were any.
    intervals
        Where the true answers lie, as far as noise tells; None if no answer was measured.
    """

    answers: NDArray[np.float64]
    records: NDArray[np.uint8] | None = None
    trace: tuple[Mapping[str, Any], ...] = ()
    solver: Mapping[str, Any] = field(default_factory=dict)
    intervals: Intervals | None = None


@dataclass(frozen=True)
class Session:
    """How a run is carried out; changes its speed and its report, never its privacy."""

    threads: int = 1
    public_seed: int | None = None
    progress: Callable[[int, int], None] = NO_PROGRESS.step


class Mechanism(Protocol):
    """The protocol. Implementations are frozen dataclasses; their fields are the user's options."""

    name: ClassVar[str]
    pure: ClassVar[bool]

    def statistics(self, queries: Queries) -> Statistic | None:
        """Return the queries whose exact answers the curator must hold (None: no data needed)."""
        ...

    def plan(self, task: Task, budget: Budget) -> Plan:
        """Fix parameters and schedule from public facts.

        Raises
        ------
        BadInputError
            If the options contradict each other or no parameters fit the budget.
        """
        ...

    def run(self, task: Task, plan: Plan, curator: Curator | None, session: Session) -> Outcome:
        """Carry out the plan."""
        ...


def planned_error(mechanism: Mechanism, task: Task, plan: Plan) -> ExpectedError | None:
    """Return what a mechanism's ``expected_error(task, plan)`` says, None if it has no such."""
    model = getattr(mechanism, "expected_error", None)
    return None if model is None else model(task, plan)
