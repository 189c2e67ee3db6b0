"""What a shell offers when a name is half typed: names only, so nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def mechanisms(incomplete: str) -> list[str]:
    """Return the mechanisms that begin so."""
    from dualquery.mechanisms.registry import mechanism_names

    return _beginning(mechanism_names(), incomplete)


def solvers(incomplete: str) -> list[str]:
    """Return the solvers that begin so."""
    from solvers import available_solvers

    return _beginning([each.name for each in available_solvers()], incomplete)


def schemas(incomplete: str) -> list[str]:
    """Return built-in schemas and files that begin so."""
    from dualquery.data.builtin import SCHEMAS

    return [*_beginning(SCHEMAS, incomplete), *_files(incomplete)]


def tables(incomplete: str) -> list[str]:
    """Return built-in data sets, formats with their colon, and files that begin so."""
    from dualquery.data.builtin import DATASETS
    from dualquery.data.readers.formats import FORMATS

    form, colon, path = incomplete.partition(":")
    if colon and form in FORMATS:
        return [f"{form}:{found}" for found in _files(path)]
    names = [*DATASETS, *(f"{each}:" for each in FORMATS)]
    return [*_beginning(names, incomplete), *_files(incomplete)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """Return files and folders whose path begins so; a folder ends in a slash."""
    folder, _, start = incomplete.rpartition("/")
    try:
        found = sorted(Path(f"{folder}/" if folder else ".").iterdir())
    except OSError:
        return []
    near = [each for each in found if each.name.startswith(start)]
    hidden = start.startswith(".")
    return [
        (f"{folder}/" if folder else "") + each.name + ("/" if each.is_dir() else "")
        for each in near
        if hidden or not each.name.startswith(".")
    ]
