"""``release --dry-run``: what the release would be, cost and need; reads no private row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dualquery.cli.counted_rows import unit_of, weight_of
from dualquery.cli.options import mechanism_options
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.warned import privacy_log

if TYPE_CHECKING:
    from dualquery.requests import WorkloadRequest

_TRIED = (
    " on this machine as busy as now, by a trial on made-up rows; half or twice that is possible"
)
_SHORTER = ", a third of it if only single columns prove worth measuring"
"""Of `probed`: 0.20 to 0.42 of it on seven generated tables."""


def show_outlook(
    terminal: Terminal, given: Mapping[str, Any], workload: WorkloadRequest, rows: int | None
) -> None:
    """Print what to expect of the release that is asked for.

    Raises
    ------
    BadInputError
        If the release would be refused, or the standard input would have to be read.
    """
    if given["data"].endswith("-"):
        raise BadInputError("--dry-run reads no rows, so no standard input (-): name a file")
    with terminal.progress() as progress:
        from dualquery.data.table import Table
        from dualquery.mechanisms.registry import configure, with_records
        from dualquery.outlook import outlook
        from dualquery.privacy.statement import round_up
        from dualquery.requests import BudgetRequest

        progress.phase("planning")
        configured = with_records(
            configure(given["mechanism"], mechanism_options(dict(given))),
            given["records"],
            given["polish"],
        )
        wanted = ("epsilon", "delta", "accountant", "neighbours", "rows")
        table = Table(
            given["data"],
            columns=given["columns"],
            max_ones_per_row=given["max_ones_per_row"],
            csv=given["csv"],
        )
        budget = BudgetRequest(
            unit=unit_of(given), weight=weight_of(given), **{name: given[name] for name in wanted}
        )
        found = outlook(
            table, given["schema"], workload, configured, budget, rows, given["threads"]
        )
    for warning in found.notes:
        privacy_log.warning(warning)
    terminal.emit(asdict(found))
    if terminal.machine:
        return
    remark = f" ({found.remark})" if found.remark else ""
    counted = f"{found.rows:,} rows" if budget.weight is None else f"a weight of {found.rows:,}"
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
