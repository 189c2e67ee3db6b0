"""Runs that are killed and go on, by enumeration: over all attempts no event is drawn twice."""

import itertools
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import dualquery
from dualquery.budgets.budget_file import BudgetFile
from dualquery.checkpoints.checkpoint import Checkpoint, CheckpointLines
from dualquery.privacy.events import Event, GaussianNoise, LaplaceNoise, SampledQueries
from dualquery.room.ground import Ground
from dualquery.room.journal import Journal, Recorded
from dualquery.room.ledger import Ledger, covers
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NoProgress
from tests.tables import SCHEMA, people

GROUND = Ground("a lemma", "a statistic", 1.0)
GAME = tuple(SampledQueries(0.1 * number, 2) for number in range(1, 5))
ITERATIONS = (SampledQueries(0.3, 1), LaplaceNoise(0.5)) * 3
STAGES = (GaussianNoise(2.0, 1.0), GaussianNoise(1.0, 1.0))


class Killed(BaseException):
    """The process is gone."""


class Disk(Journal):
    """A journal that survives its process, which is killed at one of its steps."""

    def __init__(self) -> None:
        self.kept: list[Recorded] = []
        self.spared: list[bool] = []
        self.steps_left = -1
        self.taken = 0

    def attempt(self, steps: int) -> None:
        """Begin an attempt that is killed after so many steps; -1 for one that lives."""
        self.steps_left, self.taken = steps, 0

    def step(self) -> None:
        if self.steps_left == 0:
            raise Killed
        self.steps_left -= 1

    def recorded(self) -> Recorded | None:
        return self.kept[self.taken] if self.taken < len(self.kept) else None

    def take(self) -> None:
        self.taken += 1

    def begin(self, events, ground, *, spare) -> None:
        self.step()
        self.kept.append(Recorded(events, ground, None))
        self.spared.append(spare)
        self.taken += 1
        self.step()

    def end(self, result) -> None:
        self.step()
        begun = self.kept[-1]
        self.kept[-1] = Recorded(begun.events, begun.ground, result)
        self.step()


class Run:
    """Attempts at one release, and what all of them drew."""

    def __init__(self, schedule: tuple[Event, ...]) -> None:
        self.schedule = schedule
        self.disk = Disk()
        self.draws: Counter[int] = Counter()
        self.fresh = itertools.count()

    def begin(self, steps: int) -> Callable[[Event], int]:
        """Begin an attempt; return what draws in it."""
        self.disk.attempt(steps)
        self.ledger = Ledger(self.schedule, self.disk)

        def draw(event: Event) -> int:
            def make():
                place = self.ledger.spent - 1
                assert covers(self.schedule[place], event)
                self.draws[place] += 1
                self.disk.step()
                return np.array(next(self.fresh))

            return int(self.ledger.draw(event, GROUND, make, ()))

        return draw


def game(run: Run, draw) -> Iterator[int]:
    for planned in GAME:
        if run.ledger.cut_short(1):
            return
        yield draw(planned)


def iterations(run: Run, draw) -> Iterator[int]:
    for select, measure in zip(ITERATIONS[::2], ITERATIONS[1::2], strict=True):
        if run.ledger.cut_short(2):
            return
        yield draw(select)
        if run.ledger.cut_short(1):
            return
        yield draw(measure)


def stages(run: Run, draw) -> Iterator[int]:
    for event in STAGES:
        yield draw(event)


KINDS = {"game": (GAME, game), "iterations": (ITERATIONS, iterations), "stages": (STAGES, stages)}
STEPS = 5
"""Of a draw: before and after its begin is kept, within it, before and after its end is kept."""


def attempts(run: Run, mechanism, kills: tuple[int, ...]) -> tuple[list[list[int]], Counter[str]]:
    """Return what each attempt gave out, and how they ended: the last one lives."""
    given: list[list[int]] = []
    ends: Counter[str] = Counter()
    for steps in (*kills, -1):
        given.append([])
        try:
            for result in mechanism(run, run.begin(steps)):
                given[-1].append(result)
            ends["shortened" if run.ledger.lost else "whole"] += 1
        except Killed:
            ends["killed"] += 1
        except BadInputError as error:
            ends[str(error).partition("; ")[0]] += 1
    return given, ends


@pytest.mark.parametrize("name", KINDS)
def test_over_all_attempts_no_event_is_drawn_twice(name: str) -> None:
    """Killed at any two steps of two attempts; the third lives."""
    schedule, mechanism = KINDS[name]
    most = STEPS * len(schedule)
    ends: Counter[str] = Counter()
    for kills in itertools.product(range(most), range(-1, most)):
        run = Run(schedule)
        given, ended = attempts(run, mechanism, kills)
        ends += ended
        assert max(run.draws.values(), default=0) <= 1
        # What was given out is given out again: nothing is drawn in its place.
        assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(given))
        # Only a run that lost what it cannot do without is refused: no other is offered to go on.
        lost = [each.result is None for each in run.disk.kept]
        needed = any(gone and not spare for gone, spare in zip(lost, run.disk.spared, strict=True))
        assert not any("counts as spent" in end for end in ended) or needed
        assert not needed or name == "stages"
        assert sum(ground is not None for ground in run.ledger.grounds) == len(run.disk.kept)
    refused = [end for end in ends if "counts as spent" in end]
    assert ends["whole"]
    assert ends["killed"]
    assert refused if name == "stages" else ends["shortened"]


@pytest.mark.usefixtures("_ctrl_c_is_heard")
def test_a_signal_that_asks_to_end_loses_no_draw() -> None:
    disk = Disk()
    ledger = Ledger(STAGES, disk)

    def make() -> np.ndarray:
        signal.raise_signal(signal.SIGINT)
        return np.array(7)

    with pytest.raises(KeyboardInterrupt):
        ledger.draw(STAGES[0], GROUND, make, ())
    assert [each.result for each in disk.kept] == [7]


def test_a_journal_of_another_run_is_refused() -> None:
    run = Run(GAME)
    assert all(result >= 0 for result in game(run, run.begin(-1)))
    other = Run(ITERATIONS)
    other.disk = run.disk
    with pytest.raises(BadInputError, match="the checkpoint is of another run"):
        other.begin(-1)(ITERATIONS[0])
    assert not other.draws


def test_a_checkpoint_keeps_all_that_a_journal_is_told() -> None:
    """The base keeps nothing: what a checkpoint did not override would be lost without a word."""
    told = {name for name in vars(Journal) if not name.startswith("_")}
    assert told == {"lost", "recorded", "take", "begin", "end", "recall", "same", "make_room",
                    "finish"}  # fmt: skip
    assert told <= {*vars(Checkpoint)}


class Interrupting(NoProgress):
    """Presses Ctrl-C at a round."""

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    def step(self, done: int, total: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_checkpoint_serves_one_run(tmp_path: Path) -> None:
    """As in a notebook: the cell is stopped and run again, with the same object."""
    budget = BudgetFile.create(tmp_path / "budget", epsilon=1.0, delta=1e-4)
    path = tmp_path / "journal"
    checkpoint = Checkpoint(path)
    asked = {
        "schema": SCHEMA, "queries": 20, "way": 2, "delta": 1e-4, "mechanism": "dualquery",
        "options": {"rounds": 6, "samples": 4}, "budget": budget,
    }  # fmt: skip
    table = people(200)
    with pytest.raises(KeyboardInterrupt):
        dualquery.release(table, **asked, checkpoint=checkpoint, progress=Interrupting(3))
    with pytest.raises(BadInputError, match="was given to a run before"):
        dualquery.release(table, **asked, checkpoint=checkpoint)
    checkpoint.close()
    assert dualquery.release(table, **asked, checkpoint=Checkpoint(path)).privacy.private
    assert sum("begin" in entry for entry in CheckpointLines(path).entries) == 5
    assert budget.read().spent == (1.0, 1e-4)
