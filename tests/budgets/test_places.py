"""Where budget files may be: how a network file system is told, and where the state folder is."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import pytest

from dualquery.budgets import places
from dualquery.budgets.budget_file import BudgetFile
from dualquery.budgets.places import require_local
from dualquery.runtime.durable import try_lock
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.state_folder import state_folder

LINUX = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
31 27 0:40 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
32 31 0:41 / /home/me/local\040disk rw - xfs /dev/vdb rw
33 27 0:42 / /mnt/far rw - fuse.sshfs me@far:/ rw
34 27 0:43 / /mnt/near rw - fuse.gocryptfs /dev/fuse rw
35 27 0:44 / /mnt/far rw - ext4 /dev/vdc rw
36 27 0:45 / /mnt/share rw - cifs //server/share rw
nonsense
"""


def check_place(folder: Path, kind: str | None) -> None:
    """Check that a folder is refused with the name of its file system, or not at all."""
    told = pytest.raises(BadInputError, match=f"network file system \\({kind}\\)")
    with told if kind else contextlib.nullcontext():
        require_local(folder, "it")


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/tmp/x", None),
        ("/home", "nfs4"),
        ("/home/me", "nfs4"),
        ("/homes", None),
        ("/home/me/local disk/a", None),
        ("/mnt/near/a", None),
        ("/mnt/far/a", None),  # mounted over by a local disk
        ("/mnt/share", "cifs"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths of POSIX")
def test_a_network_file_system_is_told_by_its_mount(tmp_path, monkeypatch, folder, kind) -> None:
    (tmp_path / "mounts").write_text(LINUX)
    monkeypatch.setattr(places, "_MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(sys, "platform", "linux")
    check_place(Path(folder), kind)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for the modules of Windows."""
    kernel = SimpleNamespace(GetDriveTypeW={"C:\\": 3, "Z:\\": 4}.get)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)


@pytest.mark.usefixtures("windows")
def test_network_folders_of_windows() -> None:
    for folder, kind in (
        (r"C:\Users\a", None),
        (r"Z:\data", "a network drive"),
        (r"\\server\share\data", "a share"),
    ):
        check_place(PureWindowsPath(folder), kind)  # type: ignore[arg-type]  # no Path of it here


@pytest.mark.usefixtures("windows")
def test_locks_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte of the file is locked without waiting; a lock of another process is no fault."""
    asked: list[tuple[int, int]] = []
    held = False

    def locking(descriptor: int, mode: int, size: int) -> None:
        asked.append((mode, size))
        if held:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    with (tmp_path / "lock").open("wb") as file:
        assert try_lock(file)
        held = True
        assert not try_lock(file)
    assert asked == [(2, 1), (2, 1)]


def test_budget_files_on_a_network_are_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(places, "_mounted_kind", lambda folder: "nfs4")
    with pytest.raises(BadInputError, match=r"network file system \(nfs4\)"):
        BudgetFile.create(tmp_path / "b.sqlite", epsilon=1.0, delta=0.0)
    assert not list(tmp_path.iterdir())


def test_a_system_that_says_nothing_is_taken_to_be_local(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(places, "_MOUNTS", tmp_path / "none")
    require_local(tmp_path, "it")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_STATE_HOME": "/s"}, "/s/dualquery"),
        ("darwin", {"XDG_STATE_HOME": "/s"}, "/s/dualquery"),
        ("linux", {"XDG_STATE_HOME": "relative"}, "HOME/.local/state/dualquery"),
        ("linux", {"LOCALAPPDATA": "/l"}, "HOME/.local/state/dualquery"),
        ("darwin", {}, "HOME/Library/Application Support/dualquery"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/dualquery"),
        ("win32", {}, "HOME/AppData/Local/dualquery"),
    ],
)
def test_the_state_folder(monkeypatch, tmp_path: Path, platform, variables, expected) -> None:
    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert state_folder() == Path(expected.replace("HOME", str(tmp_path)))


def test_without_a_home_the_user_is_told(monkeypatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(BadInputError, match="set XDG_STATE_HOME"):
        state_folder()
