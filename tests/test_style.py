"""Prose that a program can check; breaches that are there may only go down, [tool.house.style]."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORDED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["house"]["style"]
PACKAGES = ("dualquery", "solvers", "mwem", "experiments")
PHRASES = re.compile(
    r"\b(by how much|as much as|so many|l(ie|ies|ying|ay|ain) apart|st(and|ands|anding|ood) out"
    r"|tell(s|ing)? of|told (by|of)|may be off|(is|are) drawn (towards|together)"
    r"|leav(e|es|ing) less|what is left|of which|the other way)\b",
    re.IGNORECASE,
)
MOST_WORDS = 20

Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def trees(package: str) -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted((ROOT / package).rglob("*.py")):
        yield file.relative_to(ROOT), ast.parse(file.read_text("utf-8"))


def public(tree: ast.Module) -> Iterator[Named]:
    """Yield the public functions and classes of a module, and public methods of the classes."""
    for node in tree.body:
        if isinstance(node, Named) and not node.name.startswith("_"):
            yield node
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, Named) and not inner.name.startswith("_"):
                    yield inner


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s|\n\s*\n|:\s*\n", text.strip(), maxsplit=1)[0]


def long_sentences(package: str) -> list[str]:
    """Return the public names whose docstring begins with a long sentence."""
    return [
        f"{file}:{node.lineno}: {node.name}"
        for file, tree in trees(package)
        for node in public(tree)
        if len(first_sentence(ast.get_docstring(node) or "").split()) > MOST_WORDS
    ]


def phrases(package: str) -> list[str]:
    """Return the places of listed phrases, in code and in pages."""
    return [
        f"{file.relative_to(ROOT)}: {found[0]}"
        for file in sorted([*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.md")])
        for found in PHRASES.finditer(re.sub(r"\s+(#\s+)?", " ", file.read_text("utf-8")))
    ]


def repeated_classes(package: str) -> list[str]:
    """Return the names of public classes that are defined more than once."""
    names = Counter(
        node.name
        for _, tree in trees(package)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in names.items() if count > 1)


KINDS = {"long_sentences": long_sentences, "phrases": phrases, "repeated_classes": repeated_classes}


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("check", KINDS)
def test_no_more_than_before(check: str, package: str) -> None:
    """At the end of this file is how to print the numbers for pyproject.toml."""
    found = KINDS[check](package)
    assert len(found) <= RECORDED[check][package], "\n".join(found)


def test_the_checks_see_what_they_are_for() -> None:
    assert PHRASES.search("It says by how much the values lie apart.")
    assert not PHRASES.search("at most 3 of the values")
    assert first_sentence("Return it. Then more.") == "Return it."
    assert first_sentence("Return it: the whole\nof it, e.g. this one") != "Return it:"
    assert set(RECORDED) == set(KINDS)


if __name__ == "__main__":  # python -m tests.test_style
    for name, check in KINDS.items():
        counts = ", ".join(f"{package} = {len(check(package))}" for package in PACKAGES)
        print(f"{name} = {{ {counts} }}")
