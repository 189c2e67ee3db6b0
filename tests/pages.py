"""The Markdown pages of the tree, and the code blocks in them."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("dualquery", "solvers", "mwem", "experiments")


def pages() -> list[Path]:
    """Return every page that a reader of the repository meets."""
    inner = (page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))
    return sorted([*ROOT.glob("*.md"), *inner])


def name_of(page: Path) -> str:
    """Return a page's path from the root."""
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block: its language, its text, and the last line of prose above it."""

    language: str
    text: str
    above: str


def code_blocks(text: str) -> list[CodeBlock]:
    """Return the code blocks of a page in their order."""
    found = []
    above, end = "", 0
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        prose = text[end : match.start()].strip()
        above, end = prose.splitlines()[-1] if prose else "", match.end()
        found.append(CodeBlock(match[1], match[2], above))
    return found


def commands(block: CodeBlock) -> list[str]:
    """Return the commands of a shell block, comments left out."""
    lines = (line.split("  #")[0].strip() for line in block.text.splitlines())
    return [command for line in lines if line for command in line.split(" && ")]
