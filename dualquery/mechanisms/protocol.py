"""What a mechanism is: a frozen configuration that plans on public facts, then runs on a curator.

``plan`` fixes the schedule of private events, an accountant prices it, and ``run`` gets a curator
that refuses everything beyond it. Third parties add a mechanism through the entry-point group
``dualquery.mechanisms``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import Schedule
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.journal import NO_JOURNAL, Journal, Public
from dualquery.runtime.progress import NO_PROGRESS

if TYPE_CHECKING:
    from dualquery.data.domain import Domain
    from dualquery.estimates.expected import ExpectedError
    from dualquery.estimates.intervals import Intervals
    from dualquery.estimates.means import BoughtMean
    from dualquery.estimates.measurements import Measurements
    from dualquery.models.model import Model
    from dualquery.queries.conjunctions import Workload
    from dualquery.queries.family import Queries, Statistic
    from dualquery.queries.generate.frequent import FrequentItems
    from dualquery.room.curator import Curator
    from dualquery.rules.forbidden import Forbidden


Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Task:
    """The public facts: the queries, and the number of rows (or a public number in its place).

    A mechanism may use the schema's ``rules``; a release's records and answers keep them anyway,
    and its ``queries`` may be `without_implied` literals.
    """

    queries: Queries
    n: int
    copies: int = 1  # copies that a row of the largest weight counts as; ``n`` is a number of these
    rules: Forbidden | None = None
    frequent: FrequentItems | None = None
    """Makes the queries in a run that `finds_frequent`; ``queries`` stand in for them in plans."""
    scores: NDArray[np.float64] | None = None
    """The number that each bit of the domain stands for, NaN for none; None if no bit has one."""
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def without_implied(queries: Queries, rules: Forbidden | None) -> Queries:
        """Return conjunctions of the same legal records, without literals that the others imply.

        At least one is left, and bits that no other literal is about keep theirs. Conjunctions of
        no legal record stay, and a target's marginals: its model is fitted to whole ones.
        """
        from dualquery.queries.conjunctions import conjunctions_of
        from dualquery.rules.legal import impossible_conjunctions

        if rules is None or (workload := conjunctions_of(queries)) is None:
            return queries
        if not rules.boxes or workload.description.get("kind") == "target marginals":
            return queries
        literals, shorter = workload.literals, workload.literals.copy()
        bit = literals >> 1  # -1 where there is none
        ruled = np.isin(workload.domain.column_of_bit[bit], rules.columns) & (bit >= 0)
        possible = ~impossible_conjunctions(rules, literals)
        for place in range(workload.way):
            several = possible & ((shorter >= 0).sum(axis=1) > 1)
            rows = np.flatnonzero(several & ruled[:, place])
            opposite = shorter[rows]
            opposite[:, place] ^= 1
            shorter[rows[impossible_conjunctions(rules, opposite)], place] = -1
        lost = ~np.isin(bit, bit[shorter >= 0])
        return replace(workload, literals=np.where(lost, literals, shorter), repeats=True)

    def once(self, what: Hashable, find: Callable[[], Found]) -> Found:
        """Return what follows from these facts, and keep it: a choice and a plan ask for the same.

        ``what`` names it, with all that it depends on beside the task.
        """
        if what not in self._known:
            self._known[what] = find()
        found: Found = self._known[what]
        return found

    @property
    def default_records(self) -> int:
        """The number of synthetic records of a model when the user does not say."""
        return default_records(self.rows, self.queries.domain)

    @property
    def rows(self) -> int:
        """The number of rows; with weights, of as many rows of the largest weight."""
        return max(1, self.n // self.copies)

    @property
    def workload(self) -> Workload:
        """The queries, which must be conjunctions (see `require_conjunctions`)."""
        from dualquery.queries.conjunctions import require_conjunctions

        return require_conjunctions(self.queries)


MOST_RECORDS = 1_000_000
MOST_CELLS = 250_000_000
"""Records, and records times bits, that a release has unless the user asks for more."""


def default_records(n: int, domain: Domain) -> int:
    """Return the default number of synthetic records: one a private row (n is public), limited."""
    return max(1, min(n, MOST_RECORDS, MOST_CELLS // domain.bits))


@dataclass(frozen=True)
class Budget:
    """The epsilon and delta to spend, and how they are counted."""

    epsilon: float
    delta: float
    accountant: str = "auto"
    neighbours: Neighbours = Neighbours.REPLACE_ONE


@dataclass(frozen=True)
class Details:
    """What a mechanism decides besides its schedule, for its ``run``; each has its own class."""

    def parameters(self) -> Mapping[str, Any]:
        """Return what the release says about the decision, JSON-able: all fields by default.

        A field that is not said must be overridden away: parameters are public for ever.
        """
        return asdict(self)


DetailsT = TypeVar("DetailsT", bound=Details)
DetailsT_co = TypeVar("DetailsT_co", bound=Details, covariant=True)


@dataclass(frozen=True)
class Plan(Generic[DetailsT_co]):
    """A mechanism's decision, made before any private value is read."""

    schedule: Schedule  # the private events to come; the guarantee is computed for exactly these
    accountant: str  # name of the accountant that priced the schedule
    details: DetailsT_co  # the mechanism's own part of the decision
    remark: str = ""  # one line for the person who waits for the run, if the decision needs one
    needs_answers: bool = True
    """Whether the run draws on the queries' own exact answers; if not, they are not counted."""
    mechanism: str = ""  # name of the mechanism that runs, where it is not the one that was asked

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Effective parameters, JSON-able, for the release."""
        return self.details.parameters()


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a mechanism gives back. All of it is differentially private or public."""

    answers: NDArray[np.float64]  # an answer for every query, in the queries' range: shape ``(m,)``
    records: NDArray[np.uint8] | None = None
    """Synthetic records, shape ``(r, d)``; None for a mechanism that makes none."""
    trace: tuple[Mapping[str, Any], ...] = ()
    """One JSON-able line for each round of a game, or trial of a fit."""
    solver: Mapping[str, Any] = field(default_factory=dict)  # totals over the best responses
    intervals: Intervals | None = None  # of the true answers; None if none was measured
    measurements: Measurements | None = None
    """The noisy numbers that all else was made of, if there are any."""
    model: Model | None = None  # the distribution that records come from, if one was fitted
    remarks: tuple[str, ...] = ()  # sentences on what the run found, for the notes of the release
    workload: Workload | None = None
    """The queries that are answered, if the run chose them (`Task.frequent`)."""
    means: tuple[BoughtMean, ...] = ()
    """Means of columns that were bought beside the workload: leave it out."""


@dataclass(frozen=True)
class Session:
    """How a run is carried out; changes its speed and its report, never its privacy."""

    threads: int = 1
    public_seed: int | None = None
    progress: Callable[[int, int], None] = NO_PROGRESS.step
    journal: Journal = NO_JOURNAL

    def recall(
        self, name: str, compute: Callable[[], Public], instead: Callable[[], Public]
    ) -> Public:
        """Return a public value that later draws depend on: see `Journal.recall`.

        For what differs each time, such as a search with a time limit, or is expensive.
        """
        return self.journal.recall(name, compute, instead)


BYTES_A_QUERY = 400  # of a run: its exact answer, a noisy one, an interval


class Mechanism(Protocol[DetailsT]):
    """The protocol. Implementations are frozen dataclasses; their fields are the user's options.

    Inherit from it for the defaults of what is optional: ``aliases``, ``finds_frequent``,
    ``makes_records``, ``statistics``, ``expected_error`` and ``bytes_needed``.
    """

    name: ClassVar[str]
    pure: ClassVar[bool]  # whether delta is 0 unless the user gives one
    aliases: ClassVar[Mapping[str, str]] = {}
    """Other names of options: the name that users may write, and the field's."""
    finds_frequent: ClassVar[bool] = False
    """Whether a run can make its queries itself, of items that it finds (`Task.frequent`)."""
    shortens: ClassVar[bool] = False
    """Whether its queries come `Task.without_implied` literals: it fits what they all say."""

    @property
    def makes_records(self) -> bool:
        """Whether a run gives records; by default it does."""
        return True

    def statistics(self, queries: Queries) -> Statistic:
        """Return the queries whose exact answers the curator must hold; by default, those given."""
        return queries

    def plan(self, task: Task, budget: Budget) -> Plan[DetailsT]:
        """Fix parameters and schedule from public facts; `BadInputError` if none fit the budget."""
        ...

    def expected_error(self, task: Task, plan: Plan[DetailsT]) -> ExpectedError | None:  # noqa: ARG002
        """Return the error to expect, from public facts; None where no model of it is known."""
        return None

    def bytes_needed(self, task: Task, plan: Plan[DetailsT]) -> int:  # noqa: ARG002
        """Return about how many bytes a run takes besides rows, records, queries and answers."""
        return BYTES_A_QUERY * len(task.queries)

    def run(self, task: Task, plan: Plan[DetailsT], curator: Curator, session: Session) -> Outcome:
        """Carry out the plan."""
        ...
