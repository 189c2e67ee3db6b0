"""Files that are whole or as before, locks that end with their process, the user's own folder.

Signals that ask a program to end wait for what is too dear to be cut off.
"""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from dualquery.runtime.errors import BadInputError
from solvers.user_folders import user_folder

HIDDEN = ".dualquery-"
"""Begins the names of folders in which files are written before they are whole."""


def require_new(path: Path) -> None:
    """Refuse a file that cannot be made, before any work is done for it."""
    if os.path.lexists(path):
        raise BadInputError(f"{path} exists already; delete it, or name another file")
    if not path.parent.is_dir():
        raise BadInputError(f"{path}: there is no folder {path.parent}; make it first")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a place to write a file at; when the block ends well, it replaces ``path`` at once."""
    target = Path(path)
    try:
        # A folder of its own beside the file, since a file made by mkstemp would have mode 0600.
        with tempfile.TemporaryDirectory(prefix=HIDDEN, dir=target.parent) as hidden:
            part = Path(hidden) / target.name
            yield part
            with part.open("rb+") as handle:
                os.fsync(handle.fileno())
            part.replace(target)
    except OSError as fault:
        raise BadInputError(f"{target}: cannot be written ({fault.strerror or fault})") from None


def try_lock(file: IO[bytes]) -> bool:
    """Lock an open file for this process, without waiting; tell whether it is ours now.

    The lock ends with the open file, however its process ends. It keeps out only those who ask.
    """
    file.seek(0)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can (Windows does it itself)."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def state_folder() -> Path:
    """Return the user's folder for state (see `user_folder`), which need not exist yet."""
    try:
        return user_folder("state")
    except RuntimeError:
        raise BadInputError(
            "the user has no home folder to keep state in; set XDG_STATE_HOME to a folder"
        ) from None


_ASKING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Where a system has them. ``kill -9`` asks nothing, and waits for nothing."""


@contextmanager
def finished_first() -> Iterator[None]:
    """Let a signal that asks to end wait for the end of the block; a second one does not wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            waiting.clear()
            before[number](number, frame)
        waiting.append((number, frame))

    asking = [getattr(signal, name) for name in _ASKING if hasattr(signal, name)]
    before = {number: now for number in asking if callable(now := signal.getsignal(number))}
    for number in before:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in waiting:
            before[number](number, frame)
