"""A table from a pipe: private while it is read, gone afterwards, whatever ends the process."""

from __future__ import annotations

import io
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dualquery.data.spool import remove_abandoned, spooled
from dualquery.runtime.errors import BadInputError


def folders(state: Path) -> list[Path]:
    home = state / "dualquery" / "spool"
    return sorted(home.iterdir()) if home.exists() else []


@pytest.fixture
def state(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_the_file_is_for_the_user_only_and_goes(state: Path) -> None:
    with spooled(io.BytesIO(b"a,b\n1,2\n"), "-") as path:
        assert path.read_bytes() == b"a,b\n1,2\n"
        if sys.platform != "win32":
            modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)]
            assert modes == [0o600, 0o700]
        remove_abandoned()  # as another process would, at its start
        assert path.exists()
    assert folders(state) == []


def test_it_goes_when_the_block_fails(state: Path) -> None:
    with pytest.raises(KeyboardInterrupt), spooled(io.BytesIO(b"a"), "-"):
        raise KeyboardInterrupt
    assert folders(state) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_after_a_kill_the_next_start_removes_it(state: Path) -> None:
    code = (
        "import sys, time\n"
        "from dualquery.data.spool import spooled\n"
        "with spooled(sys.stdin.buffer, '-'):\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(b"private")
        process.stdin.close()
        assert process.stdout.readline() == b"held\n"
        remove_abandoned()
        assert len(folders(state)) == 1
        process.send_signal(signal.SIGKILL)
    (folder,) = folders(state)
    assert (folder / "table").read_bytes() == b"private"
    remove_abandoned()
    assert folders(state) == []


class Broken(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        raise OSError(5, "Input/output error")


def test_a_stream_that_fails_is_bad_input(state: Path) -> None:
    with pytest.raises(BadInputError, match="-: cannot be kept"), spooled(Broken(), "-"):
        pass
    assert folders(state) == []
