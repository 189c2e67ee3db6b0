"""A charge belongs to one run: kills at every step, copies at every step, restored checkpoints.

`Steps` calls back around each step that changes the disk and around each draw, so that one run of
a `World` shows the disk as ``kill -9`` would leave it. ``-m slow`` tries all mechanisms and pairs.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import dualquery
from dualquery.budgets.budget_file import BudgetFile
from dualquery.checkpoints.checkpoint import Checkpoint, CheckpointLines
from dualquery.checkpoints.unfinished import SPACE
from dualquery.releases.keep.reservation import reserve, resume
from dualquery.room.randomness import SeededRandomness
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, people

SMALL = {"schema": SCHEMA, "queries": 8, "way": 1, "threads": 1, "epsilon": 0.5, "delta": 1e-7}
HOWS = {
    "gaussian": {"mechanism": "gaussian"},
    "laplace, rows bought": {"mechanism": "laplace", "neighbours": "add-remove", "delta": 0.0},
    "game": {"mechanism": "dualquery", "options": {"rounds": 4, "samples": 3}},
    "independent": {"mechanism": "independent"},
}
DRAWS = {"gaussian": 1, "laplace, rows bought": 2, "game": 3, "independent": 1}
"""Draws of a release's schedule."""
ROWS = people(150)


class Steps:
    """Calls `at` with the name of each step, and counts draws."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: Callable[[str], None] = lambda _: None
        self.made = 0
        """Number of draws that were made."""
        self.drawing = False
        """Whether a draw was counted and has no result on the disk."""
        self._attempts = 0
        monkeypatch.setattr("dualquery.releases.make.payment.prepare", lambda _: None)
        for module in ("releases.make.making", "room.row_count"):
            monkeypatch.setattr(f"dualquery.{module}.randomness", self._source)
        for owner, name, label in (
            (CheckpointLines, "append", lambda entry, **_: f"line {next(iter(entry))}"),
            (BudgetFile, "write", lambda *_: "transaction"),
            (BudgetFile, "count_draw", lambda *_: "count"),
            (pl.DataFrame, "write_parquet", lambda *_, **__: "file"),
            (Path, "rename", lambda *_: "name"),
        ):
            monkeypatch.setattr(owner, name, self._stepped(getattr(owner, name), label))
        begin, end = Checkpoint.begin, Checkpoint.end

        def begins(kept: Checkpoint, *given: object, **options: object) -> None:
            begin(kept, *given, **options)  # type: ignore[arg-type]
            self.made += 1

        def ends(kept: Checkpoint, result: object) -> None:
            self.at("drawn")
            end(kept, result)  # type: ignore[arg-type]

        monkeypatch.setattr(Checkpoint, "begin", begins)
        monkeypatch.setattr(Checkpoint, "end", ends)

    def _source(self, seed: int | None) -> SeededRandomness:
        assert seed is None
        self._attempts += 1  # draws that were made twice would differ
        return SeededRandomness(self._attempts)

    def _stepped(self, step: Callable[..., object], label: Callable[..., str]) -> object:
        def stepped(this: object, *given: object, **options: object) -> object:
            name = label(*given, **options)
            if options.get("sync") is False:
                return step(this, *given, **options)
            self.at(f"before {name}")
            result = step(this, *given, **options)
            self.drawing = name == "count" or (self.drawing and name != "line end")
            self.at(f"after {name}")
            return result

        return stepped


@dataclass(frozen=True)
class World:
    """A folder with all that a release leaves on the disk."""

    place: Path
    how: str

    @staticmethod
    def make(place: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> World:
        """Make one with a budget file for exactly one release."""
        world = World(place, how)
        place.mkdir()
        world.enter(monkeypatch)
        BudgetFile.create(
            place / "budget", epsilon=0.5, delta=1e-6,
            neighbours=HOWS[how].get("neighbours", "replace-one"),
        )  # fmt: skip
        return world

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the user's counters be those of this world."""
        monkeypatch.setenv("XDG_STATE_HOME", str(self.place / "state"))

    def copied(self, place: Path) -> World:
        shutil.copytree(self.place, place, ignore=lambda *_: [SPACE])
        return World(place, self.how)

    def copy_checkpoint(self, name: str = "copy", source: Path | None = None) -> None:
        """Copy the folder of the interrupted release, here or from elsewhere."""
        source = self.place / "out.unfinished" if source is None else source
        if source.exists():
            target = self.place / f"{name}.unfinished"
            shutil.copytree(source, target, ignore=lambda *_: [SPACE], dirs_exist_ok=True)

    def release(self) -> None:
        self._make(reserve(self.place / "out"))

    def resume(self, name: str = "out") -> str:
        """Go on with an interrupted release; return what refused it, or ""."""
        path = self.place / f"{name}.unfinished"
        if not path.exists():
            return "there is nothing to go on with"
        try:
            self._make(resume(path))
        except dualquery.BadInputError as error:
            return "; ".join((str(error), *getattr(error, "__notes__", ())))
        return ""

    def _make(self, opened: object) -> None:
        with opened as place:  # type: ignore[attr-defined]
            made = dualquery.release(
                ROWS, **{**SMALL, **HOWS[self.how]}, budget=self.place / "budget",
                checkpoint=place.checkpoint,
            )  # fmt: skip
            place.write(made.write_files)

    def check(self) -> None:
        """Check that no more is spent than the file has, and that a charge has one release."""
        account = BudgetFile(self.place / "budget").read()
        assert account.spent[0] <= 0.5
        found = [json.loads(path.read_text()) for path in self.place.glob("*/release.json")]
        ids = [each["options"]["budget_file"]["release"] for each in found]
        assert len(ids) == len(set(ids)), "two releases on one charge"
        assert {*ids} <= {*account.releases}

    @property
    def released(self) -> bool:
        return any(self.place.glob("*/release.json"))


ALL = [pytest.param(how, marks=pytest.mark.slow) for how in HOWS]
FEW = ["laplace, rows bought"]


@dataclass(frozen=True)
class Stopped:
    """What a process leaves that is killed at a step."""

    step: str
    world: World
    made: int
    """Draws that were made before."""
    drawing: bool
    """Whether it was within a draw."""


def killed_everywhere(tmp_path: Path, how: str) -> list[Stopped]:
    """Make one release; return what is on the disk at each of its steps."""
    tmp_path.mkdir(exist_ok=True)
    monkeypatch = pytest.MonkeyPatch()
    world, steps = World.make(tmp_path / "live", how, monkeypatch), Steps(monkeypatch)
    found: list[Stopped] = []

    def stop(step: str) -> None:
        copy = world.copied(tmp_path / f"step-{len(found)}")
        found.append(Stopped(step, copy, steps.made, steps.drawing))

    steps.at = stop
    world.release()
    assert world.released
    assert steps.made == DRAWS[how]
    monkeypatch.undo()
    shutil.rmtree(world.place)  # it was killed: it never came to its end
    return found


@pytest.mark.parametrize("how", [*FEW, *ALL])
def test_a_kill_at_any_step_loses_no_charge_but_in_a_draw(tmp_path, how) -> None:
    told: Counter[str] = Counter()
    stopped = killed_everywhere(tmp_path, how)
    for each in stopped:
        with pytest.MonkeyPatch.context() as patched:
            steps = Steps(patched)
            each.world.enter(patched)
            refused = each.world.resume()
            if "no folder of an unfinished" in refused or "nothing to go on" in refused:
                assert each.made == 0 or each.world.released, each.step
                if not each.world.released:  # nothing was charged: it is made anew
                    each.world.release()
                refused = ""
            if refused and not each.world.released:
                assert each.drawing, (each.step, refused)
                assert how != "game"
                assert refused.count("cannot go on") == 1
                told["lost in a draw"] += 1
            else:
                told["goes on" if not refused else "was out already"] += 1
                assert each.world.released
            assert each.made + steps.made <= DRAWS[how]
        each.world.check()
    print(how, len(stopped), "kills,", sum(each.drawing for each in stopped), "in a draw:", told)
    assert told["goes on"] > len(stopped) / 2


@pytest.mark.parametrize("how", [*FEW, *ALL])
def test_of_two_copies_one_goes_on(tmp_path, how, request) -> None:
    """A copy is made at a step, and resumed at this or a later one of the run that goes on."""
    chance, runs = random.Random(how), 0
    length = len(killed_everywhere(tmp_path / "all", how))
    pairs = [(i, j) for i in range(length) for j in range(i, length)]
    last = [pair for pair in pairs if pair[0] > length - 9]  # where the release gets its name
    taken = chance.sample(pairs, 60) + last if "slow" in request.keywords else last[::7]
    for copied_at, resumed_at in taken:
        place = tmp_path / f"{copied_at}-{resumed_at}"
        place.mkdir()
        with pytest.MonkeyPatch.context() as patched:
            world, steps = World.make(place / "live", how, patched), Steps(patched)
            passed = 0

            def at(_: str, world=world, steps=steps, pair=(copied_at, resumed_at)) -> None:
                nonlocal passed
                passed += 1
                if passed == pair[0] + 1:
                    world.copy_checkpoint()
                if passed == pair[1] + 1:
                    steps.at = lambda _: None
                    world.resume("copy")

            steps.at = at
            with contextlib.suppress(BadInputError):
                world.release()
            world.resume("copy")
            world.check()
            assert steps.made <= DRAWS[how]
            runs += world.released
        shutil.rmtree(place)
    assert runs > 0


@pytest.mark.parametrize("how", [*FEW, *ALL])
def test_a_restored_or_shortened_checkpoint_draws_nothing_twice(tmp_path, how, request) -> None:
    """The folder is one of a backup, or the last lines of its journal are gone."""
    stopped, chance = killed_everywhere(tmp_path, how), random.Random(how)
    pairs = [(i, k) for k in range(len(stopped)) for i in range(k)]
    for earlier, later in chance.sample(pairs, 60 if "slow" in request.keywords else 8):
        for cut in (0, chance.choice((1, 2, 3))):
            place = tmp_path / "restored"
            world = stopped[later].world.copied(place)
            shutil.rmtree(world.place / "out.unfinished", ignore_errors=True)
            world.copy_checkpoint("out", stopped[earlier].world.place / "out.unfinished")
            journal = world.place / "out.unfinished" / "journal"
            if journal.exists() and cut:
                lines = journal.read_bytes().splitlines(keepends=True)
                journal.write_bytes(b"".join(lines[: len(lines) - cut]))
            with pytest.MonkeyPatch.context() as patched:
                steps = Steps(patched)
                world.enter(patched)
                world.resume()
                assert stopped[later].made + steps.made <= DRAWS[how], (earlier, later, cut)
            world.check()
            shutil.rmtree(place)
