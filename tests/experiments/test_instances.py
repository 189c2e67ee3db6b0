"""The family of instances: the same bytes every time, and what the manifest says."""

import hashlib
from pathlib import Path

import polars as pl
import pytest

from experiments.harness.recipe import Choices
from experiments.instances import family
from experiments.instances.family import MANIFEST, export, members
from solvers.formats import read_instance, write_instance


@pytest.fixture
def small(monkeypatch) -> Choices:
    monkeypatch.setattr(family, "QUICK_QUERIES", 300)
    monkeypatch.setattr(family, "QUICK_GENERATED", ((512, 150),))
    monkeypatch.setattr(family, "RULES", 12)
    return Choices(quick=True)


def test_two_exports_are_equal_byte_for_byte(small, tmp_path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        family.game_problems.cache_clear()
        folder.mkdir()
        written = list(export(small, folder))
        assert sorted(written) == sorted(path.name for path in folder.iterdir())
    for name in written:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
    manifest = pl.read_csv(folders[0] / MANIFEST)
    assert manifest["name"].n_unique() == len(manifest) == 9
    for line in manifest.iter_rows(named=True):
        path = folders[0] / f"{line['name']}.wcnf"
        assert hashlib.sha256(path.read_bytes()).hexdigest() == line["sha256"]
        problem = read_instance(path).problem
        assert len(problem.terms) == line["conjunctions"]
        assert len(problem.groups) == line["groups"]
        assert line["best_known"] <= line["bound"] + 1e-9
    assert set(manifest["constraints"]) == {0, 12}


def test_generated_problems_are_those_of_the_manifest(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(family, "GAMES", ())
    monkeypatch.setattr(family, "GENERATED", family.GENERATED[:3])
    committed = pl.read_csv(Path(family.__file__).with_name(MANIFEST))
    assert len(committed) == committed["name"].n_unique() == 55
    assert (committed["best_known"] <= committed["bound"]).all()
    lines = {line["name"]: line for line in committed.iter_rows(named=True)}
    for member in members(Choices()):
        line, path = lines[member.name], tmp_path / "problem.wcnf"
        write_instance(path, member.problem)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == line["sha256"], member.name
        assert len(member.problem.rows) == line["constraints"]
        assert member.origin == line["origin"]
