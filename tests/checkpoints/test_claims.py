"""A charge belongs to one run: kills at every step, copies at every step, restored checkpoints.

``-m slow`` goes through all mechanisms and pairs of steps; else a few are drawn.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from dualquery.runtime.errors import BadInputError
from tests.checkpoints.worlds import DRAWS, HOWS, Steps, World

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
                assert "cannot go on" in refused
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
    stopped = killed_everywhere(tmp_path, how)
    chance = random.Random(how)
    pairs = [(i, k) for k in range(len(stopped)) for i in range(k)]
    for earlier, later in chance.sample(pairs, 60 if "slow" in request.keywords else 8):
        for cut in (0, chance.choice((1, 2, 3))):
            place = tmp_path / "restored"
            world = stopped[later].world.copied(place)
            source = stopped[earlier].world.place / "out.unfinished"
            shutil.rmtree(world.place / "out.unfinished", ignore_errors=True)
            world.copy_checkpoint("out", source)
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
