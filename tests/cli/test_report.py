"""The command that makes the page about a release."""

from pathlib import Path

import pytest

from tests.cli.test_bad_input import assert_refused


@pytest.fixture
def released(dualquery, small, tmp_path) -> Path:
    assert dualquery(*small, "--out", tmp_path / "out").code == 0
    return tmp_path / "out"


def test_report_writes_a_page(dualquery, released, files, tmp_path) -> None:
    done = dualquery("report", released, "--out", tmp_path / "r.html").ok
    assert "NOT PRIVATE" not in done.out
    assert f"({(tmp_path / 'r.html').stat().st_size / 1e3:,.0f} kB)" in " ".join(done.out.split())
    assert "</html>" in (tmp_path / "r.html").read_text("utf-8")
    done = dualquery("report", released, "--out", tmp_path / "t.html", "--with", files[0]).ok
    assert "NOT PRIVATE" in done.out
    assert "Beside the truth" in (tmp_path / "t.html").read_text("utf-8")


def test_report_refuses_bad_places(dualquery, released, here, tmp_path, monkeypatch) -> None:
    (taken := tmp_path / "taken.html").write_text("mine")
    assert_refused(dualquery("report", released, "--out", taken), here, "exists already")
    inside = released / "r.html"
    assert_refused(dualquery("report", released, "--out", inside), here, "in the release's folder")
    nowhere = tmp_path / "no" / "r.html"
    with monkeypatch.context() as patched:
        # Nothing is read before.
        patched.setattr("dualquery.releases.keep.folder.load_release", None)
        assert_refused(dualquery("report", released, "--out", nowhere), here, "there is no folder")
        text = tmp_path / "r.txt"
        assert_refused(dualquery("report", released, "--out", text), here, "ends in .html")
    other = tmp_path.parent / f"{tmp_path.name}.html"
    assert_refused(dualquery("report", tmp_path, "--out", other), here, "not a release folder")
    assert taken.read_text() == "mine"
    assert not other.exists()
