"""Run the command line in process."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dualquery as package
from dualquery.cli import terminal
from dualquery.cli.main import main
from tests.tables import SCHEMA, people, write_people


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout: anything else there fails."""
        return json.loads(self.out)

    @property
    def last(self) -> str:
        """The last line on stderr."""
        return self.err.rstrip("\n").splitlines()[-1]

    @property
    def ok(self) -> "Done":
        """What was asked for, which was done: anything else fails."""
        assert self.code == 0, self.err
        return self

    @property
    def refusal(self) -> str:
        """The last line on stderr, where all that is said is one error: anything else fails."""
        assert (self.code, self.out) == (2, ""), self.err
        assert "Traceback" not in self.err
        assert self.err.count("error: ") == 1
        assert self.last.startswith("error: ")
        return self.last


Run = Callable[..., Done]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, in which a command must leave nothing but what it is asked for."""
    (folder := tmp_path / "here").mkdir()
    monkeypatch.chdir(folder)
    # The variables are read at import only; here they would leak into other tests.
    for variable in terminal.THREAD_VARIABLES:
        monkeypatch.setenv(variable, "1")
    monkeypatch.setattr("dualquery.cli.terminal.THREAD_VARIABLES", ())
    return folder


@pytest.fixture
def dualquery(capsys: pytest.CaptureFixture[str], here: Path) -> Run:

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code, captured = main([str(argument) for argument in arguments]), capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A table and its schema, outside the working folder."""
    return write_people(tmp_path)


@pytest.fixture
def asked(files: tuple[Path, Path]) -> list[str]:
    """Arguments of a release of 2-way queries about the table."""
    return ["release", str(files[0]), "--schema", str(files[1]), "--way", "2"]


@pytest.fixture
def small(asked: list[str]) -> list[str]:
    return [*asked, "--queries", "30", "--rounds", "6", "--samples", "5", "--accountant", "zcdp"]


@pytest.fixture(scope="session")
def a_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = {"rounds": 6, "samples": 5}
    made = package.release(people(), schema=SCHEMA, queries=30, way=2, options=options, seed=1)
    return made.save(tmp_path_factory.mktemp("release") / "out")


@pytest.fixture
def released(a_release: Path, tmp_path: Path) -> Path:
    """A folder of a seeded game of six rounds."""
    return shutil.copytree(a_release, tmp_path / "out")
