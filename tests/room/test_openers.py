"""Every path that opens a table ends in a privacy statement (who opens one: `test_callers.py`)."""

import json
import shutil
from pathlib import Path

import pytest

import dualquery
from dualquery.cli.commands.compare_solvers import released_with_problems
from dualquery.cli.commands.schema import NOT_PRIVATE
from dualquery.cli.main import DONE, main
from dualquery.privacy.guarantee import PrivacyStatement
from dualquery.releases.compare.evaluation import WARNING
from dualquery.releases.make.schema_learning import schema_of_table
from tests.callers import PACKAGES, ROOT, found, unlisted
from tests.room.test_callers import STATED, UNSTATED, openings
from tests.tables import SCHEMA, people, write_people


def test_every_command_says_what_is_guaranteed_or_that_nothing_is(tmp_path: Path, capsys) -> None:
    """In its JSON, in its files and on the terminal, however quiet."""
    path, schema = write_people(tmp_path)
    table, workload = str(path), ["--queries", "20", "--schema", str(schema)]

    def told(*words: str) -> str:
        assert main([*words]) == DONE
        shown = capsys.readouterr()
        return " ".join(f"{shown.out} {shown.err}".replace("│", " ").split())

    for private, words in ((True, workload), (False, ["--queries", "20", "--schema-from-data"])):
        out = tmp_path / f"release-{private}"
        plain = ["--way", "2", "--mechanism", "gaussian", "--out", str(out)]
        said = told("release", table, *words, *plain)
        stored = json.loads((out / "release.json").read_text("utf-8"))["privacy"]
        assert stored["private"] is private
        assert PrivacyStatement.from_dict(stored).guarantee()[:40] in said
    assert WARNING in told("evaluate", str(out), table, "--json")
    assert "NOT PRIVATE" in told("evaluate", str(out), table)
    page = tmp_path / "page.html"
    assert "NOT PRIVATE" in told("report", str(out), "--out", str(page), "--with", table)
    assert "NOT PRIVATE" in page.read_text("utf-8")
    for quiet in ([], ["--quiet"]):
        said = told("schema", table, *quiet)
        assert NOT_PRIVATE in said
        assert '"declared": false' in said
    solvers = ["--solvers", "local-search", "--solver-timeout", "0.2", "--at", "2"]
    solvers += ["-o", "samples=4", "-o", "rounds=3"]
    # With a seed: `tests/cli/test_compare_solvers.py`.
    out = tmp_path / "comparison"
    said = told("compare-solvers", table, *workload, *solvers, "--out", str(out))
    assert json.loads((out / "privacy.json").read_text("utf-8"))["private"]
    assert "This release is (" in said


def test_every_function_returns_or_says_what_is_guaranteed() -> None:
    asked = {"schema": SCHEMA, "queries": 20, "way": 2}
    assert dualquery.release(people(), **asked, mechanism="gaussian").privacy.private
    options = {"rounds": 3, "samples": 4}
    released, problems = released_with_problems(people(), [2], options=options, **asked)
    assert released.privacy.private
    assert problems.keys() == {2}
    with pytest.warns(UserWarning, match="not private|no privacy"):
        dualquery.Synthesizer(queries=20, way=2, schema_from_data=True).fit(people())
    assert not schema_of_table(people(5000), 5.0, seed=1).schema.declared
    made = dualquery.release(people(), schema=schema_of_table(people(5000), 5.0).schema, way=1)
    assert "the schema (learned: epsilon 5.0" in made.privacy.guarantee()


PLANTED = {
    "dualquery/cli/commands/answer.py": "from dualquery.rows.engines import load\n",
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
    (tmp_path / "dualquery/synthesizer.py").write_text('"""Opens nothing any more."""\n', "utf-8")
    assert set(unlisted(found(openings, tmp_path), [*STATED, *UNSTATED])) == {
        *PLANTED,
        "dualquery/synthesizer.py",
    }
