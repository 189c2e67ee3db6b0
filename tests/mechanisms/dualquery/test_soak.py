"""A game of 10,000 rounds, with its checkpoint: memory stays what it was at round 100.

Without the fit of shares at the end, which holds a number for each pair of records.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

SCRIPT = """
import sys
from pathlib import Path
import dualquery
from dualquery.releases.keep.reservation import reserve
from dualquery.runtime.progress import NoProgress

class Resident(NoProgress):
    def __init__(self):
        self.mib = {}
    def step(self, done, total):
        if done in (100, 1000, 2500, 5000, 7500, 10000):
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.mib[done] = pages * 4096 / 2**20

seen = Resident()
with reserve(sys.argv[1]) as place:
    place.hold_space()
    made = dualquery.release(
        "adult", queries=int(sys.argv[2]), mechanism="dualquery", threads=1, progress=seen,
        options={"rounds": 10_000, "samples": 10, "mixture": "equal", "solver": "local-search"},
        checkpoint=place.checkpoint,
    )
    journal = next(Path(sys.argv[1]).parent.glob("*.unfinished/journal")).stat().st_size
    place.write(made.write_files)
print(*(f"{done}:{mib:.1f}" for done, mib in seen.mib.items()), f"journal:{journal / 2**20:.1f}")
"""


@pytest.mark.slow
def test_ten_thousand_rounds_take_no_more_memory_than_a_hundred(tmp_path) -> None:
    if not Path("/proc/self/statm").is_file():
        pytest.skip("this system does not tell how much memory is resident")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "out"), "2000"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    print(done.stdout)
    seen = {
        name: float(mib) for name, mib in (each.split(":") for each in done.stdout.split()[:-1])
    }
    assert seen["10000"] <= 1.05 * seen["100"]
