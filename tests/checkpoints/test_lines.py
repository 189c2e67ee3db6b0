"""The file of a checkpoint: it comes back as written; cut lines are dropped, damage is seen."""

import errno
import itertools
import json
import os
from dataclasses import asdict
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from dualquery.checkpoints.checkpoint import _BEGINNING, Checkpoint, CheckpointLines, _next
from dualquery.privacy.events import GaussianNoise, RandomizedReport, SampledQueries
from dualquery.room.ground import Ground
from dualquery.runtime.errors import BadInputError

GROUND = Ground("a lemma", "counts", 1.5, None, "a proof")
NOISY = np.random.default_rng(0).normal(size=(3, 4))


def written(path: Path) -> Path:
    kept = Checkpoint(path)
    kept.same("plan", {"n": 12, "names": ("a", "b"), "delta": None})
    kept.begin((SampledQueries(0.25, 3),), GROUND, spare=True)
    kept.end(np.array([5, 0, 2]))
    kept.recall("round 2", lambda: {"record": np.array([0, 1], np.uint8), "bound": None}, dict)
    kept.begin((RandomizedReport(0.5),) * 2, GROUND, spare=True)
    kept.begin((GaussianNoise(1.0, 3.0),), GROUND, spare=True)
    kept.end(NOISY)
    kept.close()
    return path


def test_what_is_written_comes_back(tmp_path, monkeypatch) -> None:
    kept = Checkpoint(written(tmp_path / "journal"))
    first, lost, last = (kept.recorded(), *(_after(kept) for _ in range(2)))
    assert first.events == (SampledQueries(0.25, 3),)
    assert first.ground == GROUND
    assert first.result.tolist() == [5, 0, 2]
    assert lost.events == (RandomizedReport(0.5),) * 2
    assert lost.result is None
    np.testing.assert_array_equal(last.result, NOISY)
    assert _after(kept) is None
    assert (kept.draws, kept.lost) == (3, 1)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    kept.begin((GaussianNoise(1.0, 3.0),), GROUND, spare=True)
    assert len(synced) == 1
    value = kept.recall("round 2", lambda: pytest.fail("it is kept"), dict)
    assert value["record"].tolist() == [0, 1]
    kept.same("plan", {"delta": None, "names": ["a", "b"], "n": 12})
    with pytest.raises(BadInputError, match="another plan: n was 12 and is 13"):
        kept.same("plan", {"delta": None, "names": ["a", "b"], "n": 13})
    assert os.name == "nt" or (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def _after(kept: Checkpoint):
    kept.take()
    return kept.recorded()


def test_a_file_that_is_cut_off_anywhere_is_read_up_to_its_last_whole_line(tmp_path) -> None:
    whole, part = written(tmp_path / "journal").read_bytes(), tmp_path / "part"
    for end in range(0, len(whole), 7):
        part.write_bytes(whole[:end])
        kept, draws = Checkpoint(part), whole[:end].rpartition(b"\n")[0].count(b' {"begin"')
        assert kept.draws == draws
        kept.begin((SampledQueries(0.25, 3),), GROUND, spare=True)
        kept.close()
        again = Checkpoint(part)
        assert again.draws == draws + 1
        again.close()


def test_any_changed_byte_before_the_last_line_is_found(tmp_path) -> None:
    whole = written(tmp_path / "journal").read_bytes()
    last, generator = whole.rstrip(b"\n").rindex(b"\n"), np.random.default_rng(1)
    part = tmp_path / "part"
    end = [(len(whole) - 1, bit) for bit in range(8)]  # of the last line, which is whole otherwise
    for place, bit in (*generator.integers((last, 8), size=(300, 2)).tolist(), *end):
        changed = bytearray(whole)
        changed[place] ^= 1 << bit
        part.write_bytes(changed)
        with pytest.raises(BadInputError, match="damaged"):
            Checkpoint(part)
    lines = whole.splitlines(keepends=True)
    for number in range(len(lines) - 1):
        part.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
        with pytest.raises(BadInputError, match="damaged"):
            Checkpoint(part)


@pytest.mark.parametrize(
    "entry",
    [
        {"checkpoint": 3},
        {"checkpoint": None},
        {},
        [],
        None,
        {"begin": {"kind": "SampledQueries", "range": -1.0, "draws": 1}, "times": 1},
        {"begin": {"kind": "GaussianNoise", "sensitivity": 1, "scale": 1}, "times": 0},
        {"end": 1},
        {"end": {"array": "float64", "shape": [1 << 40], "data": ""}},
        {"end": {"array": "uint8", "shape": [1], "data": "not zlib"}},
        {"public": []},
        {"fact": {}, "value": 1},
        {"claim": "a", "named": 1},
        {"void": 1},
        {"surprise": 1},
    ],
)
def test_lines_that_nobody_wrote_are_refused(tmp_path, entry) -> None:
    """Digests that fit are no proof: who edits a file can compute them anew."""
    first = isinstance(entry, dict) and "checkpoint" in entry
    with pytest.raises(BadInputError, match=str(tmp_path)):
        Checkpoint(forged(tmp_path / "journal", [] if first else [{"checkpoint": 1}], [entry]))


def forged(path: Path, *parts: list[object]) -> Path:
    digest, lines = _BEGINNING, []
    for entry in itertools.chain(*parts):
        text = json.dumps(entry)
        digest = _next(digest, text)
        lines.append(f"{digest} {text}\n")
    path.write_text("".join(lines))
    return path


def test_a_full_disk_takes_what_was_held_and_then_says_so(tmp_path, monkeypatch) -> None:
    given: list[bool] = []

    def give() -> bool:
        given.append(True)
        return len(given) == 1

    lines, sync = CheckpointLines(tmp_path / "journal", give), os.fsync

    def full(handle: int) -> None:
        if len(given) in (0, 2):
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    lines.append({"checkpoint": 1}, sync=True)
    assert given == [True]
    given.append(True)
    with pytest.raises(BadInputError, match=r"cannot write the checkpoint .* No space left"):
        lines.append({"complete": True}, sync=True)


def test_a_value_whose_computation_killed_two_processes_is_replaced(tmp_path) -> None:
    die, stop = Mock(side_effect=SystemError("a crash")), Mock(side_effect=KeyboardInterrupt)
    for fails, error in ((stop, KeyboardInterrupt), (die, SystemError), (die, SystemError)):
        kept = Checkpoint(tmp_path / "journal")
        with pytest.raises(error):
            kept.recall("round 3", fails, lambda: pytest.fail("not yet"))
        kept.close()
    kept = Checkpoint(tmp_path / "journal")
    assert kept.recall("round 3", die, lambda: {"instead": 1}) == {"instead": 1}


def test_what_would_fill_the_memory_is_refused(tmp_path) -> None:
    empty = {"array": "float64", "shape": [1 << 28], "data": ""}
    drawn = {"begin": {"kind": "LaplaceNoise", "epsilon": 1.0}, "times": 1 << 23}
    for entries, message in (
        ([{"fact": "x", "value": empty}], "0 bytes where 2,147,483,648 are expected"),
        ([{"fact": "x", "value": {**empty, "shape": [1 << 30]}}], "may be left"),
        ([{**drawn, "ground": asdict(GROUND)}] * 3, "a draw of 8388608 events"),
    ):
        with pytest.raises(BadInputError, match=message):
            Checkpoint(forged(tmp_path / "journal", [{"checkpoint": 1}], entries))
