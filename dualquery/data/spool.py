"""A table that comes through a pipe, kept in a private file while it is read again and again.

The file is in a folder of its own below the user's state folder, which only the user may enter, and
goes when the block ends. What a killed process left goes at the next start: a lock tells its folder
from those in use, and ends with its process, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import state_folder, try_lock

_LOCK, _TABLE = "lock", "table"
_TRIES = 10


@contextlib.contextmanager
def spooled(stream: BinaryIO, label: str) -> Iterator[Path]:
    """Yield a file with what a stream holds; nobody else can read it, and it does not stay."""
    home = state_folder() / "spool"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_abandoned()
        folder, lock = _claimed(home)
    except OSError as fault:
        raise BadInputError(f"{label}: {home}: {fault.strerror}") from None
    try:
        path = folder / _TABLE
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
            with os.fdopen(handle, "wb") as copy:
                shutil.copyfileobj(stream, copy, 1 << 20)
        except OSError as fault:
            raise BadInputError(
                f"{label}: cannot be kept in {home} ({fault.strerror}); XDG_STATE_HOME names "
                "another place for it"
            ) from None
        yield path
    finally:
        lock.close()  # first, for systems that keep open files
        shutil.rmtree(folder, ignore_errors=True)


_BINARY = getattr(os, "O_BINARY", 0)


def remove_abandoned() -> None:
    """Remove what dead processes left; what cannot be removed now stays for the next start."""
    with contextlib.suppress(OSError, BadInputError):
        for folder in (state_folder() / "spool").iterdir():
            with contextlib.suppress(OSError):
                _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    try:
        lock = (folder / _LOCK).open("rb+")
    except FileNotFoundError:
        folder.rmdir()  # killed before it held anything
        return
    with lock:
        abandoned = try_lock(lock)
        if abandoned:
            (folder / _TABLE).unlink(missing_ok=True)
    if abandoned:
        shutil.rmtree(folder, ignore_errors=True)


def _claimed(home: Path) -> tuple[Path, IO[bytes]]:
    """Return a new folder, and the open file that holds its lock."""
    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(dir=home))  # for the user only
        with contextlib.suppress(FileNotFoundError):
            lock = (folder / _LOCK).open("xb")
            if try_lock(lock) and (folder / _LOCK).exists():
                return folder, lock
            lock.close()
    raise OSError(0, "other processes remove what is made there")
