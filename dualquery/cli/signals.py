"""Signals that ask a program to end do what Ctrl-C does: what has begun is cleaned up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = ("SIGTERM", "SIGHUP", "SIGBREAK")
"""Signals of service managers, of terminals that close, and of Windows; where a system has them."""


@contextmanager
def ending_signals_interrupt() -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the block at the first signal that asks to end.

    Those that follow are ignored, so that they do not end the cleaning up. Signals that are
    ignored already stay so (``nohup``). Outside the main thread, which gets all signals, nothing is
    done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise KeyboardInterrupt

    before = {}
    for name in ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
