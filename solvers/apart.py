"""A library that reads files of strangers, in a process of its own.

A file that makes it crash, hang or fill the memory ends that process and not this one. One process
serves all reads of this one; it is started at the first and again after a crash, and ends with us,
since its standard input does. Nothing but lengths and bytes goes to and fro.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from solvers.apart import serve; serve(*sys.argv[2:])"
)
_LEAST_SECONDS = 60.0
_SECONDS_PER_BYTE = 20e-6
"""A megabyte is read in less than a second; a machine may be busy."""

_LENGTH = 8

Reader = Callable[[bytes], bytes]
"""Turns a request into an answer: in the other process."""


@dataclass
class Apart:
    """A reader in a process of its own.

    Parameters
    ----------
    module, function
        Where the `Reader` is found.
    space, space_per_byte
        Address space, in bytes, that the process may take: in all, and more for each byte of a
        request; where the system has a limit for it.
    """

    module: str
    function: str
    space: int = 4 << 30
    space_per_byte: int = 200
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)
    _running: _Process | None = None

    def ask(self, request: bytes) -> bytes | None:
        """Return the answer, or None if the process crashes or does not end."""
        seconds = _LEAST_SECONDS + _SECONDS_PER_BYTE * len(request)
        with self._one_at_a_time:
            process = self._process()
            answer = process.ask(request, seconds)
            if answer is None and process.served and not process.late:
                # What was read before may have harmed it: a crash counts in a fresh process only.
                answer = self._process().ask(request, seconds)
            return answer

    def _process(self) -> _Process:
        """Return the process, started if there is none."""
        running = self._running
        if running and running.owner == os.getpid() and running.running.poll() is None:
            return running
        words = [self.module, self.function, str(self.space), str(self.space_per_byte)]
        process = subprocess.Popen(  # noqa: S603  # this interpreter, by a list: no shell
            [sys.executable, "-c", _START, json.dumps(sys.path), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C is for us; the process ends as soon as its input does.
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        atexit.register(process.kill)
        self._running = _Process(process, os.getpid())
        return self._running


@dataclass
class _Process:
    """The reading process, as the one that asks sees it."""

    running: subprocess.Popen[bytes]
    owner: int
    """The process that started it: one forked from that must not share the pipes."""
    served: int = 0
    """Requests that it has answered."""
    late: bool = False
    """Whether it was not ready in time."""

    def ask(self, request: bytes, seconds: float) -> bytes | None:
        """Return the answer, or None if the process ends or is not ready in time."""
        answer: list[bytes] = []

        def exchange() -> None:
            with contextlib.suppress(OSError, ValueError, EOFError):
                _write(self.running.stdin, request)
                answer.append(_read(self.running.stdout))

        thread = threading.Thread(target=exchange, daemon=True)
        thread.start()
        try:
            thread.join(seconds)
            self.late = thread.is_alive()
            self.served += bool(answer)
        finally:
            if not answer:
                self.running.kill()
                self.running.wait()
        return answer[0] if answer else None


def serve(module: str, function: str, space: str, space_per_byte: str) -> None:
    """Answer requests until the standard input ends: what the reading process runs."""
    reader: Reader = getattr(importlib.import_module(module), function)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    while True:
        try:
            request = _read(requests)
        except EOFError:
            return
        _limit_space(int(space) + int(space_per_byte) * len(request))
        _write(answers, reader(request))


def _limit_space(limit: int) -> None:
    """Limit the address space, where the system has such a limit and allows it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))


def _write(stream: IO[bytes] | None, content: bytes) -> None:
    if stream is None:
        raise EOFError
    stream.write(len(content).to_bytes(_LENGTH, "little"))
    stream.write(content)
    stream.flush()


def _read(stream: IO[bytes] | None) -> bytes:
    """Return the next message; raise `EOFError` if there is none, or only a part of one."""
    if stream is None:
        raise EOFError
    head = stream.read(_LENGTH)
    size = int.from_bytes(head, "little")
    content = stream.read(size) if len(head) == _LENGTH else b""
    if len(head) < _LENGTH or len(content) < size:
        raise EOFError
    return content
