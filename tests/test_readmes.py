"""Every code block of every page works: commands are run or at least parsed, Python is executed."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer

from dualquery.cli import terminal
from dualquery.cli.main import app, main
from dualquery.data.readers.formats import FORMATS, GENERATORS
from dualquery.mechanisms.registry import BUILT_IN
from dualquery.privacy.accountants.choice import ACCOUNTANTS
from experiments.commands import MODULES
from experiments.commands import app as experiments_app
from solvers import available_solvers
from tests.pages import ROOT, code_blocks, commands, name_of, pages

PAGES = {name_of(page): page.read_text("utf-8") for page in pages()}
WITH_TESTS_OF_THEIR_OWN = {
    "dualquery/README.md": "tests/test_how_to_add.py",
    "dualquery/data/README.md": "tests/data/test_readme.py",
    "solvers/README.md": "tests/solvers/test_readme.py",
}
"""Pages all of whose blocks these tests use; their shell commands are run here, too."""

every_page = pytest.mark.parametrize("page", PAGES)


def survey(rows: int = 1200) -> pl.DataFrame:
    """Return the table that the pages speak of."""
    rng = np.random.default_rng(1)
    age = rng.integers(20, 100, rows)
    smokes = rng.random(rows) < 0.1 + 0.2 * (age < 50)
    sex = np.where(rng.random(rows) < 0.5, "Female", "Male")
    return pl.DataFrame({"age": age, "sex": sex, "smoker": np.where(smokes, "yes", "no")})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the files that the pages speak of, but for a schema."""
    monkeypatch.chdir(tmp_path)
    for variable in terminal.THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")
    monkeypatch.setattr("dualquery.cli.terminal.THREAD_VARIABLES", ())
    survey().write_csv("survey.csv")
    Path("instance.wcnf").write_text("h 1 2 0\n3 -1 0\n2 -2 0\n", encoding="utf-8")
    return tmp_path


def declare(schema: str) -> None:
    """Do what a user does in the editor."""
    draft = Path(schema).read_text("utf-8")
    assert '"declared": false' in draft
    declared = draft.replace('"declared": false', '"declared": true')
    Path(schema).write_text(declared, encoding="utf-8")


def parse(commands: typer.Typer, arguments: list[str]) -> None:
    """Parse a command with its options, or raise its usage error; what it would do is not done."""
    group = typer.main.get_command(commands)
    with group.make_context("program", arguments[:1], resilient_parsing=True) as context:
        name, command, _ = group.resolve_command(context, arguments[:1])
        command.make_context(name, arguments[1:], parent=context)


LONG = (
    "release --out my-release",
    "evaluate my-release",
    "compare-solvers",
    "budget plan --rows 30162 --e",
    "audit --quick",
)
"""Commands of minutes: parsed here, and run by the tests of their own."""


def carry_out(command: str) -> None:
    """Run a command of a page, or parse it where it needs data, a network or minutes."""
    words = shlex.split(command)
    program, arguments = words[0].removeprefix(".venv/bin/"), words[1:]
    if program == "$EDITOR":
        declare(*arguments)
    elif program == "dualquery":
        if " ".join(arguments).startswith(LONG):
            parse(app, arguments)
        else:
            assert main(arguments) == 0, command
    elif program == "python" and arguments[:2] == ["-m", "dualquery"]:
        assert main(arguments[2:]) == 0, command
    elif program == "python" and arguments[:2] == ["-m", "experiments"]:
        parse(experiments_app, arguments[2:])
    elif program == "python" and arguments[:2] == ["-m", "pytest"]:
        for path in (word for word in arguments[2:] if word.startswith("tests")):
            assert (ROOT / path).exists(), path
    else:
        known = ("python3 -m venv .venv", "pip install", ".ci/run", "ruff ", "mypy", "lint-imports")
        assert command.removeprefix(".venv/bin/").startswith(known), f"not known here: {command}"


@every_page
def test_blocks_have_a_language_that_is_tested(page: str) -> None:
    known = {"sh", "python", "toml", "text"}
    if page not in WITH_TESTS_OF_THEIR_OWN:
        assert {block.language for block in code_blocks(PAGES[page])} <= known


@every_page
def test_shell_and_python_blocks_work(page: str, folder: Path) -> None:
    blocks = code_blocks(PAGES[page])
    if page != "README.md" and any(block.language in ("sh", "python") for block in blocks):
        assert main(["schema", "survey.csv", "--out", "survey.json", "--quiet"]) == 0
        declare("survey.json")
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        if block.language == "sh":
            for command in commands(block):
                carry_out(command)
        elif block.language == "python" and page not in WITH_TESTS_OF_THEIR_OWN:
            exec(compile(block.text, page, "exec"), namespace)


@every_page
def test_toml_options_are_taken(page: str, folder: Path) -> None:
    if page in WITH_TESTS_OF_THEIR_OWN:
        return
    for block in code_blocks(PAGES[page]):
        if block.language == "toml":
            assert main(["schema", "survey.csv", "--out", "survey.json", "--quiet"]) == 0
            declare("survey.json")
            Path("options.toml").write_text(block.text, encoding="utf-8")
            assert main(["release", "survey.csv", "--config", "options.toml", "--out", "r"]) == 0


@every_page
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", found.read_text("utf-8"), re.MULTILINE)
            made = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in made, target


@every_page
def test_files_that_a_page_names_exist(page: str) -> None:
    text = PAGES[page]
    if page == "CHANGELOG.md":
        return
    new = {block.above.strip("`") for block in code_blocks(text)}
    for path in re.findall(r"`((?:dualquery|solvers|mwem|experiments|tests)/[\w./-]*)`", text):
        assert (ROOT / path).exists() or path in new, path


def test_the_first_page_is_short() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 150


@pytest.mark.slow
def test_the_first_command_does_as_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (first, *_) = (block for block in code_blocks(PAGES["README.md"]) if block.language == "sh")
    for command in commands(first):
        if command.startswith(".venv/bin/dualquery"):
            assert main(shlex.split(command)[1:]) == 0
    assert _table(capsys.readouterr().out).keys() == _table(PAGES["README.md"]).keys()


def _table(text: str) -> dict[str, tuple[float, float]]:
    """Return the lines of the table of errors."""
    rows = re.findall(r"^│ ([^│]+?) +│ ([\d.]+) +│ ([\d.]+) +│$", text, re.MULTILINE)
    assert rows
    return {name: (float(largest), float(mean)) for name, largest, mean in rows}


def _commands() -> set[str]:
    names = (
        command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        for command in app.registered_commands
    )
    return {f"dualquery {name}" for name in names}


NAMES: dict[str, Callable[[], set[str]]] = {
    "README.md": lambda: {*BUILT_IN},
    "dualquery/cli/README.md": _commands,
    "dualquery/data/README.md": lambda: {*FORMATS, *GENERATORS},
    "dualquery/privacy/README.md": lambda: {accountant.name for accountant in ACCOUNTANTS},
    "solvers/README.md": lambda: {info.name for info in available_solvers()},
    "experiments/README.md": lambda: {*MODULES, "benchmarks", "all"},
}


@pytest.mark.parametrize("page", NAMES)
def test_the_page_names_all_there_are(page: str) -> None:
    missing = {
        name
        for name in NAMES[page]()
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", PAGES[page])
    }
    assert missing == set()
