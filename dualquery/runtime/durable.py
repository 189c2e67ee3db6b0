"""What a run relies on of the disk: locks that end with their process, names that are synced."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO


def try_lock(file: IO[bytes]) -> bool:
    """Lock an open file for this process, without waiting; tell whether it is ours now.

    The lock ends when the file is closed, by the end of the process at the latest, however that
    comes. It is advisory: it keeps out only those who ask.

    Raises
    ------
    OSError
        If the file system has no locks.
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
