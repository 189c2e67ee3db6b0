"""SCIP's reader in a process of its own: a file that makes it crash or hang is a malformed file.

One process serves all reads of this one; it is started at the first and again after a crash, and
ends with us, since its standard input does. Nothing but lengths and bytes goes to and fro: the
text, and back a JSON text with NumPy's arrays (no pickle).
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import IO

import numpy as np

from solvers.constraints import Rows
from solvers.errors import MalformedFileError
from solvers.formats.program import Program

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from solvers.formats.scip_process import serve; serve()"
)
_LEAST_SECONDS = 60.0
_SECONDS_PER_BYTE = 20e-6
"""SCIP reads a megabyte in less than a second; a machine may be busy."""

_SPACE = 4 << 30
_SPACE_PER_BYTE = 200
"""Address space that the process may take for a file, where the system has a limit for it."""

_LENGTH = 8
_ROWS = ("indptr", "attributes", "coefficients", "lower", "upper")


def read_program_apart(text: str, suffix: str, name: str) -> Program:
    """Read a 0-1 program (see :func:`solvers.formats.scip_reader.read_program`).

    Raises
    ------
    MalformedFileError
        As that function, and if SCIP crashes on the text or does not end.
    """
    request = json.dumps([text, suffix, name]).encode()
    with _one_at_a_time:
        answer = _process().ask(request, _LEAST_SECONDS + _SECONDS_PER_BYTE * len(request))
    if answer is None:
        raise MalformedFileError(f"{name} cannot be read: SCIP crashed on it, or did not end")
    fields, _, arrays = answer.partition(b"\n")
    said = json.loads(fields)
    if "fault" in said:
        raise MalformedFileError(said["fault"])
    with np.load(io.BytesIO(arrays), allow_pickle=False) as stored:
        return Program(
            names=tuple(said["names"]),
            objective=stored["objective"],
            constant=said["constant"],
            terms=np.zeros((0, 1), np.int32),
            weights=np.zeros(0),
            rows=Rows(*(stored[part] for part in _ROWS)),
            minimises=said["minimises"],
            attributes=said["attributes"],
        )


@dataclass
class _Process:
    """The reading process, as the one that asks sees it."""

    running: subprocess.Popen[bytes]
    owner: int
    """The process that started it: one forked from that must not share the pipes."""

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
        finally:
            if not answer:
                self.running.kill()
                self.running.wait()
        return answer[0] if answer else None


_one_at_a_time = threading.Lock()
_running: list[_Process] = []


def _process() -> _Process:
    """Return the reading process, started if there is none."""
    if _running and _running[0].owner == os.getpid() and _running[0].running.poll() is None:
        return _running[0]
    _running.clear()
    process = subprocess.Popen(  # noqa: S603  # this interpreter, by a list: no shell
        [sys.executable, "-c", _START, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Ctrl-C is for us; the process ends as soon as its input does.
        start_new_session=os.name == "posix",
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    atexit.register(process.kill)
    _running.append(_Process(process, os.getpid()))
    return _running[0]


def serve() -> None:
    """Answer requests until the standard input ends: what the reading process runs."""
    from solvers.formats.scip_reader import read_program

    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what SCIP prints must not mix with the answers
    while True:
        try:
            request = _read(requests)
        except EOFError:
            return
        text, suffix, name = json.loads(request)
        _limit_space(_SPACE + _SPACE_PER_BYTE * len(text))
        try:
            answer = _packed(read_program(text, suffix, name))
        except MalformedFileError as error:
            answer = json.dumps({"fault": str(error)}).encode()
        _write(answers, answer)


def _packed(program: Program) -> bytes:
    fields = {
        "names": program.names,
        "constant": program.constant,
        "minimises": program.minimises,
        "attributes": program.attributes,
    }
    arrays = io.BytesIO()
    rows = {part: getattr(program.rows, part) for part in _ROWS}
    np.savez(arrays, objective=program.objective, **rows)
    return json.dumps(fields).encode() + b"\n" + arrays.getvalue()


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
