"""A guard for the generic names of the sibling packages: ours must be the ones that are found."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

SIBLINGS = ("solvers", "mwem", "experiments")


def check_siblings() -> None:
    """Check that the sibling packages come from where this package comes from.

    Raises
    ------
    ImportError
        If another package hides one of ours, or one is missing.
    """
    home = Path(__file__).resolve().parents[2]
    for name in SIBLINGS:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ImportError(
                f"the package {name!r} that belongs to dualquery is missing in {home}"
            )
        found = Path(spec.origin).resolve().parent
        if found != home / name:
            raise ImportError(
                f"another package named {name!r} at {found} hides the one that belongs to dualquery"
            )
