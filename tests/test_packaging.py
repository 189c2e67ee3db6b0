"""What a user installs is what the checkout holds, and nothing heavier than it says."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import dualquery
from dualquery.runtime import resources

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("dualquery", "experiments", "mwem", "solvers")


def test_every_package_is_listed() -> None:
    found = {
        ".".join(file.parent.relative_to(ROOT).parts)
        for name in PACKAGES
        for file in (ROOT / name).rglob("__init__.py")
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == found
    # An editable installation writes a path, which folders of caches left behind do not shadow.
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {"": "."}


def test_every_folder_with_code_is_a_package() -> None:
    for name in (*PACKAGES, "tests"):
        for file in (ROOT / name).rglob("*.py"):
            assert (file.parent / "__init__.py").is_file(), file


def test_every_data_file_is_listed() -> None:
    listed = {
        file
        for package, globs in PROJECT["tool"]["setuptools"]["package-data"].items()
        for glob in globs
        for file in (ROOT / package.replace(".", "/")).glob(glob)
    }
    shipped = {".json", ".gz", ".txt", ".typed", ".toml"}
    for name in PACKAGES:
        for file in (ROOT / name).rglob("*"):
            if file.is_file() and file.suffix in shipped and "__pycache__" not in file.parts:
                assert file in listed, file


def test_the_version_is_stated_once_for_users_and_once_for_installers() -> None:
    assert PROJECT["project"]["version"] == dualquery.__version__


def test_the_locks_have_versions_and_hashes_and_no_address() -> None:
    """One is for a release and holds no tool of tests; the other begins with it and adds these."""
    tools = PROJECT["project"]["optional-dependencies"]["test"]
    locked: list[set[str]] = []
    for name in ("requirements.lock", "requirements-test.lock"):
        lock = (ROOT / name).read_text(encoding="utf-8")
        entries = re.findall(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==", lock, re.MULTILINE)
        locked.append({entry.lower().replace("_", "-") for entry in entries})
        assert lock.count("--hash=sha256:") >= len(entries)
        assert "://" not in lock
    assert lock.startswith("-r requirements.lock\n")
    assert set(map(name_of, PROJECT["project"]["dependencies"])) <= locked[0]
    assert set(map(name_of, tools)) - locked[0] <= locked[1]
    assert not locked[0] & {"pytest", "mypy", "ruff", "matplotlib", "hypothesis", *locked[1]}


def name_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9._-]+", requirement).group().lower().replace("_", "-")


def test_public_names_can_be_had() -> None:
    assert all(getattr(dualquery, name) is not None for name in dualquery.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dualquery.nothing
    for package in ("solvers", "mwem", "dualquery.data"):
        module = importlib.import_module(package)
        assert all(getattr(module, name) is not None for name in getattr(module, "__all__", ()))


def test_a_foreign_package_of_a_generic_name_is_reported(monkeypatch, tmp_path) -> None:
    foreign = tmp_path / "solvers"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("", encoding="utf-8")

    class Spec:
        origin = str(foreign / "__init__.py")

    monkeypatch.setattr(resources, "find_spec", lambda name: Spec)
    with pytest.raises(ImportError, match=r"another package named 'solvers' at .* hides"):
        resources.check_siblings()
