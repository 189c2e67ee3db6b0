"""How compiled loops are declared: each compiles at its first call, for the types it declares."""

import logging
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from numba import njit
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

_log = logging.getLogger(__name__)


class _Waiting(CPUDispatcher):  # type: ignore[misc]
    """A loop that was not called yet; its first call makes it one of Numba's own."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        compile_now(self)
        return self(*arguments, **named)

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        """Compile before another loop that calls this one."""
        compile_now(self)
        return self.get_call_template(arguments, named)


def kernel(*declared: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare a loop that runs without the interpreter lock.

    Parameters
    ----------
    *declared
        Numba's signature, or several. Arguments are converted as Numba does it, so that no other
        signature is ever compiled. None for what is inlined into others only.
    **options
        Options of `numba.njit`.
    """

    def declare(function: Callable[..., Any]) -> Any:
        loop = njit(nogil=True, **options)(function)
        if declared and isinstance(loop, CPUDispatcher):  # not where NUMBA_DISABLE_JIT is set
            loop.declared = declared
            loop.__class__ = _Waiting
        return loop

    return declare


loop = partial(kernel, _nrt=False)
"""The same for what allocates no array, and so need not count references to any.

To take an array out of a state, a named tuple, counts a reference to it, by an atomic instruction,
wherever the compiler does not see that it is let go again. Loops that do so for every literal spent
up to nine tenths of their time on it. What would allocate does not compile.
"""


def compile_now(loop: Any) -> None:
    """Compile a loop that waits for its first call, or take it from the cache folder."""
    with global_compiler_lock:
        if not isinstance(loop, _Waiting):
            return
        try:
            from solvers.compiled_cache import store

            loop._cache = store(loop.py_func) or loop._cache
        except (ImportError, AttributeError) as fault:  # of a version of Numba yet to come
            _log.warning("compiled loops are not kept: %s", fault)
        for signature in loop.declared:
            loop.compile(signature)
        loop.disable_compile()
        loop.__class__ = CPUDispatcher


def compile_module(name: str) -> None:
    """Import a module and compile all of its loops that others call."""
    for attribute, value in vars(import_module(name)).items():
        if not attribute.startswith("_"):
            compile_now(value)
