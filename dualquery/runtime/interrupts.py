"""Signals that ask a program to end wait for what is too dear to be cut off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Where a system has them. ``kill -9`` asks nothing, and waits for nothing."""


@contextmanager
def finished_first() -> Iterator[None]:
    """Let a signal that asks to end wait for the end of the block; a second one does not wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []

    def wait(number: int, frame: FrameType | None) -> None:
        if waiting:
            waiting.clear()
            before[number](number, frame)
        waiting.append((number, frame))

    before = {}
    for name in _ASKING:
        number = getattr(signal, name, None)
        handler = None if number is None else signal.getsignal(number)
        if number is not None and callable(handler):
            before[number] = handler
    for number in before:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number, frame in waiting:
            before[number](number, frame)
