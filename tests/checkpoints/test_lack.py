"""Out of memory in the middle of a release: it says so, is charged, and can go on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dualquery.budgets.budget_file import BudgetFile
from dualquery.cli.main import main
from dualquery.verification import verify
from tests.tables import write_people

ROOT = Path(__file__).resolve().parents[2]

# The process gets no more memory from its third draw on, and then asks for some.
STARVED = """
import sys
import numpy as np
from dualquery.checkpoints.checkpoint import Checkpoint
from dualquery.cli.main import main
from dualquery.runtime.resources import _SPACE

end, drawn = Checkpoint.end, 0

def ended(self, result):
    global drawn
    end(self, result)
    drawn += 1
    if drawn == 3:
        _SPACE.enter(1 << 20)
        np.ones(1 << 25)

Checkpoint.end = ended
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no other system limits address space")
def test_a_release_that_runs_out_of_memory_goes_on(tmp_path: Path) -> None:
    options = ["--mechanism", "dualquery", "-o", "rounds=8", "-o", "samples=4"]
    table, schema = write_people(tmp_path, rows=200)
    budget, out = tmp_path / "b.budget", tmp_path / "out"
    file = BudgetFile.create(budget, epsilon=1.0, delta=1e-6)
    asked = [
        "release", str(table), "--schema", str(schema), "--queries", "20", "--way", "2", *options,
        "--epsilon", "0.4", "--delta", "1e-8", "--budget", str(budget), "--out", str(out),
        "--threads", "1",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", STARVED, *asked],
        cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("error: not enough memory for this; take fewer queries or columns")
    assert "Traceback" not in done.stderr
    assert f"--resume {out}.unfinished" in message
    assert not out.exists()
    assert [each.finished for each in file.read().releases.values()] == [False]
    assert file.read().spent[0] == pytest.approx(0.4, abs=0.01)
    spent = file.read().spent
    assert main(["release", "--resume", f"{out}.unfinished", "--threads", "1"]) == 0
    assert verify(out).faults == ()
    assert [each.finished for each in file.read().releases.values()] == [True]
    assert file.read().spent == spent
    assert json.loads((out / "release.json").read_text())["privacy"]["private"]
    assert not Path(f"{out}.unfinished").exists()
