"""Threads for the parts of one piece of work; none where there is nothing to share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Caller(Executor):
    """Does each part at once, in the thread that submits it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as fault:
            done.set_exception(fault)
        return done


def workers(threads: int, parts: int | None = None) -> Executor:
    """Return who does the parts: threads, no more than there are parts; one is the caller."""
    busy = threads if parts is None else max(min(threads, parts), 1)
    return _Caller() if busy == 1 else ThreadPoolExecutor(busy)
