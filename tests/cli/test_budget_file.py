"""``dualquery budget init``, ``show`` and ``export``, and the option ``--budget`` of a release."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from dualquery import BudgetFile
from tests.cli.conftest import Run

INIT = ["budget", "init", "b.budget", "--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def noisy(asked: list[str]) -> list[str]:
    return [*asked, "--queries", "20", "--mechanism", "gaussian", "--delta", "1e-8"]


def test_releases_charge_a_file_until_nothing_is_left(dualquery: Run, noisy, here) -> None:
    assert dualquery(*INIT).code == 0
    for name in ("one", "two"):
        done = dualquery(*noisy, "--epsilon", 0.4, "--budget", "b.budget", "--out", name).ok
        words = done.out.replace("│", "").split()
        assert "(1, 1e-06)-differentially private together" in " ".join(words)
    refused = dualquery(*noisy, "--epsilon", 0.4, "--budget", "b.budget", "--out", "three")
    assert "has no room for a release of epsilon 0.4" in refused.refusal
    assert "leave epsilon 0.2 and delta 9.8e-07" in refused.last
    assert sorted(path.name for path in here.iterdir()) == ["b.budget", "one", "two"]
    shown = dualquery("budget", "show", "b.budget", "--json").json
    assert (shown["epsilon"], shown["delta"]) == (1.0, 1e-6)
    assert shown["spent"] == {"epsilon": 0.8, "delta": 2e-8}
    stored = [json.loads(Path(name, "release.json").read_text()) for name in ("one", "two")]
    for line, release in zip(shown["releases"], stored, strict=True):
        assert release["options"]["budget_file"] == {"charged": True, "release": line["release"]}
        assert (line["epsilon"], line["delta"]) == (0.4, 1e-8)
        assert line["stage"] == "finished"
        assert "b.budget" not in json.dumps(release)
    text = dualquery("budget", "show", "b.budget").out
    assert "spent: epsilon 0.8, delta 2e-08" in text
    assert "gaussian" in text
    assert text.count(f"│ {stored[0]['created'][:10]} │ gaussian") == 2


def test_export_holds_all_entries_and_no_hash_of_the_table(dualquery: Run, noisy, here) -> None:
    assert dualquery(*INIT).code == 0
    assert dualquery(*noisy, "--budget", "b.budget", "--out", "one").code == 0
    account = BudgetFile("b.budget").read()
    mark = account.entries[0].mark
    assert mark
    done = dualquery("budget", "export", "b.budget")
    assert [entry["kind"] for entry in done.json["entries"]] == ["charge", "finish"]
    assert [entry["digest"] for entry in done.json["entries"]] == [*account.digests[1:]]
    assert done.json["entries"][0].items() >= asdict(account.entries[0].cost).items()
    assert mark.partition(":")[2] not in done.out
    assert dualquery("budget", "export", "b.budget", "--out", "b.json").code == 0
    assert json.loads(Path("b.json").read_text()) == done.json
    assert "exists already" in dualquery("budget", "export", "b.budget", "--out", "b.json").refusal
    text = json.dumps(json.loads(Path("one/release.json").read_text()))
    assert mark.partition(":")[2] not in text


def test_compare_solvers_charges_a_file(dualquery: Run, files, here: Path) -> None:
    table, schema = files
    assert dualquery(*INIT).code == 0
    asked = [
        "compare-solvers", str(table), "--schema", str(schema), "--queries", 30, "-o", "samples=3",
        "-o", "rounds=4", "--at", 2, "--solvers", "local-search", "--solver-timeout", 0.1,
        "--epsilon", 0.6, "--budget", "b.budget", "--delta", "1e-8",
    ]  # fmt: skip
    assert dualquery(*asked, "--out", "out").ok
    said = json.loads((here / "out" / "privacy.json").read_text())
    assert "charged to a budget file" in said["text"]
    assert "has no room" in dualquery(*asked, "--out", "more").refusal
    assert "not private (it has a seed)" in dualquery(*asked, "--seed", 3, "--out", "more").refusal
    (here / "p.wcnf").write_text("1 1 0\n")
    on_files = dualquery("compare-solvers", "p.wcnf", "--budget", "b.budget", "--out", "more")
    assert "--budget is about a run on a table" in on_files.refusal
    assert dualquery("budget", "show", "b.budget", "--json").json["spent"]["epsilon"] == 0.6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--delta", "1"], "--delta is 1"),
        (["--delta", "0", "--composition", "zcdp"], "needs a delta above 0"),
        (["--composition", "rdp"], "--composition: 'rdp' is unknown"),
        (["--unit", ""], "--unit is ''"),
    ],
)
def test_bad_terms(dualquery: Run, here: Path, change, message) -> None:
    assert message in dualquery(*INIT, *change).refusal
    assert not list(here.iterdir())


def test_bad_places(dualquery: Run, here: Path) -> None:
    assert dualquery(*INIT).code == 0
    for arguments, message in (
        (INIT, "b.budget: File exists"),
        (["budget", "init", "no/b.budget", *INIT[3:]], "there is no folder"),
        (["budget", "show", "none.budget"], "none.budget does not exist"),
        (["budget", "show", "."], "is a folder"),
        (["release", "adult", "--budget", "none.budget"], "none.budget does not exist"),
    ):
        assert message in dualquery(*arguments).refusal
    assert [path.name for path in here.iterdir()] == ["b.budget"]
