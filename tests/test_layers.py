"""The contracts of ``pyproject.toml`` between folders hold, and a change that breaks one fails."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("importlinter")

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]

BREACHES = {
    "Packages import one way": ("solvers/problem.py", "dualquery.runtime.errors"),
    "Rooms of dualquery import downwards only": ("dualquery/privacy/events.py", "dualquery.room"),
    "Mechanisms see no rows": ("dualquery/mechanisms/auto.py", "dualquery.rows.packed"),
    "Only the room draws private randomness": ("mwem/mechanism.py", "dualquery.room.randomness"),
    "The check of a release shares no code with what made it": (
        "dualquery/verification/check.py",
        "dualquery.runtime.errors",
    ),
    "No cycles between folders": ("dualquery/data/domain.py", "dualquery.data.encoding.encode"),
}
"""For each contract a module, and an import in it that breaks this contract."""


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the packages in a folder, as ``.ci/run`` does."""
    command = "from importlinter.cli import lint_imports_command as run; run(['--no-cache'])"
    return subprocess.run(
        [sys.executable, "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the configuration and a copy of all modules."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in CONTRACTS["root_packages"]:
        for file in (ROOT / package).rglob("*.py"):
            target = folder / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    return folder


def test_every_contract_has_a_breach_to_test_it() -> None:
    assert {contract["name"] for contract in CONTRACTS["contracts"]} == set(BREACHES)


def test_the_contracts_hold(copy: Path) -> None:
    done = lint_imports(copy)
    assert done.returncode == 0, done.stdout


def test_broken_contracts_fail(copy: Path) -> None:
    for module, imported in BREACHES.values():
        with (copy / module).open("a", encoding="utf-8") as file:
            file.write(f"\nimport {imported}\n")
    done = lint_imports(copy)
    assert done.returncode == 1
    assert [name for name in BREACHES if f"{name} BROKEN" not in done.stdout] == []


def test_ci_checks_the_contracts() -> None:
    assert "lint-imports" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
