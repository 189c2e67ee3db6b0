"""Tiny games: everything that a mechanism can show, on all neighbours, against its charge.

The mechanism plans and runs as in a release, on `Rooms` that hold all tables of a few rows at once.
Every accountant that supports the schedule is held against the truth over its whole curve.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.audit import cases, rooms
from dualquery.audit.findings import Finding
from dualquery.audit.laws import NOTHING, Loss
from dualquery.data.schema.grids import Grid
from dualquery.mechanisms.protocol import Budget, Mechanism, Plan, Session, Task
from dualquery.privacy.accountants.choice import ACCOUNTANTS, choices
from dualquery.privacy.events import Schedule, events_of
from dualquery.queries.family import Queries
from dualquery.releases.make.beside import Beside, with_beside, without_beside
from dualquery.room.curator import Curator
from dualquery.room.private_data import PrivateData
from dualquery.room.row_count import RowCount

Truth = Callable[[float], float]
"""The largest delta of any pair of tables, by epsilon."""

DELTAS = (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1)
EPSILON_SHARES = (0.0, 0.02, 0.1, 0.3, 0.6, 0.9, 1.0, 1.3, 2.0)
"""Where accountants are asked for epsilon, and for delta in parts of the budget's epsilon."""

_REACH = 12
"""Steps from the exact number within which a single integer is told from others, at most."""


@dataclass(frozen=True, eq=False)
class Game:
    """A mechanism on all tables of a few rows."""

    mechanism: Mechanism[Any]
    queries: Queries
    rows: int  # of the smaller tables
    budget: Budget
    stated: int  # the public number of rows
    name: str
    grids: tuple[Grid, ...] = ()  # of numbers that records carry, whose means are bought besides

    @property
    def plan(self) -> Plan[Any]:
        """The mechanism's plan; `BadInputError` if it refuses the task or its queries."""
        return self._plans[0]

    @cached_property
    def _plans(self) -> tuple[Plan[Any], Beside]:
        self.mechanism.statistics(self.queries)  # a release asks for these first
        budget = without_beside(self.budget, self.grids, self.count)
        own = self.mechanism.plan(Task(self.queries, self.stated), budget)
        return with_beside(own, self.grids, self.count, self.queries, self.budget)

    @property
    def count(self) -> RowCount:
        """The public number of rows, as if it were bought."""
        return RowCount(self.stated, self.budget.neighbours, 1.0)

    @cached_property
    def _records(self) -> NDArray[np.uint8]:
        legal = cases.legal_records(self.queries.domain)
        return cases.carrying(legal, self.grids, np.random.default_rng(0))

    @cached_property
    def _tables(self) -> list[cases.Cells]:
        return cases.tables_of(len(self._records), self.rows, self.budget.neighbours)

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """The numbers of neighbouring tables: shape ``(pairs, 2)``."""
        number = {cells: place for place, cells in enumerate(self._tables)}
        pairs = cases.pairs_of(len(self._records), self.rows, self.budget.neighbours)
        return np.array([[number[one], number[other]] for one, other in pairs])

    @cached_property
    def _held(self) -> list[PrivateData]:
        given = self.mechanism.statistics(self.queries), self.budget.neighbours, self.stated
        rows = [cases.records_of(self._records[list(cells)]) for cells in self._tables]
        return [PrivateData(each, *given, grids=self.grids) for each in rows]

    def play(self, guide: rooms.Guide) -> rooms.Rooms:
        """Run the mechanism once, on all tables, as a release does."""

        def room(table: int, probe: rooms.Probe) -> Curator:
            held = self._held[table]
            relation = self.budget.neighbours
            curator = Curator(
                held.rows, held.queries, self.plan.schedule, probe, neighbours=relation,
                public_rows=self.stated, grids=self.grids,
            )  # fmt: skip
            curator._data = held  # queries are counted once, and not on every path
            return curator

        largest = self.rows + self.budget.neighbours.steps
        steps = largest * (self.queries.high - self.queries.low) / self.queries.step
        played = rooms.Rooms(room, len(self._tables), guide, min(round(steps), _REACH))
        curator: Any = played
        with played.watching():
            total, _ = self._plans[1].buy(curator, self.count)
            task = Task(self.queries, total.copies)
            if self.plan.needs_answers:
                played.evaluate()
            self.mechanism.run(task, self.plan, curator, Session(public_seed=0))
            played.grounds()  # they go into the release, so all tables must have the same
        return played


def audit_game(game: Game, paths: int, most: int) -> Finding:
    """Play a game that its mechanism accepts, and hold every accountant against it.

    ``paths`` are taken where not all can be, at most ``most`` where all can.
    """
    finding = Finding()
    try:
        try:
            truth, taken = _every_path(game, most)
        except rooms.TooManyPaths:
            truth, taken = _some_paths(game, paths)
    except (rooms.Violation, RuntimeError, ValueError) as error:
        finding.violations.append(f"{game.name}: {error}")
        return finding
    finding.tried, finding.pairs = taken, len(game.pairs)
    _hold(game, truth, finding)
    return finding


def _every_path(game: Game, most: int) -> tuple[Truth, int]:
    guide = rooms.EveryPath(most)
    events = len(events_of(game.plan.schedule))
    logs: list[NDArray[np.float64]] = []
    more = True
    while more:
        played = game.play(guide)
        # With its schedule used up a mechanism draws no more, whatever the last draw shows.
        known = bool(played.laws) and len(played.grounds()) == events
        logs += played.log_chances_of(guide.outcomes()) if known else [played.log_chances()]
        more = guide.next_path(known=known)
    chances = np.exp(np.array(logs).T)
    sums = chances.sum(axis=1)
    if np.abs(sums - 1.0).max() > 1e-6:
        raise RuntimeError(f"the chances of all results add up to {sums.min():g} .. {sums.max():g}")
    one, other = chances[game.pairs[:, 0]], chances[game.pairs[:, 1]]

    def truth(epsilon: float) -> float:
        return float(np.maximum(one - np.exp(epsilon) * other, 0.0).sum(axis=1).max())

    return truth, guide.paths


def _some_paths(game: Game, paths: int) -> tuple[Truth, int]:
    losses: dict[tuple[Any, ...], Loss] = {}
    for seed in range(paths):
        laws = game.play(rooms.RandomPath(seed)).laws
        for one, other in game.pairs.tolist():
            loss = reduce(Loss.and_then, (law[one].loss_to(law[other]) for law in laws), NOTHING)
            key = loss.values.tobytes(), loss.chances.round(12).tobytes(), round(loss.shift, 9)
            losses.setdefault(key, loss)

    def truth(epsilon: float) -> float:
        return max(loss.delta(epsilon) for loss in losses.values())

    return truth, paths


def _hold(game: Game, truth: Truth, finding: Finding) -> None:
    """Hold the curves of all accountants against the truth, and the budget."""
    schedule, budget = game.plan.schedule, game.budget
    finding.compare(truth(budget.epsilon), budget.delta, f"{game.name}, delta of the budget")
    finding.share = 0.0
    for accountant in ACCOUNTANTS:
        for delta in DELTAS:
            if accountant.supports(schedule, delta) is None:
                epsilon = _price("epsilon", accountant.name, schedule, delta)
                what = f"{game.name}, delta at the epsilon {epsilon:.4g} of {accountant.name}"
                finding.compare(truth(epsilon), delta, what)
        for share in EPSILON_SHARES:
            epsilon = share * budget.epsilon
            true = truth(share * budget.epsilon)
            if accountant.supports(schedule, max(true, 1e-9)) is None:
                what = f"{game.name}, delta of {accountant.name} at epsilon {epsilon:.4g}"
                charged = _price("delta", accountant.name, schedule, epsilon)
                finding.compare(true, charged, what)


@cache
def _price(what: str, accountant: str, schedule: Schedule, at: float) -> float:
    """Return an accountant's epsilon at a delta, or its delta at an epsilon."""
    return float(getattr(choices(accountant)[0], what)(schedule, at))
