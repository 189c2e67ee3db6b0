"""The experiments' command line."""

import json

import pytest

from dualquery.cli.main import guarded
from experiments.commands import MODULES, app
from experiments.harness.data_files import DataFiles
from experiments.harness.run_folder import RunFolder
from tests.experiments import toy


@pytest.fixture
def run(capsys):
    def call(*arguments: str) -> tuple[int, str, str]:
        code = guarded(app, [*arguments], "python -m experiments")
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_list_says_what_each_shows(run) -> None:
    code, out, err = run("list")
    assert (code, err) == (0, "")
    for name in (*MODULES, "benchmarks", "instances", "all"):
        assert any(line.startswith(f"{name} ") for line in out.splitlines()), name


def test_an_unknown_experiment_is_explained(run) -> None:
    code, out, err = run("figur2", "--quick")
    assert (code, out) == (2, "")
    assert err.startswith("error: unknown experiment 'figur2'; did you mean 'figure2'? (known: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("figure3",), "--data: kdd99 is needed. Get it from kdd99.clean in kdd99.tar.bz2 of"),
        (("figure2", "--contender", "DualQery"), "unknown; did you mean 'DualQuery'? (known"),
        (("figure2", "--table", "adlut"), "--table adlut: unknown; did you mean 'adult'?"),
        (("headline", "--data", "no-such"), "--data no-such: there is no such folder or file"),
        (("headline", "--data", "kdd98:x"), "no such folder or file; did you mean 'kdd99'?"),
        (("figure1", "--runs", "100000000"), "less than or equal to 10000; found '100000000'"),
    ],
)
def test_bad_data_and_choices_are_explained(run, tmp_path, arguments, message) -> None:
    code, out, err = run(*arguments, "--out", str(tmp_path / "out"))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_place_that_cannot_hold_results_is_refused_before_measuring(run, tmp_path) -> None:
    (tmp_path / "file").touch()
    code, out, err = run("benchmarks", "--quick", "--out", str(tmp_path / "file"))
    assert (code, out) == (2, "")
    assert err == f"error: --out {tmp_path / 'file'}: File exists\n"


def test_data_are_found_in_a_folder_and_by_name(tmp_path) -> None:
    (tmp_path / "sparse").mkdir()
    for place in ("kdd99.clean.gz", "sparse/plants.csv.gz", "other.gz"):
        (tmp_path / place).touch()
    files = DataFiles([str(tmp_path), f"kdd99:{tmp_path / 'other.gz'}"])
    assert files.source("kdd99", "") == f"kdd99:{tmp_path / 'other.gz'}"
    assert files.source("plants", "") == f"matrix:{tmp_path / 'sparse' / 'plants.csv.gz'}"
    assert "netflix" not in files
    folder = RunFolder(tmp_path, "toy", "", files.paths)
    runs = [{"source": files.source("kdd99", "")}, {"source": "adult"}]
    before = [*map(folder.path, runs)]
    (tmp_path / "other.gz").write_text("another")
    assert [folder.path(run) in before for run in runs] == [False, True]
    assert "kdd99" in DataFiles([str(tmp_path / "kdd99.clean.gz")])


def test_an_experiment_by_its_command(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("experiments.commands.recipe_named", lambda _: toy.RECIPE)
    log = str(tmp_path / "log")
    code, out, _ = run("figure1", "--runs", "2", "--log", log, "--out", str(tmp_path / "out"))
    assert code == 0
    assert "expected y <above> x & more" in " ".join(out.split())
    found = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    assert found["seeds"] == [1, 2]
    assert all(finding["holds"] for finding in found["findings"])


def test_results_are_not_written_into_a_release(run, tmp_path) -> None:
    (tmp_path / "release.json").write_text("{}")
    code, _, err = run("figure1", "--quick", "--out", str(tmp_path))
    assert code == 2
    assert "this is a release" in err
    assert [path.name for path in tmp_path.iterdir()] == ["release.json"]
