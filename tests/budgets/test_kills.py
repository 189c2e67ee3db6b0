"""kill -9 at any call of SQLite: charged or not, and never drawn without a charge."""

import multiprocessing
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from dualquery.budgets.budget_file import BudgetFile
from dualquery.budgets.charge import Charge
from dualquery.privacy.composition import Cost
from tests.budgets.conftest import Make

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def pay_and_die(file: BudgetFile, release: str, step: int, drawn: Path) -> None:
    """Pay, note that a draw could begin, and be killed at a step of the way."""
    steps = 0

    def count(frame: object, event: str, what: object) -> None:
        nonlocal steps
        steps += isinstance(getattr(what, "__self__", None), sqlite3.Connection)
        if steps == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    Charge(file, release).pay(Cost(0.0, 0.25, 0.0), mechanism="x")
    sys.setprofile(None)
    drawn.touch()


def test_a_kill_before_and_after_every_call_of_sqlite(make: Make, tmp_path: Path) -> None:
    """Charged or not, but never drawn and not charged."""
    processes, file = multiprocessing.get_context("fork"), make(epsilon=1000.0)
    Charge(file).pay(Cost(0.0, 0.25, 0.0), mechanism="x")
    outcomes, step, drawn = set(), 1, tmp_path / "drawn"
    while not drawn.exists():
        release = f"{step:032x}"
        worker = processes.Process(target=pay_and_die, args=(file, release, step, drawn))
        worker.start()
        worker.join()
        assert worker.exitcode in (0, -signal.SIGKILL)
        charged = release in file.read().releases
        assert charged or not drawn.exists()
        assert file.problem() is None
        outcomes.add((worker.exitcode == 0, charged))
        step += 1
    assert outcomes == {(False, False), (False, True), (True, True)}
