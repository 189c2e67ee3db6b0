"""``release --dry-run``: what the release would be, cost and need; reads no private row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dualquery.cli.options import is_stdin
from dualquery.cli.terminal import Terminal
from dualquery.requests import ReleaseSpec
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import built
from dualquery.runtime.warned import privacy_log

_TRIED = (
    " on this machine as busy as now, by a trial on made-up rows; half or twice that is possible"
)
_SHORTER = ", a third of it if only single columns prove worth measuring"
"""Of `probed`: 0.20 to 0.42 of it on seven generated tables."""


def show_outlook(terminal: Terminal, given: Mapping[str, Any]) -> None:
    """Print what to expect of the release that is asked for.

    Raises
    ------
    BadInputError
        If the release would be refused, or the standard input would have to be read.
    """
    # Rows that are public need not be stated to a release, but to this.
    public = given["neighbours"] == "replace-one" and not (given["unit"] or given["weight"])
    spec = built(ReleaseSpec, {**given, "rows": None} if public else given)
    if given["out"] is not None:
        from dualquery.releases.reservation import require_free

        require_free(given["out"])
    if is_stdin(given["data"]):
        raise BadInputError("--dry-run reads no rows, so no standard input (-): name a file")
    with terminal.progress() as progress:
        from dualquery.outlook import outlook
        from dualquery.privacy.statement import round_up

        progress.phase("planning")
        found = outlook(spec, given["rows"])
    for warning in found.notes:
        privacy_log.warning(warning)
    terminal.emit(asdict(found))
    if terminal.machine:
        return
    remark = f" ({found.remark})" if found.remark else ""
    counted = (
        f"{found.rows:,} rows" if spec.budget.weight is None else f"a weight of {found.rows:,}"
    )
    errors = "errors: no model of them" if found.expected is None else found.expected.text()
    lines = [
        f"{found.mechanism} would answer {found.queries:,} queries on {counted} of "
        f"{found.bits:,} bits{remark}",
        f"cost: epsilon {round_up(found.epsilon, 4)}, delta {round_up(found.delta, 3)}, by the "
        f"accountant {found.accountant}",
        errors,
        found.memory.text(),
        time_text(found.seconds, looks_first=found.mechanism == "probed"),
    ]
    if not found.declared:
        lines.append("the schema is not declared: the release would not be private")
    for line in lines:
        terminal.console.print(line, markup=False)


def time_text(seconds: float | None, *, looks_first: bool = False) -> str:
    """Return a line on how long a release takes: two digits of it at most."""
    if seconds is None:
        return "time: no estimate; a run says after its first steps how much is left"
    said = _TRIED + _SHORTER * looks_first
    for size, unit in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"time: about {float(f'{seconds / size:.2g}'):g} {unit}{said}"
    return f"time: about {float(f'{seconds:.2g}'):g} seconds{said}"
