"""The process of an `solvers.isolated.Isolated` solver: problems come in, answers go out."""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from dataclasses import asdict
from importlib import import_module
from typing import IO, Any

from solvers.kernel_solver import load


def main(value: str, argument: str) -> None:
    """Answer until the standard input ends.

    Parameters
    ----------
    value
        ``module:attribute`` of a callable that returns a solver.
    argument
        What it is called with.
    """
    # What the solver prints must not get among the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        module, _, attribute = value.partition(":")
        solver = getattr(import_module(module), attribute)(argument)
        load(solver)  # compiled loops, which no time limit counts
        capabilities = [each.value for each in solver.capabilities]
        _send(out, ("ready", (str(solver.name), capabilities)))
    except Exception as fault:
        _send(out, ("error", f"{type(fault).__name__}: {fault}"))
        return
    problems: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, problems), daemon=True).start()
    while True:
        problem, options = problems.get()
        try:
            found = solver.solve(problem, **options)
            answer: tuple[str, Any] = ("solution", asdict(found))
        except Exception as fault:
            answer = ("error", f"{type(fault).__name__}: {fault}")
        _send(out, answer)


def _listen(stream: IO[bytes], problems: queue.SimpleQueue[Any]) -> None:
    """Pass on what comes in; end the process, whatever it does, when who started it is gone."""
    while len(head := stream.read(8)) == 8:
        size = int.from_bytes(head, "little")
        problems.put(pickle.loads(stream.read(size)))  # noqa: S301  # from our own program
    os._exit(0)


def _send(out: IO[bytes], message: object) -> None:
    data = pickle.dumps(message)
    out.write(len(data).to_bytes(8, "little") + data)
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
