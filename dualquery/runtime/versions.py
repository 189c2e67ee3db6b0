"""The versions that a result depends on."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

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
