"""A solver in a process of its own: what crashes or hangs there takes nothing else with it."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from solvers.errors import SolverError, SolverUnavailableError
from solvers.problem import BestResponse
from solvers.protocol import Capability
from solvers.solution import Solution

LOADING_SECONDS = 120.0
PATIENCE_SECONDS = 5.0
"""How far past its limit a solver may go before its process is ended."""

_LENGTH = 8
_LARGEST_ANSWER = 1 << 30


class Isolated:
    """A solver by its entry point, in a process that is started again when it dies.

    Parameters
    ----------
    value
        ``module:attribute``, as an entry point has it.
    argument
        The text after the colon of ``name:argument``.

    Raises
    ------
    SolverUnavailableError
        If it cannot be loaded.
    """

    def __init__(self, value: str, argument: str) -> None:
        self._value, self._argument = value, argument
        self._name = value
        self._capabilities: frozenset[Capability] = frozenset()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._start()

    @property
    def name(self) -> str:
        """Name that the solver gives itself."""
        return self._name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the solver says that it supports."""
        return self._capabilities

    def solve(
        self,
        problem: BestResponse,
        *,
        time_limit: float = 20.0,
        threads: int = 1,
        seed: int = 0,
        hint: NDArray[np.uint8] | None = None,
        default: NDArray[np.uint8] | None = None,
    ) -> Solution:
        """Return what the solver answers, unjudged: see :meth:`solvers.protocol.Solver.solve`.

        Raises
        ------
        SolverError
            If it raised, died, or did not come back in time; its process is ended then.
        """
        if self._process is None:
            self._start()
        options = {
            "time_limit": time_limit, "threads": threads, "seed": seed, "hint": hint,
            "default": default,
        }  # fmt: skip
        try:
            self._send((problem, options))
            kind, answer = self._receive(time_limit + PATIENCE_SECONDS)
        except BaseException:  # its answer may come late, to another problem
            self.close()
            raise
        if kind != "solution":
            raise SolverError(str(answer))
        return Solution(**answer)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __del__(self) -> None:
        self.close()

    def _start(self) -> None:
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
        self._process = subprocess.Popen(  # noqa: S603  # our own module, by a list: no shell
            [sys.executable, "-m", "solvers.worker", self._value, self._argument],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
            # Ctrl-C at the terminal is for the program, which ends this process itself.
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._answers = queue.SimpleQueue()
        assert self._process.stdout is not None
        threading.Thread(
            target=_listen, args=(self._process.stdout, self._answers), daemon=True
        ).start()
        try:
            kind, answer = self._receive(LOADING_SECONDS)
        except SolverError:
            self.close()
            raise
        if kind != "ready":
            self.close()
            raise SolverUnavailableError(f"solver {self._value} cannot be loaded: {answer}")
        name, capabilities = answer
        self._name = str(name)
        known = {each.value: each for each in Capability}
        self._capabilities = frozenset(known[each] for each in capabilities if each in known)

    def _send(self, message: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        data = pickle.dumps(message)
        try:
            self._process.stdin.write(len(data).to_bytes(_LENGTH, "little") + data)
            self._process.stdin.flush()
        except OSError as error:
            raise SolverError(f"its process has died: {error}") from error

    def _receive(self, seconds: float) -> tuple[str, Any]:
        try:
            answer = self._answers.get(timeout=min(seconds, threading.TIMEOUT_MAX))
        except queue.Empty:
            raise SolverError(
                f"it did not come back within {PATIENCE_SECONDS:g} seconds of its limit"
            ) from None
        if answer is None:
            assert self._process is not None
            raise SolverError(f"its process died, with status {self._process.wait()}")
        kind, content = answer
        return str(kind), content


def _listen(stream: IO[bytes], answers: queue.SimpleQueue[Any]) -> None:
    """Put every message of a stream into a queue, and None at its end."""
    try:
        while len(head := stream.read(_LENGTH)) == _LENGTH:
            length = int.from_bytes(head, "little")
            if length > _LARGEST_ANSWER:
                break
            # The process runs the solver's own code with our rights: its pickles add no danger.
            answers.put(pickle.loads(stream.read(length)))  # noqa: S301  # see above
    except Exception as fault:
        answers.put(("error", f"its answer cannot be read: {fault}"))
    finally:
        answers.put(None)
        stream.close()
