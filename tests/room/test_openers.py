"""Every path that opens a table, outside the room and `evaluate`, ends in a privacy statement.

`tests/room/test_callers.py` lists who opens one, and how that ends; here the ends are looked at.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import dualquery
from dualquery.capture import captured_rounds
from dualquery.cli.main import DONE, main
from dualquery.cli.schema import NOT_PRIVATE
from dualquery.privacy.statement import PrivacyStatement
from dualquery.releases.comparison import WARNING
from dualquery.releases.learning import schema_of_table
from tests.callers import PACKAGES, ROOT, found, unlisted
from tests.room.test_callers import STATED, UNSTATED, openings
from tests.tables import SCHEMA, people

# --- the ends -------------------------------------------------------------------------------------


def of_release(tmp: Path, capsys) -> None:
    """The release, its folder, the terminal and the JSON say what is guaranteed, or that nothing
    is.
    """
    table = csv(tmp)
    for number, (words, private) in enumerate(
        (
            (["--schema", schema(tmp)], True),
            (["--schema-from-data"], False),
        )
    ):
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
        drafted = dualquery.Synthesizer(queries=20, way=2, schema_from_data=True).fit(people())
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
    unstated = ["--seed", "1", "--schema", schema(tmp), "--out", str(tmp / "unstated")]
    assert main([*ask, *unstated]) == DONE
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


def of_report(tmp: Path, capsys) -> None:
    """A page about a release and its table says that it is not private, and so does the command."""
    out = tmp / "reported"
    ask = ["--schema", schema(tmp), "--queries", "20", "--way", "2", "--mechanism", "gaussian"]
    assert main(["release", csv(tmp), *ask, "--out", str(out)]) == DONE
    capsys.readouterr()
    assert main(["report", str(out), "--out", str(tmp / "page.html"), "--with", csv(tmp)]) == DONE
    assert "NOT PRIVATE" in capsys.readouterr().out
    assert "NOT PRIVATE" in (tmp / "page.html").read_text("utf-8")


def of_learning(tmp: Path, capsys) -> None:
    """A learned schema says what it cost; one whose noise can be made again is not declared."""
    out = tmp / "learned.json"
    people(5000).write_csv(tmp / "many.csv")
    assert main(["schema", str(tmp / "many.csv"), "--epsilon", "5", "--out", str(out)]) == DONE
    learned = json.loads(out.read_text("utf-8"))
    assert learned["declared"] is True
    assert learned["learned"]["epsilon"] == 5.0
    assert len(learned["learned"]["events"]) == 2
    assert not schema_of_table(people(5000), 5.0, seed=1).schema.declared


ENDS: dict[str, Callable[..., None]] = {
    "dualquery/api.py": of_api,
    "dualquery/synthesizer.py": of_api,
    "dualquery/capture.py": of_capture,
    "dualquery/releases/evaluation.py": of_evaluation,
    "dualquery/cli/release.py": of_release,
    "dualquery/cli/compare_solvers.py": of_comparison,
    "dualquery/cli/evaluate.py": of_evaluation,
    "dualquery/cli/report.py": of_report,
    "dualquery/cli/schema.py": of_draft,
    "dualquery/releases/learning.py": of_learning,
}
"""The test that looks at the end of each path that has one of its own."""


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


def test_every_path_with_an_end_is_looked_at() -> None:
    assert set(ENDS) == set(STATED)


@pytest.mark.parametrize("end", sorted({*ENDS.values()}, key=lambda each: each.__name__))
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
    assert set(unlisted(found(openings, tmp_path), [*STATED, *UNSTATED])) == {
        *PLANTED,
        "dualquery/capture.py",
    }
