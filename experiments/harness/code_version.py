"""The version of the code that a run depends on, so that a stored run is used only if it still is.

Comments, docstrings and formatting do not count, nor does code that only draws: a picture can be
improved without doing its runs again.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

_HOME = Path(__file__).resolve().parents[2]
_LIBRARIES = ("dualquery", "mwem", "solvers")
_OWN = "experiments"
_APART = (
    "dualquery/cli",
    "solvers/comparison/plots",
    "solvers/comparison/report",
    "solvers/comparison/summary",
)
"""Parts of the libraries on which no run depends."""


def code_version(function: Callable[..., Any]) -> str:
    """Return a digest of the libraries and of all definitions that a function uses.

    The function is of the top level of a module of this package; the digest is 16 hexadecimal
    digits.
    """
    total = hashlib.sha256(_libraries())
    for text in sorted(_definitions(Path(inspect.getfile(function)), function.__name__)):
        total.update(text.encode())
    return total.hexdigest()[:16]


@cache
def _libraries() -> bytes:
    total = hashlib.sha256()
    for name in _LIBRARIES:
        for file in sorted((_HOME / name).rglob("*.py")):
            place = file.relative_to(_HOME).as_posix()
            if not place.startswith(_APART):
                total.update(place.encode())
                total.update(ast.dump(_parsed(file)).encode())
    return total.digest()


def _definitions(file: Path, name: str) -> Iterator[str]:
    """Yield the definition of a name, and those it uses within this package, each once."""
    waiting, seen = [(file, name)], set()
    while waiting:
        file, name = waiting.pop()
        if (file, name) in seen:
            continue
        seen.add((file, name))
        own, imported = _names(file)
        if name in imported:
            waiting.append(imported[name])
        for node in own.get(name, ()):
            yield f"{file.relative_to(_HOME).as_posix()} {ast.dump(node)}"
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            waiting.extend((file, other) for other in used & (own.keys() | imported.keys()))


@cache
def _names(file: Path) -> tuple[dict[str, list[ast.stmt]], dict[str, tuple[Path, str]]]:
    """Return the definitions of a module, and the names it takes from others of this package."""
    own: dict[str, list[ast.stmt]] = {}
    imported: dict[str, tuple[Path, str]] = {}
    tree = _parsed(file)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for part in (p for target in targets for p in ast.walk(target)):
                if isinstance(part, ast.Name):
                    own.setdefault(part.id, []).append(node)
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and each.module and each.module.startswith(_OWN):
            place = _HOME.joinpath(*each.module.split(".")).with_suffix(".py")
            if place.is_file():
                imported |= {a.asname or a.name: (place, a.name) for a in each.names}
    return own, imported


@cache
def _parsed(file: Path) -> ast.Module:
    """Return a module's syntax without its docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        node.body = [  # type: ignore[attr-defined]
            each
            for each in body
            if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        ]
    return tree
