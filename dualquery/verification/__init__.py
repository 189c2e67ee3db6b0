"""Checks a release from outside: arithmetic, integrity, signature.

Nothing here imports anything of dualquery, so that a fault of the program does not repeat itself in
the check of it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dualquery.verification.agreement import contradictions
from dualquery.verification.check import Report, check

__all__ = ["Report", "verify"]


def verify(folder: str | Path) -> Report:
    """Say whether a release's guarantee follows from its proof record and its folder is whole.

    What the folder holds may be anything; without ``faults`` the `Report` confirms it (see
    `dualquery.verification.check`).
    """
    report = check(folder)
    if report.recomputed is None:
        return report
    return replace(report, refuted=(*report.refuted, *contradictions(folder)))
