"""Replaces a function of the project in this process, for a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PACKAGES = ("dualquery", "mwem")


@contextmanager
def replaced(owner: Any, name: str, by: Any) -> Iterator[None]:
    """Replace an attribute of a class or of a module, in this one place."""
    original = vars(owner)[name]
    setattr(owner, name, by)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def replaced_everywhere(module: Any, name: str, by: Any) -> Iterator[None]:
    """Replace a function of a module, also where other modules imported it by its name."""
    original = vars(module)[name]
    _put(name, original, by)
    try:
        yield
    finally:
        # Modules that were imported meanwhile have it, too.
        _put(name, by, original)


def _put(name: str, old: Any, new: Any) -> None:
    """Give every module of the project that has one object under a name another one."""
    for key, module in list(sys.modules.items()):
        if key.split(".")[0] in _PACKAGES and vars(module).get(name) is old:
            setattr(module, name, new)
