"""``dualquery solvers``: which best-response back-ends are here."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dualquery.cli.terminal import Terminal


def solvers(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """List the solvers of best responses, and whether they are installed.

    Example:

      dualquery solvers --json
    """
    from solvers import UnknownSolverError, available_solvers, get_solver

    terminal = Terminal(machine=as_json)
    found: list[dict[str, Any]] = []
    rows = []
    for info in available_solvers():
        capabilities = sorted(capability.value for capability in info.capabilities)
        found.append(
            {
                "name": info.name,
                "version": info.version,
                "installed": info.installed,
                "capabilities": capabilities,
            }
        )
        usable = "yes" if info.installed else "no"
        if info.installed:
            try:
                get_solver(info.name)
            except UnknownSolverError:
                usable = "with a command"
        rows.append((info.name, info.version or "-", usable, ", ".join(capabilities)))
    terminal.emit(found)
    if not as_json:
        terminal.table(("solver", "version", "installed", "capabilities"), rows)
