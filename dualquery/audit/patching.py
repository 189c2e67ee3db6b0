"""Replaces one function of the project in this process, for a while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PACKAGES = ("dualquery", "mwem")


@contextmanager
def patched(owner: Any, name: str, by: Any) -> Iterator[None]:
    """Replace an attribute of a class, or a function of a module wherever it was imported to.

    Parameters
    ----------
    owner
        The class or the module that defines it.
    name
        Of the attribute.
    by
        What takes its place.
    """
    original = vars(owner)[name]
    places = [owner]
    if isinstance(owner, ModuleType):
        places += [
            module
            for key, module in list(sys.modules.items())
            if key.split(".")[0] in _PACKAGES
            and module is not owner
            and vars(module).get(name) is original
        ]
    for place in places:
        setattr(place, name, by)
    try:
        yield
    finally:
        for place in places:
            setattr(place, name, original)
