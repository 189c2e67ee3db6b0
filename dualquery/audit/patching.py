"""Replaces a function of the project in this process, for a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PACKAGES = ("dualquery", "mwem")


@contextmanager
def replaced(owner: Any, name: str, by: Any) -> Iterator[None]:
    """Replace a method of a class, or a function of a module wherever it was imported by name."""
    original = vars(owner)[name]
    _put(owner, name, original, by)
    try:
        yield
    finally:
        # Modules that were imported meanwhile have it, too.
        _put(owner, name, by, original)


def _put(owner: Any, name: str, old: Any, new: Any) -> None:
    setattr(owner, name, new)
    if isinstance(owner, ModuleType):
        for key, module in list(sys.modules.items()):
            if key.split(".")[0] in _PACKAGES and vars(module).get(name) is old:
                setattr(module, name, new)
