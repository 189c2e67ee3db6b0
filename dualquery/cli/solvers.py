"""``dualquery solvers``: which best-response back-ends are here."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dualquery.cli.terminal import Terminal


def solvers(
    as_json: Annotated[bool, typer.Option("--json", help="A JSON list on stdout.")] = False,
) -> None:
    """List the best-response solvers, installed or not.

    Example:

      dualquery solvers --json
    """
    from rich.table import Table

    from solvers import available_solvers

    terminal = Terminal(machine=as_json)
    found: list[dict[str, Any]] = [
        {
            "name": info.name,
            "version": info.version,
            "installed": info.installed,
            "capabilities": sorted(capability.value for capability in info.capabilities),
        }
        for info in available_solvers()
    ]
    terminal.emit(found)
    if not as_json:
        table = Table("solver", "version", "installed", "capabilities")
        for line in found:
            table.add_row(
                str(line["name"]),
                str(line["version"] or "-"),
                "yes" if line["installed"] else "no",
                ", ".join(line["capabilities"]),
            )
        terminal.console.print(table)
