"""A process of its own for what may crash, hang or fill the memory: readers, plug-ins, comparisons.

Nothing but lengths and bytes goes to and fro. The process is started at the first request, and
again after a crash; it ends with the one that started it, since its standard input does.
"""

import contextlib
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from solvers.errors import SolverError

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from solvers.child import serve; serve(*sys.argv[2:])"
)
_LEAST_SECONDS, _SECONDS_PER_BYTE = 60.0, 20e-6  # a megabyte takes less than a second
_LENGTH, _LARGEST_MESSAGE = 8, 1 << 32

Answering = Callable[[bytes], bytes]
"""Turns a request into an answer: in the other process."""


class ChildError(SolverError):
    """The process died, or did not answer in time (``late``); it is ended then."""

    def __init__(self, message: str = "", *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


@dataclass(eq=False)
class Child:
    """A function (`Answering`, in a module) in a process of this interpreter.

    It may take ``space`` bytes of address space in all (0 for no limit), and ``space_per_byte``
    more for each byte of a request, where the system has a limit for it. What a quiet one writes to
    standard error is thrown away.
    """

    module: str
    function: str
    space: int = 0
    space_per_byte: int = 0
    quiet: bool = False
    served: int = field(default=0, init=False)  # requests that the running process has answered
    _running: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _owner: int = field(default=0, init=False)
    """The process that started it: one forked from that must not share the pipes."""
    _end: Callable[[], object] = field(default=lambda: None, init=False)

    def ask(self, request: bytes, seconds: float) -> bytes:
        """Return the answer to a request.

        Raises
        ------
        ChildError
            If the process dies, or does not answer within the seconds.
        """
        process = self._process()
        answer: list[bytes] = []

        def exchange() -> None:
            with contextlib.suppress(OSError, ValueError, EOFError):
                _write(process.stdin, request)
                answer.append(_read(process.stdout))

        thread = threading.Thread(target=exchange, daemon=True)
        thread.start()
        try:
            thread.join(min(seconds, threading.TIMEOUT_MAX))
            late = thread.is_alive()
        finally:
            if not answer:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.0 if thread.is_alive() else 1.0)  # for its own status
                self.close()
        if answer:
            self.served += 1
            return answer[0]
        if late:
            raise ChildError(f"it did not answer within {seconds:.3g} seconds", late=True)
        raise ChildError(f"its process died, with status {process.returncode}")

    def close(self) -> None:
        """End the process, if there is one."""
        self._end()
        self._running, self.served = None, 0

    def _process(self) -> subprocess.Popen[bytes]:
        """Return the process, started if there is none."""
        running = self._running
        if running and self._owner == os.getpid() and running.poll() is None:
            return running
        words = [self.module, self.function, str(self.space), str(self.space_per_byte)]
        paths = [path or os.getcwd() for path in sys.path]  # noqa: PTH109
        process = subprocess.Popen(  # noqa: S603  # this interpreter, by a list: no shell
            [sys.executable, "-c", _START, json.dumps(paths), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if self.quiet else None,
            # Ctrl-C is for us; the process ends as soon as its input does.
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._running, self._owner, self.served = process, os.getpid(), 0
        self._end = weakref.finalize(self, _kill, process, self._owner)
        return process


@dataclass(eq=False)
class ChildReader(Child):
    """A library that reads untrusted files, in a process with a limit of memory for all reads."""

    space: int = 4 << 30
    space_per_byte: int = 200
    quiet: bool = True
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, init=False)

    def read(self, request: bytes) -> bytes | None:
        """Return the answer, or None if the process crashes or does not end."""
        seconds = _LEAST_SECONDS + _SECONDS_PER_BYTE * len(request)
        with self._one_at_a_time:
            used = self.served > 0
            try:
                return self.ask(request, seconds)
            except ChildError as fault:
                if fault.late or not used:
                    return None
            # What was read before may have harmed it: a crash counts in a fresh process only.
            with contextlib.suppress(ChildError):
                return self.ask(request, seconds)
            return None


def _kill(process: subprocess.Popen[bytes], owner: int) -> None:
    if owner == os.getpid():
        if hasattr(os, "killpg") and process.poll() is None:  # what it started, too
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def serve(module: str, function: str, space: str, space_per_byte: str) -> None:
    """Answer requests until the standard input ends: what the other process runs."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    answering: Answering = getattr(importlib.import_module(module), function)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        request = requests.get()
        if int(space):
            _limit_space(int(space) + int(space_per_byte) * len(request))
        _write(answers, answering(request))


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    """Pass on what comes in; end the process, whatever it does, when its owner is gone."""
    try:
        while True:
            requests.put(_read(sys.stdin.buffer))
    finally:
        os._exit(0)


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
    if len(head) < _LENGTH or size > _LARGEST_MESSAGE:
        raise EOFError
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
