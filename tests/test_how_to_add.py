"""The examples of `dualquery/README.md`: built in a copy of the packages, run, and counted."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.pages import FOLDERS, ROOT, code_blocks
from tests.test_readmes import survey

TEXT = (ROOT / "dualquery/README.md").read_text("utf-8")
MOST_FILES = {
    "A solver": 2,
    "A mechanism on existing measurements": 2,
    "A format": 2,
    "An accountant": 2,
    "A query family": 2,
}


@dataclass
class Example:
    """A part to add: new files, changes to others, and a script that uses it."""

    title: str
    said_files: int
    new: dict[str, str] = field(default_factory=dict)
    changes: list[tuple[str, str]] = field(default_factory=list)
    script: str = ""

    @property
    def files(self) -> set[str]:
        """Every file that is touched."""
        return {*self.new, *(path for path, _ in self.changes)}


def examples() -> Iterator[Example]:
    """Yield the examples in the order of the page."""
    for section in TEXT.split("\n### ")[1:]:
        title, said = re.match(r"(.*) \((\d+) files\)\n", section).groups()  # type: ignore[union-attr]
        example, path = Example(title, int(said)), ""
        for block in code_blocks(section):
            path = block.above.strip("`") if block.above else path
            if block.language == "diff":
                example.changes.append((path, block.text))
            elif path == "Try it:":
                example.script += block.text
            else:
                example.new[path] = block.text
        yield example


def changed(text: str, change: str) -> str:
    """Return a text with the lines that a change adds; its other lines say where."""
    old = "".join(line[1:] for line in change.splitlines(True) if not line.startswith("+"))
    assert text.count(old) == 1, f"not found once: {old}"
    return text.replace(old, "".join(line[1:] for line in change.splitlines(True)))


def link(source: str, target: str) -> None:
    """Link a file, or copy it to another device."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with all examples added."""
    root = tmp_path_factory.mktemp("copy")
    # Other workers may be writing caches: files under their passing names are not there for long.
    passing = shutil.ignore_patterns("*.tmp.*", "*.pyc.*")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, root / name, copy_function=link, ignore=passing)
    for example in examples():
        for path, text in example.new.items():
            assert not (root / path).exists(), path
            (root / path).write_text(text, encoding="utf-8")
        for path, change in example.changes:
            text = changed((root / path).read_text("utf-8"), change)
            (root / path).unlink()  # it may be a link to the original
            (root / path).write_text(text, encoding="utf-8")
    return root


def test_the_examples_are_those_promised_and_touch_few_files() -> None:
    found = {example.title: example for example in examples()}
    assert found.keys() == MOST_FILES.keys()
    for title, example in found.items():
        assert len(example.files) == example.said_files <= MOST_FILES[title]
        assert example.new
        assert example.script


def test_they_work(copy: Path, tmp_path: Path) -> None:
    survey().write_csv(tmp_path / "survey.csv")
    lines = [
        "from dualquery.cli.main import main",
        "import pathlib",
        "assert main(['schema', 'survey.csv', '--out', 'survey.json', '-q']) == 0",
        "draft = pathlib.Path('survey.json').read_text()",
        "draft = draft.replace('\"declared\": false', '\"declared\": true')",
        "pathlib.Path('survey.json').write_text(draft)",
        "import dualquery",
        f"assert dualquery.__file__.startswith({str(copy)!r})",
        *(f"exec({example.script!r}, {{}})" for example in examples()),
    ]
    (tmp_path / "try.py").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "try.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_a_change_is_applied_where_its_lines_are() -> None:
    assert changed("a\nb\nc\n", " b\n+d\n") == "a\nb\nd\nc\n"
    with pytest.raises(AssertionError, match="not found once"):
        changed("a\n", " b\n+d\n")
