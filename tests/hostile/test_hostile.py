"""No input makes a parser end otherwise than by accepting or refusing it.

``DUALQUERY_HOSTILE=20000 python -m pytest -m slow tests/hostile`` feeds so many inputs to every
parser; as a rule each gets a few, so that a reader that breaks at once is found in seconds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.parsers import PARSERS
from tests.hostile.worker import PLACE

FEW = 6
MANY = int(os.environ.get("DUALQUERY_HOSTILE", "2000"))
ROOT = Path(__file__).resolve().parents[2]


def feed(folder: Path, count: int, first: int, *names: str) -> list[dict[str, object]]:
    """Feed spoilt inputs to parsers in a process of their own; return what came of each."""
    place = folder / "place"
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.worker", str(count), str(first), *names],
        cwd=ROOT,
        env={**os.environ, PLACE: str(place), "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    at = place.read_text().strip() if place.exists() else "the start"
    assert done.returncode == 0, f"ended with {done.returncode} at {at}: {done.stderr[-3000:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("of_releases", [True, False])
def test_no_parser_breaks(tmp_path: Path, of_releases: bool) -> None:
    """Releases are examples of some parsers: one process makes them."""
    names = [name for name in PARSERS if name.startswith(("release", "verify")) == of_releases]
    assert [line["faults"] for line in feed(tmp_path, FEW, 0, *names)] == [[]] * len(names)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_no_parser_breaks_on_many_inputs(tmp_path: Path, name: str) -> None:
    (line,) = feed(tmp_path, MANY, 0, name)
    assert line["faults"] == []
    assert line["count"] == MANY
