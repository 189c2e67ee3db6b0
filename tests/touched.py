"""Which files of ours a command touches: ``python -m tests.touched release adult``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dualquery", "solvers", "mwem")


def traced(run: Callable[[], Any]) -> tuple[set[str], set[str]]:
    """Run something; return our files that were imported, and those with a function that ran.

    The body of a class is part of an import.
    """
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    imported, executed = set(), set()
    for code in codes:
        path = Path(code.co_filename)
        if not path.is_relative_to(ROOT):
            continue
        name = path.relative_to(ROOT).as_posix()
        if name.split("/")[0] in PACKAGES:  # neither modules nor classes have local variables
            (executed if code.co_flags & CO_OPTIMIZED else imported).add(name)
    return imported, executed


if __name__ == "__main__":
    from dualquery.cli.main import main

    imported, executed = traced(lambda: main(sys.argv[1:]))
    for name in sorted(executed):
        print(name, file=sys.stderr)
    print(f"{len(imported | executed)} files, {len(executed)} of them with a function that ran")
