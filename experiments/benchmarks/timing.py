"""How times are taken, and the bandwidth that bounds them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_STREAM_WORDS = 1 << 24


def fastest(function: Callable[[], T], repetitions: int) -> tuple[float, T]:
    """Return the seconds of the fastest of some calls, and the last result."""
    best = np.inf
    for _ in range(repetitions):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def stream_bandwidth(threads: int) -> float:
    """Return the bytes a second that streaming kernels move through memory.

    The best of reading, copying and adding arrays of 128 MiB, each thread its own, as in McCalpin's
    STREAM: bytes read plus bytes written.
    """
    arrays = [
        # Written, not zeroed: pages that nobody wrote are all one page, which the caches hold.
        tuple(np.ones(_STREAM_WORDS) for _ in range(3))
        for _ in range(threads)
    ]
    kernels: tuple[tuple[int, Callable[[tuple[NDArray[Any], ...]], Any]], ...] = (
        (1, lambda a: np.bitwise_or.reduce(a[0].view(np.uint64))),
        (2, lambda a: np.copyto(a[0], a[1])),
        (3, lambda a: np.add(a[1], a[2], out=a[0])),
    )
    best = 0.0
    with ThreadPoolExecutor(threads) as executor:
        for streams, kernel in kernels:
            seconds, _ = fastest(lambda k=kernel: list(executor.map(k, arrays)), 4)  # type: ignore[misc]
            best = max(best, streams * 8 * _STREAM_WORDS * threads / seconds)
    return best
