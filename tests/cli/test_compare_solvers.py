"""``dualquery compare-solvers``."""

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet
import pytest

from solvers.formats import read_instance, write_instance
from tests.cli.conftest import Run
from tests.solvers.instances import sampled_problem

SCRIPT = Path(__file__).parents[1] / "solvers" / "wcnf_solver.py"


def test_files(dualquery: Run, here: Path) -> None:
    for seed in range(2):
        write_instance(here / f"p{seed}.lp", sampled_problem(14, 40, seed))
    command = shlex.join([sys.executable, str(SCRIPT), "crash"])
    done = dualquery(
        "compare-solvers", "p0.lp", "p1.lp", "--solvers", "scip,local-search", "--solvers",
        f"maxsat:{command}", "--solver-timeout", 0.5, "--out", "out", "--json",
    ).ok  # fmt: skip
    content = done.json
    summary = {line["solver"].partition(":")[0]: line for line in content["summary"]}
    assert summary["scip"]["proven"] == summary["scip"]["solved"] == 2
    assert summary["local-search"]["proven"] == 0
    assert summary["maxsat"]["failed"] == 2
    assert [line["name"] for line in content["instances"]] == ["p0.lp", "p1.lp"]
    rows = pyarrow.parquet.read_table("out/measurements.parquet").to_pylist()
    assert rows == content["measurements"]
    limits = [row["limit"] for row in rows if row["solver"] == "local-search"]
    assert limits == [0.5 / 64, 0.5 / 16, 0.5 / 4, 0.5] * 2
    assert json.loads(Path("out/comparison.json").read_text())["summary"] == content["summary"]
    assert read_instance("out/problems/p0-lp.lp").problem.attributes == 14


def test_a_table(dualquery: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = dualquery(
        "compare-solvers", "adult", "--schema", "adult-paper", "--queries", 300, "-o",
        "samples=30", "-o", "rounds=5", "--at", "2,4", "--solvers", "local-search",
        "--solver-timeout", 0.2, "--out", "out",
    ).ok  # fmt: skip
    assert {"local-search", "wrong"} <= {*done.out.split()}
    problem = read_instance("out/problems/round-4.lp").problem
    assert problem.attributes == 235
    assert len(problem.groups) > 0


def compare_flags(dualquery: Run, here: Path, *more: object) -> Run:
    """Compare on a table of the user's, with a declared schema."""
    rows, names = np.random.default_rng(0).integers(0, 2, (400, 6)), [f"b{i}" for i in range(6)]
    table = pl.DataFrame(rows, schema=names)
    table.with_columns(home=pl.int_range(pl.len()) // 2, w=1.5).write_csv(here / "t.csv")
    columns = [{"name": name, "kind": "binary"} for name in names]
    (here / "s.json").write_text(json.dumps({"declared": True, "columns": columns}))
    return dualquery(
        "compare-solvers", "t.csv", "--schema", "s.json", "--queries", 50, "-o", "samples=20",
        "-o", "rounds=4", "--at", "2,3", "--solvers", "local-search", "--solver-timeout", 0.1,
        "--out", "out", *more,
    )  # fmt: skip


def test_problems_of_a_private_table_are_a_release(dualquery: Run, here: Path) -> None:
    """They show queries drawn from private weights: unseeded, charged, and stated."""
    done = compare_flags(dualquery, here, "--epsilon", 0.5, "--delta", 1e-6).ok
    assert "This release is (0.5, 1e-06)-differentially private" in done.out
    stored = json.loads((here / "out/privacy.json").read_text())
    assert (stored["private"], stored["epsilon"], stored["delta"]) == (True, 0.5, 1e-6)
    assert not list((here / "out").rglob("NOT-PRIVATE*"))
    first = read_instance("out/problems/round-2.lp").problem
    (here / "out").rename(here / "before")
    assert compare_flags(dualquery, here, "--epsilon", 0.5, "--delta", 1e-6).code == 0
    again = read_instance("out/problems/round-2.lp").problem
    assert not (np.array_equal(first.terms, again.terms)
                and np.array_equal(first.weights, again.weights))  # fmt: skip


def test_units_and_weights_are_those_of_the_run(dualquery: Run, here: Path) -> None:
    both = ["--unit", "home", "--max-rows-per-unit", 2, "--weight", "w", "--max-weight", 3]
    done = compare_flags(dualquery, here, *both).ok
    assert json.loads((here / "out/privacy.json").read_text())["delta"] == pytest.approx(1 / 200**2)
    assert "'home'" in done.out
    assert "onditional on the weights in column 'w'" in done.out
    base = ["compare-solvers", "t.csv", "--schema", "s.json"]
    alone = dualquery(*base, "--unit", "home", "--out", "alone")
    assert "--unit home needs --max-rows-per-unit" in alone.last
    write_instance(here / "p.wcnf", sampled_problem(6, 10, 0))
    on_files = dualquery("compare-solvers", "p.wcnf", "--unit", "home", "--out", "files")
    assert "--unit is about a run on a table" in on_files.last


def test_a_seed_marks_every_file_of_a_private_table(dualquery: Run, here: Path) -> None:
    done = compare_flags(dualquery, here, "--seed", 0).ok
    assert "This release is not private: a seed was given" in done.out
    files = [file.name for file in (here / "out").rglob("*") if file.is_file()]
    files.remove("privacy.json")
    assert len(files) >= 4
    assert all(name.startswith("NOT-PRIVATE-") for name in files)
    assert json.loads((here / "out/privacy.json").read_text())["private"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--solvers", "nonesuch"], "unknown solver 'nonesuch'"),
        (["--solvers", ","], "names no solver"),
        (["--solver-timeout", "0"], "--solver-timeout is 0.0"),
        (["--at", "1,5"], "give rounds from 2 on"),
        (["p.lp", "adult"], "'adult' is no file of a problem"),
        (["--out", "taken"], "--out taken: File exists; give a new folder"),
        (["-o", "solver=scip"], "always uses local-search"),
    ],
)
def test_bad_input(dualquery: Run, here: Path, arguments: list[str], message: str) -> None:
    write_instance(here / "p.lp", sampled_problem(6, 10, 0))
    (here / "taken").mkdir()
    before = sorted(here.iterdir())
    assert message in dualquery("compare-solvers", "--solver-timeout", 1, *arguments).refusal
    assert sorted(here.iterdir()) == before


def test_problems_keep_names_of_their_own(dualquery: Run, here: Path) -> None:
    """They are called as they were given."""
    texts = {"a.1.wcnf": 1, "a.2.wcnf": 2, "b/a.1.wcnf": 3}
    for name, weight in texts.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(f"{weight} 1 0\n")
    done = dualquery(
        "compare-solvers", *texts, "--solvers", "local-search", "--solver-timeout", 0.1,
        "--out", "out", "--json",
    ).ok  # fmt: skip
    assert [line["name"] for line in done.json["instances"]] == [*texts]
    kept = {file.stem: read_instance(file).problem for file in Path("out/problems").iterdir()}
    weights = {stem: each.weights.tolist() for stem, each in kept.items()}
    assert weights == {"a-1-wcnf": [1], "a-2-wcnf": [2], "b-a-1-wcnf": [3]}
    assert "a.1.wcnf is given twice" in dualquery("compare-solvers", "a.1.wcnf", "a.1.wcnf").refusal
