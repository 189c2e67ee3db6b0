"""The folder of finished runs: a file each, named by what the run depends on.

A file is written whole or not at all, so that an experiment that was interrupted does no finished
run twice. One that cannot be read (half written by something else, or of another run) counts for
nothing and is replaced.
"""

import ast
import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import HIDDEN, whole_file
from experiments.harness.recipe import Row, Run

FORMAT_VERSION = 1
TOO_LONG = "not finished"
"""How the ``failure`` of a row begins that took too long: no other is kept."""
_ABANDONED = 3_600.0  # seconds after which nobody writes into a hidden folder any more

_HOME = Path(__file__).resolve().parents[2]
_NO_RUN = (
    "experiments/harness", "experiments/commands", "solvers/comparison/plots",
    "solvers/comparison/report",
)  # fmt: skip
"""Code on which no run depends."""
_AFTERWARDS = ("draw", "expect", "summarise")
"""How functions of experiments begin that only look at finished runs."""


@cache
def code_version() -> str:
    """Return a digest of the code that runs depend on, without what only looks at their results.

    Comments and formatting do not count.
    """
    total = hashlib.sha256()
    for package in ("dualquery", "experiments", "mwem", "solvers"):
        home = _HOME / package
        after = _AFTERWARDS if package == "experiments" else ()
        for file in sorted([*home.rglob("*.py"), *home.rglob("*.json")]):  # JSON reads as Python
            place = file.relative_to(_HOME).as_posix()
            if not place.startswith(_NO_RUN):
                tree = ast.parse(file.read_text(encoding="utf-8"))
                kept = [n for n in tree.body if not getattr(n, "name", "").startswith(after)]
                total.update(f"{place} {[ast.dump(each) for each in kept]}".encode())
    return total.hexdigest()[:16]


def file_version(path: Path) -> list[int]:
    """Return what tells a file from one that takes its place: its bytes, and when it changed."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


@dataclass(frozen=True)
class RunFolder:
    """Finished runs of one experiment.

    Raises
    ------
    BadInputError
        If the folder cannot be written.
    """

    folder: Path  # made if it is not there
    experiment: str  # name of the experiment
    code: str  # version of the code that its runs depend on
    data: Sequence[Path] = ()  # files that runs may name: one that was replaced is another

    def __post_init__(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for left in self.folder.glob(f"{HIDDEN}*"):
                with suppress(FileNotFoundError):  # another run has moved it to its place
                    if time.time() - left.stat().st_mtime > _ABANDONED:  # by one that was killed
                        shutil.rmtree(left, ignore_errors=True)
        except OSError as error:
            raise BadInputError(f"--out {self.folder}: {error.strerror}") from error

    def path(self, run: Run) -> Path:
        """Return the file of a run, finished or not."""
        key = json.dumps(self._identity(run), sort_keys=True)
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"

    def load(self, run: Run, *, failed: bool = False) -> list[Row] | None:
        """Return the rows of a run, or None if it is not finished or its file is damaged.

        A run that failed is not finished either, unless ``failed`` asks for its rows.
        """
        try:
            stored = json.loads(self.path(run).read_text(encoding="utf-8"))
            rows = stored.pop("rows")
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None
        whole = stored == self._identity(run) and isinstance(rows, list)
        if not whole or not all(isinstance(row, dict) for row in rows):
            return None
        # What failed may do better the next time, what took too long would not.
        failures = [row["failure"] for row in rows if row.get("failure")]
        return rows if failed or all(each.startswith(TOO_LONG) for each in failures) else None

    def save(self, run: Run, rows: Sequence[Row]) -> None:
        """Keep a finished run.

        Raises
        ------
        BadInputError
            If the file cannot be written.
        """
        # Not sorted: columns keep their order.
        write_whole(self.path(run), json.dumps({**self._identity(run), "rows": rows}) + "\n")

    def _identity(self, run: Run) -> Mapping[str, Any]:
        said = json.dumps(dict(run))
        named = [path for path in self.data if json.dumps(str(path))[1:-1] in said]
        return {
            "data": [file_version(path) for path in named],
            "format_version": FORMAT_VERSION,
            "experiment": self.experiment,
            "code": self.code,
            "run": dict(run),
        }


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file at once, so that it is whole or as before.

    Raises
    ------
    BadInputError
        If it cannot be written.
    """
    with whole_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
