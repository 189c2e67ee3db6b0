"""The shared runner: no finished run is done twice, and results are whole."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from dualquery.runtime.errors import BadInputError
from experiments.harness import run_folder
from experiments.harness.page import page
from experiments.harness.recipe import Choices
from experiments.harness.run_folder import RunFolder, code_version
from experiments.harness.runner import Result, run_recipe
from tests.experiments import toy

ROOT = Path(__file__).resolve().parents[2]


def run(out: Path, jobs: int = 1, runs: int | None = None, **options: object) -> Result:
    choices = Choices(runs=runs, options={"log": str(out.parent / "log"), **options})
    quiet = Console(file=StringIO())
    return run_recipe(toy.RECIPE, choices, out, jobs=jobs, command="toy", console=quiet)


def begun(out: Path) -> list[str]:
    return sorted((out.parent / "log").read_text("utf-8").split())


def test_results_are_written_and_no_run_is_done_twice(tmp_path) -> None:
    out = tmp_path / "out"
    first = run(out, jobs=2, runs=3)
    assert first.table.height == 6
    assert first.table.columns == ["log", "seconds", "seed", "x", "y", "threads"]
    kept = json.loads((out / "results.json").read_text("utf-8"))
    assert kept["seeds"] == [1, 2, 3]
    assert kept["summary"] == [{"x": 1.0, "y": 4.0, "runs": 3}, {"x": 2.0, "y": 6.0, "runs": 3}]
    assert kept["findings"] == [{"expected": "y <above> x & more", "found": "it is", "holds": True}]
    assert "expected y <above> x" in (out / "findings.txt").read_text("utf-8")
    assert pl.read_parquet(out / "results.parquet").equals(first.table)
    assert {path.name for path in out.glob("*.*g")} == {
        "toy.svg", "toy.png", "again.svg", "again.png",
    }  # fmt: skip
    again = run(out, runs=4)
    assert begun(out) == ["1", "2", "3", "4"]
    assert again.table.filter(pl.col("seed") < 4).equals(first.table)


def test_a_killed_experiment_goes_on_where_it_was(tmp_path) -> None:
    out = tmp_path / "out"
    code = (
        "from pathlib import Path\n"
        "from tests.experiments.test_runner import run\n"
        f"if __name__ == '__main__': run(Path({str(out)!r}), seconds=0.3)"
    )
    (script := tmp_path / "script.py").write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, script], env=environment, start_new_session=True)
    folder = out / "runs"
    while process.poll() is None and len(list(folder.glob("*.json"))) < 2:
        time.sleep(0.02)
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    assert 2 <= len(finished) < 6, "it was not killed in the middle"
    before = len(begun(out))
    assert run(out, seconds=0.3).table["seed"].to_list() == [s for s in range(1, 7) for _ in "xy"]
    assert len(begun(out)) - before == 6 - len(finished)
    assert all(path.stat().st_mtime_ns == at for path, at in finished.items())


def test_runs_depend_on_all_code_but_what_looks_at_their_results(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(run_folder, "_HOME", tmp_path)
    found = []
    for package in ("mwem", "experiments", "mwem", "experiments"):
        (tmp_path / package).mkdir(exist_ok=True)
        (tmp_path / package / "a.py").write_text(f"def draw(): return {len(found) // 2}")
        found.append(code_version.__wrapped__())
    assert found[1] != found[2] == found[3]


def test_what_failed_is_done_again_but_what_took_too_long(tmp_path) -> None:
    folder = RunFolder(tmp_path, "toy", code_version())
    for failure, kept in (("no module named x", False), ("not finished in 2 s", True)):
        folder.save({"seed": 1}, [{"failure": failure}])
        assert (folder.load({"seed": 1}) is not None) == kept


def test_half_written_and_foreign_files_are_done_again(tmp_path) -> None:
    out = tmp_path / "out"
    whole, folder = run(out, runs=3), RunFolder(out / "runs", "toy", code_version())
    planned = toy.plan(Choices(runs=3, options={"log": str(tmp_path / "log")}))
    first, second, third = map(folder.path, planned)
    first.write_bytes(first.read_bytes()[:40])
    second.write_text(third.read_text("utf-8"), encoding="utf-8")  # of another run
    (out / "runs" / ".dualquery-left").mkdir()
    (out / "runs" / ".dualquery-left" / "draft").write_text("{", encoding="utf-8")
    os.utime(out / "runs" / ".dualquery-left", (0, 0))  # by a run that was killed long ago
    (out / "results.json").write_text("{", encoding="utf-8")
    assert run(out, runs=3).table.equals(whole.table)
    assert begun(out) == ["1", "1", "2", "2", "3"]
    assert not list((out / "runs").glob(".dualquery-*"))
    assert json.loads((out / "results.json").read_text("utf-8"))["experiment"] == "toy"


def test_a_folder_that_cannot_be_is_explained(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match=r"--out .*file"):
        run(tmp_path / "file" / "out")


def test_the_page_holds_everything(tmp_path) -> None:
    text = page("All", [run(tmp_path / "out", runs=2)], {"figure9": "no <file>"}, quick=True)
    assert text.count("<svg") == 2
    named = re.findall(r'\bid="([^"]+)"', text)
    assert {*re.findall(r'href="#([^"]+)"', text)} <= {*named}
    assert len(named) == len({*named})
    assert "://" not in text
    assert "<script" not in text
    for shown in ("A toy", "y &lt;above&gt; x &amp; more", "no &lt;file&gt;"):
        assert shown in text
