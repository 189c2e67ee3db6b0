"""``dualquery audit``: exit codes, the page, the data; and the whole of it, which is slow."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dualquery.audit import suite
from dualquery.audit.findings import Finding
from dualquery.audit.planted import PLANTED

PLANTED_CHECK = "sensitivity/OneCuboid/replace-one"


@pytest.fixture
def few(monkeypatch):
    """Make the audit one of two checks and one planted bug; return what replaces the findings."""
    found = {}
    run = suite.list_checks(replace(suite.QUICK, cases=15))[PLANTED_CHECK]
    checks = lambda _: {PLANTED_CHECK: run} | {k: (lambda f=f: f) for k, f in found.items()}  # noqa: E731
    monkeypatch.setattr(suite, "list_checks", checks)
    monkeypatch.setattr(suite, "PLANTED", PLANTED[2:3])
    return found


def test_an_audit_that_finds_nothing(few, tmp_path: Path, dualquery) -> None:
    few["games/mwem/replace-one"] = Finding(tried=4, pairs=9, share=0.25)
    out = tmp_path / "new" / "audit"
    shown = dualquery("audit", "--quick", "--threads", "1", "--json", "--out", out).ok.json
    assert shown == json.loads((out / "audit.json").read_text())
    assert shown["passed"]
    assert [check["name"] for check in shown["checks"]] == [PLANTED_CHECK, "games/mwem/replace-one"]
    assert shown["planted"][0]["caught"]
    page = (out / "audit.md").read_text()
    assert "**passed**. 0 violations in 2 checks; 1 of 1 planted bugs caught." in page
    assert "| games/mwem/replace-one | 4 | 9 | 0.2500 | 0 |" in page
    assert sorted(path.name for path in out.iterdir()) == ["audit.json", "audit.md"]


def test_a_violation_ends_with_2(few, tmp_path: Path, dualquery) -> None:
    few["games/mwem/replace-one"] = Finding(tried=4)
    few["games/mwem/replace-one"].compare(float("nan"), 1.0, "a delta of 2")  # no proof is none
    shown = dualquery("audit", "--quick", "--threads", "1", "--out", tmp_path)
    failed = "error: the audit failed: 1 violations in 2 checks; 1 of 1 planted bugs caught"
    assert (shown.code, shown.last) == (2, failed)
    assert "a delta of 2" in shown.out
    assert json.loads((tmp_path / "audit.json").read_text())["passed"] is False


def test_a_missed_bug_ends_with_2(few, monkeypatch, dualquery) -> None:
    harmless = replace(PLANTED[2], faulty=lambda original, *given: original(*given))
    monkeypatch.setattr(suite, "PLANTED", (harmless,))
    missed = dualquery("audit", "--quick", "--threads", "1")
    assert (missed.code, "0 of 1 planted bugs caught" in missed.err) == (2, True)


def test_a_broken_check_is_a_violation_and_catches_nothing(few, monkeypatch, dualquery) -> None:
    def broken(*_: object) -> Finding:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(suite, "PLANTED", (replace(PLANTED[2], faulty=broken),))
    missed = dualquery("audit", "--quick", "--threads", "1")
    assert (missed.code, "0 of 1 planted bugs caught" in missed.err) == (2, True)
    monkeypatch.setattr(suite, "list_checks", lambda _: {"games/x/replace-one": broken})
    assert suite.carry_out(suite.QUICK, "games/x/replace-one").finding.violations == [
        "games/x/replace-one ended with ZeroDivisionError: by nothing"
    ]


def test_a_folder_that_cannot_be_made(tmp_path: Path, dualquery) -> None:
    (tmp_path / "file").write_text("")
    refused = dualquery("audit", "--out", tmp_path / "file" / "audit").refusal
    assert "no folder can be made" in refused


@pytest.mark.slow
def test_the_quick_audit_passes(tmp_path: Path, dualquery) -> None:
    assert dualquery("audit", "--quick", "--out", tmp_path).ok
