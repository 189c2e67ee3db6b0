"""Every path that opens a table, outside the room and `evaluate`, ends in a privacy statement.

The test finds who gets hold of a table: who imports a reader, an engine, or one of the jobs that
open a table themselves. Each of them is listed here with its end, and each end is looked at.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dualquery
from dualquery.capture import captured_rounds
from dualquery.cli.main import DONE, main
from dualquery.cli.schema import NOT_PRIVATE
from dualquery.privacy.statement import PrivacyStatement
from dualquery.releases.comparison import WARNING
from tests.callers import PACKAGES, ROOT, found, imports, unlisted
from tests.tables import SCHEMA, people

OPENERS = (
    "dualquery.data.opening",
    "dualquery.data.readers",
    "dualquery.rows.dataset",
    "dualquery.rows.engines",
    "dualquery.api",
    "dualquery.capture",
    "dualquery.synthesizer",
    "dualquery.releases.evaluation",
)
"""Modules that open tables, or do a job that does."""

EXPORTED = frozenset(
    {
        "dualquery.Engine", "dualquery.Synthesizer", "dualquery.evaluate", "dualquery.release",
        "dualquery.data.FORMATS", "dualquery.data.load", "dualquery.data.parse_source",
        "dualquery.data.source_of",
    }
)  # fmt: skip
"""The same under the names of the packages."""

HARMLESS = frozenset(
    {
        "dualquery.data.opening.FilePath",
        "dualquery.data.opening.is_file",
        "dualquery.data.readers.formats.is_public",
        "dualquery.rows.dataset.Dataset",
        "dualquery.rows.dataset.RecordsSource",
        "dualquery.api.expected_error",
    }
)
"""Types, texts and rules about names in these modules: nobody can read a row with them."""

PROTOCOLS = "dualquery.data.readers.source."
"""What a reader offers; classes without a body."""

_FRAMES = re.compile(
    r"(read|scan)_(csv|parquet|ipc|feather|ndjson|json|excel|ods|avro|delta|database|table|lines)\w*"
)
_ARRAYS = frozenset({"load", "loadtxt", "genfromtxt", "fromfile", "memmap"})
_NAME = re.compile(r"[\w.]+(:\w+)?")


def openings(tree: ast.AST) -> Iterator[str]:
    """Yield how a module gets hold of tables."""
    for line, name in imports(tree):
        if opens(name):
            yield f"line {line}: imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            array = isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy")
            if _FRAMES.fullmatch(node.attr) or (array and node.attr in _ARRAYS):
                yield f"line {node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Constant) and _names_opener(node.value):
            yield f"line {node.lineno}: {node.value!r}"


def opens(name: str) -> bool:
    """Return whether a full name opens tables, or is a module that does."""
    if name in HARMLESS or f"{name}.".startswith(PROTOCOLS):
        return False
    return name in {"dualquery", *EXPORTED} or f"{name}.".startswith(
        tuple(f"{each}." for each in OPENERS)
    )


def _names_opener(value: object) -> bool:
    """Return whether a text is the name of a module that opens tables, to import it by."""
    name = isinstance(value, str) and _NAME.fullmatch(value) is not None
    return name and value != "dualquery" and opens(str(value).replace(":", "."))


# --- the ends -------------------------------------------------------------------------------------


def of_release(tmp: Path, capsys) -> None:
    """The release, its folder, the terminal and the JSON say what is guaranteed, or that nothing
    is.
    """
    table = csv(tmp)
    for number, (words, private) in enumerate(((["--schema", schema(tmp)], True), ([], False))):
        out = tmp / f"release{number}"
        ask = ["release", table, "--queries", "20", "--way", "2", *words, "--out", str(out)]
        assert main([*ask, "--json"]) == DONE
        told = json.loads(capsys.readouterr().out)["privacy"]
        stored = json.loads((out / "release.json").read_text("utf-8"))["privacy"]
        assert told["private"] is stored["private"] is private
        assert main([*ask[:-1], str(out) + "-told"]) == DONE
        guarantee = PrivacyStatement.from_dict(stored).guarantee()
        assert guarantee[:40] in " ".join(capsys.readouterr().out.replace("│", " ").split())


def of_api(tmp: Path, capsys) -> None:
    """`dualquery.release` returns a statement, and `Synthesizer` warns."""
    made = dualquery.release(people(), schema=SCHEMA, queries=20, way=2, mechanism="gaussian")
    assert made.privacy.private
    assert made.privacy.guarantee().startswith("This release is (1, ")
    with pytest.warns(UserWarning, match="not private|no privacy"):
        drafted = dualquery.Synthesizer(queries=20, way=2).fit(people())
    assert not drafted.release.privacy.private


def of_capture(tmp: Path, capsys) -> None:
    """What was captured comes with the statement of its run."""
    options = {"rounds": 3, "samples": 4}
    found = captured_rounds(people(), [2], options=options, schema=SCHEMA, queries=20, way=2)
    assert found.problems
    assert found.privacy.private


def of_comparison(tmp: Path, capsys) -> None:
    """`compare-solvers` prints the guarantee, and states it beside its files."""
    ask = ["compare-solvers", csv(tmp), "--queries", "20", "--at", "2", "-o", "samples=4"]
    ask += ["--solvers", "local-search", "--solver-timeout", "0.2"]
    assert main([*ask, "--schema", schema(tmp), "--out", str(tmp / "stated")]) == DONE
    assert "This release" in capsys.readouterr().out
    assert json.loads((tmp / "stated/privacy.json").read_text("utf-8"))["private"]
    assert main([*ask, "--out", str(tmp / "unstated")]) == DONE
    files = {file.name for file in (tmp / "unstated").rglob("*") if file.is_file()}
    assert all(name.startswith("NOT-PRIVATE-") for name in files - {"privacy.json"})


def of_evaluation(tmp: Path, capsys) -> None:
    """`evaluate` says in print and JSON that it is not private."""
    out = tmp / "evaluated"
    ask = ["--schema", schema(tmp), "--queries", "20", "--way", "2", "--mechanism", "gaussian"]
    assert main(["release", csv(tmp), *ask, "--out", str(out)]) == DONE
    capsys.readouterr()
    assert main(["evaluate", str(out), csv(tmp)]) == DONE
    assert "NOT PRIVATE" in capsys.readouterr().out
    assert main(["evaluate", str(out), csv(tmp), "--json"]) == DONE
    assert json.loads(capsys.readouterr().out)["warning"] == WARNING
    assert "NOT PRIVATE" in WARNING


def of_draft(tmp: Path, capsys) -> None:
    """A draft says that it is not private, however quiet, and that it is not declared."""
    for number, words in enumerate(([], ["--quiet"])):
        out = tmp / f"draft{number}.json"
        assert main(["schema", csv(tmp), *words]) == DONE
        told = capsys.readouterr()
        assert NOT_PRIVATE in told.err
        assert json.loads(told.out)["declared"] is False
        assert main(["schema", csv(tmp), *words, "--out", str(out)]) == DONE
        assert NOT_PRIVATE in capsys.readouterr().err
        assert json.loads(out.read_text("utf-8"))["declared"] is False


STATED: dict[str, Callable[..., None]] = {
    "dualquery/api.py": of_api,
    "dualquery/synthesizer.py": of_api,
    "dualquery/capture.py": of_capture,
    "dualquery/releases/evaluation.py": of_evaluation,
    "dualquery/cli/release.py": of_release,
    "dualquery/cli/compare_solvers.py": of_comparison,
    "dualquery/cli/evaluate.py": of_evaluation,
    "dualquery/cli/schema.py": of_draft,
}
"""Paths with an end of their own, and the test that looks at it."""

HANDED_ON = {
    "dualquery/__init__.py": "names of the package: what they do is listed below their own files",
    "dualquery/data/": "readers: they hand rows to a caller, who is listed here",
    "dualquery/rows/": "engines: they hand rows to a caller, who is listed here",
    "dualquery/budgets/marks.py": "a keyed hash for the user's own budget file, to warn with",
}
"""Paths that give what they open to somebody listed here, or show it to nobody."""

NO_TABLE = {
    "dualquery/queries/generate/files.py": "reads a file of public queries",
    "dualquery/releases/folder.py": "reads the folder of a release, which is public",
    "dualquery/releases/kept.py": "reads the folder of a release, which is public",
    "dualquery/releases/stored.py": "reads the folder of a release, which is public",
    "dualquery/models/stored.py": "reads the model of a release, which is public",
}
"""Paths that use a reader for something else than a private table."""

EXEMPT = {"experiments/": "studies on public data sets; every page of results says not private"}

LISTED = {**STATED, **HANDED_ON, **NO_TABLE, **EXEMPT}


def csv(tmp: Path) -> str:
    path = tmp / "people.csv"
    people().write_csv(path)
    return str(path)


def schema(tmp: Path) -> str:
    from dualquery.data.schema.files import write_schema

    path = tmp / "schema.json"
    if not path.exists():
        write_schema(SCHEMA, path)
    return str(path)


def test_only_those_listed_open_tables() -> None:
    assert unlisted(found(openings), LISTED) == {}


@pytest.mark.parametrize("end", sorted({*STATED.values()}, key=lambda each: each.__name__))
def test_every_path_ends_in_a_statement(end, tmp_path: Path, capsys) -> None:
    end(tmp_path, capsys)


PLANTED = {
    "dualquery/cli/answer.py": "from dualquery.rows.dataset import load\n",
    "dualquery/estimates/peek.py": "import polars as pl\nrows = pl.scan_csv('people.csv')\n",
    "dualquery/releases_too.py": "MODULE = 'dualquery.data.readers.formats:source_of'\n",
    "mwem/peek.py": "import dualquery\ndualquery.release('people.csv')\n",
    "solvers/peek.py": "import numpy as np\nnp.loadtxt('people.csv')\n",
}


def test_a_path_that_is_not_listed_would_be_seen(tmp_path: Path) -> None:
    """In a copy of the packages; an entry that allows nothing is seen, too."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "*.gz")
        )
    for file, source in PLANTED.items():
        path = tmp_path / file
        old = path.read_text("utf-8") if path.exists() else ""
        path.write_text(old.replace("import typer\n", f"import typer\n{source}") or source, "utf-8")
    (tmp_path / "dualquery/capture.py").write_text('"""Opens nothing any more."""\n', "utf-8")
    assert set(unlisted(found(openings, tmp_path), LISTED)) == {*PLANTED, "dualquery/capture.py"}
