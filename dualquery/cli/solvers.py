"""``dualquery solvers``: which best-response back-ends are here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.terminal import Terminal

if TYPE_CHECKING:
    from solvers import SolverInfo

_FAILED = "failed: "


def solvers(
    check: Annotated[
        bool, typer.Option("--check", help="Test every installed solver on tiny problems.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """List the solvers of best responses, and whether they are installed.

    With --check the exit code is 1 if a solver fails.

    Examples:

      dualquery solvers --check

      dualquery solvers --json
    """
    from rich.markup import escape
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
    table = Table("solver", "version", "installed", "capabilities", *["check"] * check)
    with terminal.live() as show:
        for line, info in zip(found, available_solvers(), strict=True):
            if check:
                line["check"] = _checked(info) if info.installed else "not installed"
            table.add_row(
                info.name,
                info.version or "-",
                _installed(info),
                ", ".join(line["capabilities"]),
                *([escape(line["check"])] if check else []),
            )
            show(table)
    terminal.emit(found)
    if not as_json:
        terminal.console.print(table)
    if any(line.get("check", "").startswith(_FAILED) for line in found):
        raise typer.Exit(1)


def _installed(info: SolverInfo) -> str:
    """Say whether a solver can be used by its name alone."""
    from solvers import UnknownSolverError, get_solver

    if not info.installed:
        return "no"
    try:
        get_solver(info.name)
    except UnknownSolverError:
        return "with a command"
    return "yes"


def _checked(info: SolverInfo) -> str:
    """Run a solver's self-test; say how it went."""
    from solvers import UnknownSolverError, get_solver
    from solvers.comparison.check import check

    try:
        get_solver(info.name)
    except UnknownSolverError:
        return "not checked: needs a command"
    fault = check(info.name, info.capabilities)
    return f"{_FAILED}{fault}" if fault else "passed"
