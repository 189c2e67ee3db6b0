"""Where compiled loops are kept: in the user's cache folder, named by a digest of the sources.

Numba would keep them in the package's folder, which they outlive, or name them by its path, so that
a copy compiles again; and it does not see that another file changed whose loops it has inlined.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

from solvers.user_folders import user_folder

_log = logging.getLogger(__name__)


@cache
def kept_in() -> Path | None:
    """Return the folder, or None, with one warning, if nothing can be kept there.

    It is `NUMBA_CACHE_DIR`, where that is set, or in the user's cache folder.
    """
    try:
        package = version("dualquery")
    except PackageNotFoundError:
        package = "checkout"
    try:
        parent = Path(numba.config.CACHE_DIR or user_folder("cache") / "kernels")
        folder = parent / f"{package}-numba-{numba.__version__}"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):
        _cannot_keep()
        return None


@cache
def digest(module: str) -> str | None:
    """Hash the sources of a module and of those whose loops or named tuples it uses.

    None if one has no file, as in a notebook.
    """
    names = [module]
    for name in names:  # which grows
        for value in vars(sys.modules[name]).values():
            is_tuple = isinstance(value, type) and issubclass(value, tuple)
            if is_tuple or isinstance(value, Dispatcher | _Intrinsic):
                names += {value.__module__} - {*names, "builtins"}
    files = [getattr(sys.modules[name], "__file__", None) for name in sorted(names)]
    if not all(file and Path(file).is_file() for file in files):
        return None
    texts = [hashlib.sha256(Path(str(file)).read_bytes()).digest() for file in files]
    return hashlib.sha256(b"".join(texts) + module.encode()).hexdigest()[:24]


def store(function: Callable[..., Any]) -> FunctionCache | None:
    """Return where the compiled code of a function is kept, or None where nothing can be."""
    return _Store(function) if kept_in() and digest(function.__module__) else None


class _Place:
    """What Numba asks for the place of a function's compiled code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._digest = digest(function.__module__)

    @classmethod
    def from_function(cls, function: Callable[..., Any], _: str) -> _Place:
        return cls(function)

    def ensure_cache_path(self) -> None:
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(kept_in())

    def get_source_stamp(self) -> str | None:
        return self._digest

    get_disambiguator = get_source_stamp


class _Files(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Place,)


class _Store(FunctionCache):  # type: ignore[misc]
    """Numba's store, in which a file that cannot be read or written does not end a run."""

    _impl_class = _Files

    def load_overload(self, signature: Any, target: Any) -> Any:
        try:
            return super().load_overload(signature, target)
        except Exception:  # of pickle, whatever a damaged file makes it do
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            super().save_overload(signature, data)
        except OSError:
            _cannot_keep()


@cache
def _cannot_keep() -> None:
    """Say it once a process."""
    _log.warning(
        "the cache folder cannot be written, so every run compiles its loops anew; set "
        "NUMBA_CACHE_DIR to a folder that can"
    )
