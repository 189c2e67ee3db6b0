"""The machine's memory and threads, and a clear refusal of what does not fit."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dualquery.runtime.errors import BadInputError, LackOfMemoryError

_MEMINFO = Path("/proc/meminfo")
_LIMIT = Path("/sys/fs/cgroup/memory.max")
_USED = Path("/sys/fs/cgroup/memory.current")


def available_memory() -> int | None:
    """Return the bytes that this process can still get, or None where no one says.

    On Linux what the kernel takes to be available, within the container's limit; on Windows the
    free physical memory; elsewhere all physical memory.
    """
    if sys.platform == "win32":
        return _windows_memory()
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _container_memory())
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _container_memory() -> int:
    """Return the bytes that the container's limit leaves; a huge number without a limit."""
    try:
        return max(0, int(_LIMIT.read_text()) - int(_USED.read_text()))
    except (OSError, ValueError):
        return sys.maxsize


def _windows_memory() -> int | None:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            ("total", ctypes.c_ulonglong),
            ("available", ctypes.c_ulonglong),
            ("rest", ctypes.c_ulonglong * 5),
        )

    status = Status(length=ctypes.sizeof(Status))
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]  # on Windows only
    return status.available if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else None


def check_memory(needed: int, purpose: str, remedy: str) -> None:
    """Refuse what cannot fit, before it starts.

    Parameters
    ----------
    needed
        Bytes.
    purpose, remedy
        For the message: what needs them, and what the operator may do.

    Raises
    ------
    LackOfMemoryError
        If fewer bytes are available.
    """
    available = available_memory()
    if available is not None and needed > available:
        raise LackOfMemoryError(
            f"{purpose} needs {mebibytes(needed)} of memory and {mebibytes(available)} are "
            f"available; {remedy}"
        )


def mebibytes(count: int) -> str:
    """Return bytes as a text in MiB."""
    return f"{count / 2**20:,.0f} MiB"


def thread_count(threads: int | None) -> int:
    """Return the number of threads asked for, or one a core for None.

    Raises
    ------
    BadInputError
        If it is below 1.
    """
    if threads is None:
        return os.cpu_count() or 1
    if threads < 1:
        raise BadInputError(f"--threads is {threads}; at least 1 is needed")
    return threads
