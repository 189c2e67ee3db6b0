"""Other libraries beside ours: programs that stand in for them, and ours as a program."""

import polars as pl
import pytest

from dualquery.runtime.errors import BadInputError
from experiments import peers
from experiments.harness.recipe import Choices
from experiments.harness.runner import run_recipe, tidy_table

COPY = "import shutil; shutil.copy('table.npy', 'records.npy'); open('kib', 'w').write('2048')"


OURS, INDEPENDENT = peers.plan(Choices(quick=True, runs=1))  # runs of the quick form


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return what replaces the program that calls the libraries."""

    def replaced(text: str) -> None:
        monkeypatch.setattr(peers, "PROGRAM", tmp_path / "program.py")
        peers.PROGRAM.write_text(text, "utf-8")

    return replaced


def test_records_that_are_the_table_have_no_error(program) -> None:
    program(COPY)
    (row,) = peers.perform({**OURS, "contender": peers.PEERS[0]}, 1)
    assert row["pairs"] == row["worst_pair"] == row["triples"] == row["max_error"] == 0.0
    assert row["k_marginal"] == 1000.0
    assert row["cpu_seconds"] > 0
    assert row["mib"] == 2.0


def test_why_a_library_has_no_records_is_told(program) -> None:
    found = []
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    for text in ("import no_such_library", "import time; time.sleep(60)", killed):
        program(text)
        other = {**OURS, "contender": peers.PEERS[0], "limit": 2.0}
        found += [(other, peers.perform(other, 1))]
    assert "no_such_library" in found[0][1][0]["failure"]
    assert peers.summarise(tidy_table(found))["failure"].to_list() == [found[0][1][0]["failure"]]
    assert found[1][1][0]["failure"] == "not finished in 2 s"
    assert found[2][1][0]["failure"] == "killed by signal 9"
    program(COPY)
    found += [({**other, "seed": 2}, peers.perform(other, 1))]
    failed, made = peers.summarise(tidy_table(found[1:2] + found[3:])).iter_rows(named=True)
    assert (failed["failure"], failed["pairs"]) == ("not finished in 2 s", None)
    assert (made["failure"], made["pairs"], made["runs"]) == (None, 0.0, 1)


def test_a_library_whose_python_is_gone_is_a_line(tmp_path) -> None:
    (tmp_path / "opendp").mkdir()
    whole = tmp_path / "opendp" / "whole"
    whole.write_text(" ".join(peers.PACKAGES["opendp"]), "utf-8")
    options = {"peer_env": [str(tmp_path)], "peer": ["opendp MST"], "table": ["wide"]}
    found = run_recipe(peers.RECIPE, Choices(runs=1, options=options), tmp_path / "out", jobs=1)
    assert "does not run" in found.summary["failure"].item()
    with pytest.raises(BadInputError, match="--peer-env"):  # a file where a folder is to be
        peers.plan(Choices(options={**options, "peer_env": [str(whole)]}))
    with pytest.raises(BadInputError, match="--table"):
        peers.plan(Choices(quick=True, options=options))


def test_ours_has_records_and_answers() -> None:
    table = tidy_table([(INDEPENDENT, peers.perform(INDEPENDENT, 1))])
    assert table["of"].to_list() == ["records", "answers"]
    assert table["pairs"].max() < 1.0
    assert table["mib"].min() > 1
    assert peers.expect(table)[0].holds is None  # there is no other library
    ours = table.filter(of="records").with_columns(contender=pl.lit(peers.OURS))
    for pairs, holds in ((-0.1, False), (0.1, True)):
        theirs = ours.with_columns(pl.col("pairs") + pairs, contender=pl.lit(peers.PEERS[0]))
        assert peers.expect(pl.concat((ours, theirs)))[0].holds is holds


def test_the_full_form_asks_where_environments_are() -> None:
    with pytest.raises(BadInputError, match="--peer-env"):
        peers.plan(Choices())
