"""kill -9 at random instants: every release that was stopped goes on, or says why it does not."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from dualquery.cli.main import main
from tests.checkpoints.kills import GAUSSIAN, OF_ALL_KINDS, Tally, rounds_of_kills, write_homes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

GAME = ("--mechanism", "dualquery", "--rounds", "25", "--samples", "3", "-o", "solver=local-search")

LOST = "a draw was lost, and nothing can stand for it"
WHY_NOT = {
    LOST: r"so it cannot go on: delete",
    "another process has it": r"another process goes on with",
    "stopped at once": r"does not say what was asked for|no folder of an unfinished release",
    "nothing was charged yet, and the budget is spent": r"has no room",
    "the release is out": r"exists already",
}


class Resumed:
    """Goes on with all that a round of kills has stopped."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()

    def __call__(self, folder: Path) -> None:
        for path in sorted(folder.glob("*.unfinished")):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                code = main(["release", "--resume", str(path), "--threads", "1"])
            if code == 0:
                assert not path.exists()
                self.done["goes on"] += 1
                continue
            assert code == 2, said.getvalue()
            reasons = [name for name, text in WHY_NOT.items() if re.search(text, said.getvalue())]
            assert len(reasons) == 1, said.getvalue()
            self.done[reasons[0]] += 1
            if path.exists():  # it stays unless nothing was drawn
                path.rename(path.with_name(f"seen-{path.stem}"))


def check(tally: Tally, resumed: Resumed, kills: int) -> None:
    """Check that nothing is overspent or lost but what a draw has lost."""
    assert tally.kills >= kills
    assert tally.overspent == tally.lost == tally.torn == tally.faults == 0
    assert tally.unfinished == resumed.done[LOST] <= tally.in_draws


def test_a_few(tmp_path) -> None:
    resumed, how = Resumed(), GAUSSIAN
    table, schema = write_homes(tmp_path, rows=50)
    (tmp_path / "work").mkdir()
    tally = rounds_of_kills(
        tmp_path / "work", table, schema, 4, seed=1, longest=1.0, hows=[how], after=resumed
    )
    check(tally, resumed, 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [GAUSSIAN, GAME, OF_ALL_KINDS[-1]], ids=["gaussian", "game", "units, weights and means"]
)
def test_many(tmp_path, how) -> None:
    resumed = Resumed()
    table, schema = write_homes(tmp_path, rows=50)
    (tmp_path / "work").mkdir()
    tally = rounds_of_kills(tmp_path / "work", table, schema, 70, seed=2, hows=[how], after=resumed)
    print(tally, dict(resumed.done))
    check(tally, resumed, 70)
    assert resumed.done["goes on"] > 0
