"""Who imports or calls what, by the syntax of the source: for tests that list all callers."""

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("dualquery", "mwem", "solvers", "experiments")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the full name of everything that is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports have full names"
            yield from ((node.lineno, f"{node.module}.{each.name}") for each in node.names)


parsed = functools.cache(ast.parse)


def found(look: Callable[[ast.AST], Iterable[str]], root: Path = ROOT) -> dict[str, list[str]]:
    """Return what a look finds in each file of the packages below ``root``."""
    places = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if lines := list(look(parsed(path.read_text(encoding="utf-8")))):
                places[path.relative_to(root).as_posix()] = lines
    return places


def unlisted(places: Mapping[str, list[str]], allowed: Iterable[str]) -> dict[str, list[str]]:
    """Return the files that no entry allows, and entries that allow nothing any more."""
    entries = tuple(allowed)
    extra = {path: lines for path, lines in places.items() if not path.startswith(entries)}
    idle = {entry: [] for entry in entries if not any(path.startswith(entry) for path in places)}
    return {**extra, **idle}
