"""What Windows does otherwise, with stand-ins for its own modules: shares, drives, locks."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import pytest

from dualquery.budgets.places import require_local
from dualquery.runtime.durable import try_lock
from dualquery.runtime.errors import BadInputError


@pytest.fixture(autouse=True)
def _windows(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"C:\\": 3, "Z:\\": 4}
    kernel = SimpleNamespace(GetDriveTypeW=lambda anchor: kinds[anchor])
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        (r"C:\Users\a", None),
        (r"Z:\data", "a network drive"),
        (r"\\server\share\data", "a share"),
    ],
)
def test_network_folders_of_windows(folder: str, kind: str | None) -> None:
    place: Path = PureWindowsPath(folder)  # type: ignore[assignment]  # no Path of Windows here
    told = pytest.raises(BadInputError, match=f"network file system \\({kind}\\)")
    with told if kind else contextlib.nullcontext():
        require_local(place, "b.budget")


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
