"""``dualquery solve``, ``convert`` and ``solvers``: best-response problems in files."""

from __future__ import annotations

import math
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dualquery.cli.shared_options import Json, Quiet, Verbose, with_options
from dualquery.cli.terminal import Terminal, start
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from solvers.formats import Instance


class Output(Enum):
    """How an answer is printed."""

    TEXT = "text"
    MAXSAT = "maxsat"


_MAXSAT = {
    "optimal": ("OPTIMUM FOUND", 30),
    "infeasible": ("UNSATISFIABLE", 20),
    "unknown": ("UNKNOWN", 0),
}
"""Line ``s`` and exit code by status; any other status has a record."""


Problem: TypeAlias = Annotated[
    Path,
    typer.Argument(help="A .wcnf, .lp, .mps or .opb file, also with .gz or .xz.", metavar="FILE"),
]


@with_options(solver="auto", solver_timeout=20.0, threads=1)
def solve(
    instance: Problem,
    *,
    no_reduce: Annotated[
        bool, typer.Option("--no-reduce", help="Give the solver the problem as it is.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the solver's random choices.", min=0)] = 0,
    output: Annotated[
        Output,
        typer.Option(
            "--format",
            help="maxsat: the lines o, s and v of the MaxSAT Evaluations, and their exit codes: 30 "
            "optimum, 20 unsatisfiable, 10 satisfiable, 0 unknown.",
        ),
    ] = Output.TEXT,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    solver: str,
    solver_timeout: float,
    threads: int,
) -> None:
    """Solve one problem: weighted MaxSAT, or a linear program in 0-1 variables.

    A WCNF file of another program is maximised in the weight of its satisfied
    soft clauses. In any file, conjunctions and groups are recognised. The limit
    does not count the reading of the file. The solver auto reduces the problem
    even with --no-reduce.

    Examples:

      dualquery solve instance.lp --solver "maxsat:uwrmaxsat -m" --json

      dualquery solve instance.wcnf --format maxsat
    """
    terminal = start(machine=as_json, quiet=quiet, verbose=verbose, threads=threads)

    from solvers import InfeasibleProblemError, NoRecordFoundError, Reducing, get_solver
    from solvers.formats import read_instance
    from solvers.kernel_solver import load

    if output is Output.MAXSAT and as_json:
        raise BadInputError("--format maxsat and --json: stdout has room for one of them")
    chosen = get_solver(solver) if no_reduce else Reducing(get_solver(solver))
    began = time.perf_counter()
    read = read_instance(instance)
    if output is Output.MAXSAT and read.clauses is None:
        raise BadInputError(f"--format maxsat: {instance} has no clauses; give a .wcnf file")
    reading = time.perf_counter() - began
    load(chosen)
    began = time.perf_counter()
    solution = fault = None
    try:
        solution = chosen.solve(read.problem, time_limit=solver_timeout, threads=threads, seed=seed)
        status = solution.status.value
    except InfeasibleProblemError as error:
        fault, status = str(error), "infeasible"
    except NoRecordFoundError as error:
        fault, status = str(error), "unknown"
    solving = time.perf_counter() - began
    values = None if solution is None else read.values(solution.record)
    if output is Output.MAXSAT:
        raise typer.Exit(_print_maxsat(read, status, values))
    sign, bound = -1.0 if read.minimises else 1.0, solution.bound if solution else math.inf
    found: dict[str, Any] = {
        "instance": str(instance),
        "solver": solver,
        "sense": "min" if read.minimises else "max",
        "objective": solution and sign * solution.objective + 0.0,  # no -0
        "bound": sign * bound + 0.0 if math.isfinite(bound) else None,
        "status": status,
        "message": fault,
        "seconds": solution.seconds if solution else solving,
        "read_seconds": reading,
        "solve_seconds": solving,
        "incumbent_seconds": solution and solution.incumbent_seconds,
        "attributes": read.problem.attributes,
        "terms": len(read.problem.terms),
        "found": list(read.found),
        "variables": list(read.variables),
        "record": None if values is None else values.tolist(),
    }
    terminal.emit(found)
    if as_json:
        return
    lines = [f"{key}: {found[key]}" for key in ("objective", "bound", "status", "seconds")]
    lines += [f"found in the file: {line}" for line in read.found]
    if values is None:
        lines.append(str(fault))
    else:
        ones = [name for name, bit in zip(read.variables, values.tolist(), strict=True) if bit]
        lines.append(f"record: {len(ones)} of {len(values)} variables are 1: {' '.join(ones)}")
    terminal.say("\n".join(lines))


def _print_maxsat(read: Instance, status: str, values: NDArray[np.uint8] | None) -> int:
    """Print an answer by the rules of the MaxSAT Evaluations; return the exit code."""
    line, code = _MAXSAT.get(status, ("SATISFIABLE", 10))
    for what in read.found:
        typer.echo(f"c found: {what}")
    if values is not None:
        typer.echo(f"o {read.cost(values)}")
    typer.echo(f"s {line}")
    if values is not None:
        typer.echo(f"v {''.join(map(str, values.tolist()))}")
    return code


def convert(
    source: Problem, target: Annotated[Path, typer.Argument(help="A new file.", metavar="OUT")]
) -> None:
    """Write a problem in another format: the suffixes tell which.

    Real weights are scaled to integers in WCNF, exactly so for up to 9 decimals
    and 15 digits. Variables that only stand for conjunctions become terms, so the
    others are numbered anew. A minimum becomes the maximum of the negative objective.

    Example:

      dualquery convert instance.wcnf instance.lp
    """
    from solvers.formats import read_instance, write_instance

    if target.exists():
        raise BadInputError(f"{target} exists already; delete it, or name another file")
    read = read_instance(source)
    write_instance(target, read.problem)
    for line in read.found:
        typer.echo(f"found in {terminal_line(str(source))}: {line}", err=True)
    typer.echo(f"written to {terminal_line(str(target))}")


def solvers(as_json: Json = False) -> None:
    """List the solvers of best responses, and whether they are installed.

    Example:

      dualquery solvers --json
    """
    from solvers import UnknownSolverError, available_solvers, get_solver

    found, rows = [], []
    for info in available_solvers():
        capabilities = sorted(capability.value for capability in info.capabilities)
        described = {"name": info.name, "version": info.version, "installed": info.installed}
        found.append({**described, "capabilities": capabilities})
        usable = "yes" if info.installed else "no"
        if info.installed:
            try:
                get_solver(info.name)
            except UnknownSolverError:
                usable = "with a command"
        rows.append((info.name, info.version or "-", usable, ", ".join(capabilities)))
    terminal = Terminal(machine=as_json)
    terminal.emit(found)
    if not as_json:
        terminal.table(("solver", "version", "installed", "capabilities"), rows)
