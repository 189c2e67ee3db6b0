"""Real sparse tables in place of Netflix's, which cannot be passed on: load, count, release.

They are not in the package: ``--data FOLDER`` names the folder of their files, item lists in the
FIMI form. DualQuery releases each at (1, 0.001) in a process of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from dualquery.runtime.errors import BadInputError
from experiments.benchmarks.scale import measured_release, print_releases

QUERIES = 100_000


@dataclass(frozen=True)
class StandIn:
    """A table, and which of its items are read (None: those that occur, which declares nothing)."""

    file: str
    items: str | None


STAND_INS = (
    StandIn("npm-deps.dat.gz", "0-17769"),
    StandIn("facebook-pages.dat.gz", "0-4713"),
    StandIn("bms-webview2.dat.gz", None),
)


def run(console: Console, quick: bool, folder: Path) -> dict[str, Any]:
    """Release each table, and print where time and memory went.

    Parameters
    ----------
    console
        Where the table goes.
    quick
        Fewer queries.
    folder
        Holds the files.

    Raises
    ------
    BadInputError
        If a file is not there.
    """
    for each in STAND_INS:
        if not (folder / each.file).is_file():
            raise BadInputError(
                f"--data {folder}: there is no {each.file} in it; the tables are "
                f"{', '.join(one.file for one in STAND_INS)}"
            )
    queries = QUERIES // 10 if quick else QUERIES
    found = {
        each.file: measured_release(f"fimi:{folder / each.file}", each.items, queries)
        for each in STAND_INS
    }
    print_releases(console, found)
    return found
