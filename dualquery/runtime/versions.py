"""The versions that a result depends on, and that sibling packages are ours."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

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


SIBLINGS = ("solvers", "mwem", "experiments")


def check_siblings() -> None:
    """Check that the sibling packages come from where this package comes from."""
    home = Path(__file__).resolve().parents[2]
    for name in SIBLINGS:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ImportError(f"the package {name!r} of dualquery is missing in {home}")
        found = Path(spec.origin).resolve().parent
        if found != home / name:
            raise ImportError(
                f"another package named {name!r} at {found} hides the one that belongs to dualquery"
            )
