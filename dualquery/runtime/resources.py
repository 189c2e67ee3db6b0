"""What a run has: memory, with a clear refusal of what does not fit, threads, and versions."""

import contextlib
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import ParamSpec, TypeVar

from dualquery.runtime.errors import BadInputError, LackOfMemoryError

_MEMINFO = Path("/proc/meminfo")
_LIMIT = Path("/sys/fs/cgroup/memory.max")
_USED = Path("/sys/fs/cgroup/memory.current")
_OWN_SIZE = Path("/proc/self/statm")


def available_memory() -> int | None:
    """Return the bytes that this process can still get, elsewhere than on Linux all; or None."""
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _container_memory())
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _container_memory() -> int:
    """Return the bytes that the container's limit leaves; a huge number without a limit."""
    try:
        return max(0, int(_LIMIT.read_text()) - int(_USED.read_text()))
    except (OSError, ValueError):
        return sys.maxsize


def check_memory(needed: int, purpose: str, remedy: str) -> None:
    """Refuse what needs more bytes than there are; ``remedy`` says what the operator may do."""
    available = available_memory()
    if available is not None and needed > available:
        raise LackOfMemoryError(
            f"{purpose} needs {mebibytes(needed)} of memory and {mebibytes(available)} are "
            f"available; {remedy}"
        )


class _Space:
    """How much address space the blocks that run now may take together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._limit = 0
        self._before = (0, 0)

    def enter(self, more: int) -> None:
        """Begin a block that may take ``more`` bytes."""
        import resource

        with self._lock:
            if not self._blocks:
                self._before = resource.getrlimit(resource.RLIMIT_AS)
                self._limit = int(_OWN_SIZE.read_text().split()[0]) * resource.getpagesize()
            self._set(self._limit + more)
            self._limit += more
            self._blocks += 1

    def leave(self, more: int) -> None:
        """End it."""
        import resource

        with self._lock:
            self._blocks -= 1
            self._limit -= more
            if self._blocks:
                self._set(self._limit)
            else:
                resource.setrlimit(resource.RLIMIT_AS, self._before)

    def _set(self, limit: int) -> None:
        import resource

        soft, hard = self._before
        allowed = limit if soft == resource.RLIM_INFINITY else min(limit, soft)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))


_SPACE = _Space()


@contextlib.contextmanager
def limited_space(more: int) -> Iterator[None]:
    """Let the process take at most ``more`` bytes of address space in a block; Linux only."""
    try:
        _SPACE.enter(more)
    except (ImportError, OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        _SPACE.leave(more)


def mebibytes(count: int) -> str:
    """Return bytes as a text in MiB."""
    return f"{count / 2**20:,.0f} MiB"


def thread_count(threads: int | None) -> int:
    """Return the number of threads asked for, or one a core for None."""
    if threads is None:
        return os.cpu_count() or 1
    if threads < 1:
        raise BadInputError(f"--threads is {threads}; at least 1 is needed")
    return threads


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


__version__ = "0.2.0"

RELEVANT = ("numpy", "numba", "scipy", "polars", "opendp", "dp-accounting", "cryptography")


def versions() -> dict[str, str]:
    """Return name -> version of this package, of Python and of the libraries that matter."""
    own = {"dualquery": __version__, "python": platform.python_version()}
    return own | {name: _installed(name) for name in RELEVANT}


@cache
def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def differences(others: Mapping[str, str]) -> str:
    """Return what differs between other `versions` and these, such as ``numpy 2.3 (here 2.4)``."""
    here = versions()
    return ", ".join(
        f"{name} {others[name]} (here {here[name]})"
        for name in here
        if name in others and others[name] != here[name]
    )


def check_siblings() -> None:
    """Check that the sibling packages come from where this package comes from."""
    home = Path(__file__).resolve().parents[2]
    for name in ("solvers", "mwem", "experiments"):
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ImportError(f"the package {name!r} of dualquery is missing in {home}")
        found = Path(spec.origin).resolve().parent
        if found != home / name:
            raise ImportError(
                f"another package named {name!r} at {found} hides the one that belongs to dualquery"
            )
