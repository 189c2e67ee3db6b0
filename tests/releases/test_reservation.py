"""The place of a release: taken once, before work begins; dead runs leave nothing in the way."""

import errno
import os
import signal

import pytest

from dualquery.checkpoints import unfinished
from dualquery.privacy.events import LaplaceNoise
from dualquery.releases.keep.reservation import reserve, resume
from dualquery.room.ground import Ground
from dualquery.runtime.errors import BadInputError, InterruptedRun
from tests.tables import names


def refused(context, why: str) -> None:
    with pytest.raises(BadInputError, match=why), context:
        pytest.fail("it must be refused")


def draw(place) -> None:
    place.checkpoint.begin((LaplaceNoise(1.0),), Ground("a lemma", "counts", 1.0), spare=True)


def test_two_runs_with_one_out(tmp_path) -> None:
    with reserve(tmp_path / "out"):
        assert names(tmp_path) == {"out.unfinished"}
        refused(reserve(tmp_path / "out"), r"another process is making .*out;")
        with reserve(tmp_path / "other"):
            assert names(tmp_path) == {"out.unfinished", "other.unfinished"}
    assert names(tmp_path) == set()


@pytest.mark.parametrize("files", [[], ["lock"], ["lock", "journal"], ["lock", "space"]])
def test_what_a_dead_run_left_is_removed(tmp_path, files) -> None:
    (tmp_path / "out.unfinished").mkdir()
    for name in files:
        (tmp_path / "out.unfinished" / name).touch()
    with reserve(tmp_path / "other"):
        left = {"other.unfinished"} if files else {"other.unfinished", "out.unfinished"}
        assert names(tmp_path) == left  # an empty folder may be another run's that begins
    with reserve(tmp_path / "out"):
        pass
    assert names(tmp_path) == set()


def test_what_was_drawn_is_in_nobody_s_way_but_its_own(tmp_path) -> None:
    told = pytest.raises(InterruptedRun, match="private draws begun: 1")
    with told, reserve(tmp_path / "out") as place:
        draw(place)
        raise KeyboardInterrupt
    refused(reserve(tmp_path / "out"), r"an interrupted release: .* --resume")
    with reserve(tmp_path / "other"):
        pass
    assert names(tmp_path) == {"out.unfinished"}
    refused(resume(tmp_path / "out.unfinished", tmp_path / "new" / "out"), "is not on the disk of")
    with resume(tmp_path / "out.unfinished") as place:
        assert place.target == tmp_path / "out"
        assert place.checkpoint.lost == 1
        refused(resume(tmp_path / "out.unfinished"), "another process goes on with")
    refused(resume(tmp_path / "out.unfinished"), "no folder of an unfinished release")


def test_what_may_be_charged_stays_until_it_is_resumed(tmp_path) -> None:
    """A run that is killed between its charge and its first draw; unless the charge was refused."""
    for unpaid in (False, True):
        told = pytest.raises((KeyboardInterrupt, InterruptedRun))
        with told, reserve(tmp_path / "out") as place:
            place.checkpoint.claim()
            if unpaid:
                place.checkpoint.unclaim()
            raise KeyboardInterrupt
        assert names(tmp_path) == (set() if unpaid else {"out.unfinished"})
        if not unpaid:
            with reserve(tmp_path / "other"):  # which sweeps what is left of dead runs
                pass
            refused(reserve(tmp_path / "out"), r"private draws begun: 0.* --resume")
            with resume(tmp_path / "out.unfinished") as place:
                assert place.checkpoint.claims


def test_what_is_paid_while_others_sweep_stays(tmp_path, monkeypatch) -> None:
    told = pytest.raises((KeyboardInterrupt, InterruptedRun))
    with told, reserve(tmp_path / "out") as place:
        place.checkpoint.claim()
        raise KeyboardInterrupt
    journal = tmp_path / "out.unfinished" / "journal"
    paid, lock = journal.read_bytes(), unfinished.try_lock
    journal.write_bytes(b"")
    monkeypatch.setattr(unfinished, "try_lock", lambda f: journal.write_bytes(paid) and lock(f))
    with reserve(tmp_path / "other"):
        pass
    assert names(tmp_path) == {"out.unfinished"}


def test_a_signal_does_not_part_a_release_from_its_checkpoint(tmp_path, monkeypatch) -> None:
    either = KeyboardInterrupt, InterruptedRun  # the former would end all tests
    written = pytest.raises(either, match=r"the release is written to .*out$")
    with written, reserve(tmp_path / "out") as place:
        draw(place)
        rename, ask = os.rename, signal.SIGINT
        monkeypatch.setattr(os, "rename", lambda *to: (rename(*to), signal.raise_signal(ask)))
        place.write(lambda folder: folder.mkdir())
    assert names(tmp_path) == {"out"}


def test_folders_of_others_are_left_alone(tmp_path) -> None:
    (tmp_path / "out.unfinished").mkdir()
    (tmp_path / "out.unfinished" / "mine").touch()
    refused(reserve(tmp_path / "out"), "is in the way")
    refused(resume(tmp_path / "out.unfinished"), "no folder of an unfinished release")
    assert names(tmp_path / "out.unfinished") == {"mine"}


def test_a_name_that_has_no_room_for_its_ending_is_refused(tmp_path) -> None:
    with reserve(tmp_path / ("é" * 122)):
        pass
    refused(reserve(tmp_path / ("é" * 122 + "x")), r"a name of 245 bytes; 244 is the most")


def test_a_full_disk_is_found_before_anything_is_drawn(tmp_path, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with (  # noqa: PT012
        monkeypatch.context() as patched,
        pytest.raises(BadInputError, match="the disk is full"),
        reserve(tmp_path / "out") as place,
    ):
        patched.setattr(os, "fsync", full)
        place.hold_space()
    with (  # noqa: PT012
        monkeypatch.context() as patched,
        pytest.raises(BadInputError, match="No space left on device; make room"),
        reserve(tmp_path / "out") as place,
    ):
        _ = place.checkpoint
        patched.setattr(os, "fsync", full)
        place.checkpoint.make_room(1 << 21)
    assert names(tmp_path) == set()


def test_the_space_that_a_killed_attempt_held_is_not_held_twice(tmp_path) -> None:
    with reserve(tmp_path / "out") as place:
        (held := place._unfinished.path / unfinished.SPACE).write_bytes(bytes(1 << 22))
        place.hold_space(1 << 21)
        assert held.stat().st_size == 1 << 21


def test_what_a_killed_attempt_half_wrote_is_replaced(tmp_path) -> None:
    def write(folder) -> None:
        folder.mkdir()
        (folder / "whole").touch()

    with reserve(tmp_path / "out") as place:
        half = place._unfinished.release
        half.mkdir()
        (half / "half").touch()
        place.write(write)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["whole"]
