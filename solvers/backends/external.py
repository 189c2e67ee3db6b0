"""Commands that may hang, crash or never stop printing, run under a deadline.

The command and whatever it starts are one process group (on Windows: one process tree); at the
deadline all of it is asked to stop, and shortly after made to.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_LONGEST_COMPLAINT = 2000  # characters of the standard error that are kept: the last ones


def run_command(
    command: Sequence[str],
    folder: Path,
    take_line: Callable[[str], None],
    *,
    stop: float,
    deadline: float,
    longest_line: int,
) -> tuple[int | None, str]:
    """Run a command (program and arguments, no shell) in a folder and pass on each line that it
    prints.

    At ``stop``, a value of ``time.perf_counter()``, it is asked to stop, and what it prints from
    then on is still passed on; at ``deadline`` it is killed. A line of more than ``longest_line``
    characters is passed on in pieces. Returns the exit status, negative for a signal, or None if
    the command had to be stopped; and the end of its standard error.

    Raises
    ------
    OSError
        If the command cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603  # the user's own solver, by a list: no shell
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        # A group of its own, so that its children can be stopped with it; but of our session, whose
        # share of the processor is then its, too.
        process_group=0 if os.name == "posix" else None,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    complaint = _Tail()
    readers = [
        _reader(process.stdout, take_line, longest_line),
        _reader(process.stderr, complaint.take, _LONGEST_COMPLAINT),
    ]
    try:
        if _wait(process, readers, stop):
            return process.returncode, complaint.text
        _signal_tree(process, gently=True)
        for reader in readers:  # unreaped, so that what stays of the group can be killed
            reader.join(max(deadline - time.perf_counter(), 0.0))
        return None, complaint.text
    finally:
        # Unreaped or still printing: something of the group is alive, so its number is still its.
        if process.returncode is None or any(reader.is_alive() for reader in readers):
            _signal_tree(process, gently=False)
        process.wait()
        for reader, stream in zip(readers, (process.stdout, process.stderr), strict=True):
            reader.join(timeout=0.5)
            # One that a stray child still holds open would block the closing.
            if stream is not None and not reader.is_alive():
                stream.close()


class _Tail:
    """Keeps the end of a text."""

    def __init__(self) -> None:
        self.text = ""

    def take(self, line: str) -> None:
        self.text = (self.text + line)[-_LONGEST_COMPLAINT:]


def _reader(stream: IO[str] | None, take: Callable[[str], None], longest: int) -> threading.Thread:
    """Start a thread that reads a stream to its end."""

    def read() -> None:
        while stream is not None and (line := stream.readline(longest)):
            take(line)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _wait(
    process: subprocess.Popen[str], readers: Sequence[threading.Thread], until: float
) -> bool:
    """Wait for the end of all output and of the process; tell whether both came in time."""
    for reader in readers:
        reader.join(max(until - time.perf_counter(), 0.0))
        if reader.is_alive():
            return False
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(until - time.perf_counter(), 0.0))
    return process.returncode is not None


def _signal_tree(process: subprocess.Popen[str], *, gently: bool) -> None:
    with suppress(OSError):
        if sys.platform == "win32":
            if gently:
                process.terminate()
            else:
                subprocess.run(  # noqa: S603  # a program of Windows, and a number
                    ["taskkill", "/F", "/T", "/PID", str(process.pid)],  # noqa: S607  # on every path
                    capture_output=True,
                    check=False,
                )
        else:
            os.killpg(process.pid, signal.SIGTERM if gently else signal.SIGKILL)
