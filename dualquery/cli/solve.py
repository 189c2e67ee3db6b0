"""``dualquery solve`` and ``dualquery convert``: best-response problems in files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from dualquery.cli.terminal import Terminal, set_threads, start_logging
from dualquery.runtime.errors import BadInputError


def solve(
    instance: Annotated[
        Path, typer.Argument(help="A .wcnf, .lp or .mps file, also with .gz or .xz.")
    ],
    solver: Annotated[str, typer.Option(help="See dualquery solvers.")] = "auto",
    solver_timeout: Annotated[
        float, typer.Option(help="Seconds, model building included.", min=0.0)
    ] = 20.0,
    no_reduce: Annotated[
        bool, typer.Option("--no-reduce", help="Give the solver the problem as it is.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the solver's random choices.", min=0)] = 0,
    threads: Annotated[int, typer.Option(help="Most threads.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
) -> None:
    """Solve one problem: weighted MaxSAT, or a linear program in 0-1 variables.

    A WCNF file of another program is maximised in the weight of its satisfied soft clauses. The
    solver auto reduces the problem even with --no-reduce.

    Examples:

      dualquery solve instance.wcnf --solver cpsat --solver-timeout 60

      dualquery solve instance.lp --solver "maxsat:uwrmaxsat -m" --json
    """
    terminal = Terminal(machine=as_json, quiet=quiet)
    start_logging(verbose=verbose, quiet=quiet)
    set_threads(threads)

    from solvers import Solver, get_solver
    from solvers.formats import read_instance

    chosen: Solver = get_solver(solver)
    if not no_reduce:
        from solvers.reducing import Reducing

        chosen = Reducing(chosen)
    read = read_instance(instance)
    solution = chosen.solve(read.problem, time_limit=solver_timeout, threads=threads, seed=seed)
    sign = -1.0 if read.minimises else 1.0
    values = read.values(solution.record).tolist()
    found: dict[str, Any] = {
        "instance": str(instance),
        "solver": solver,
        "sense": "min" if read.minimises else "max",
        "objective": sign * solution.objective,
        "bound": sign * solution.bound if math.isfinite(solution.bound) else None,
        "status": solution.status.value,
        "seconds": solution.seconds,
        "incumbent_seconds": solution.incumbent_seconds,
        "attributes": read.problem.attributes,
        "terms": len(read.problem.terms),
        "variables": list(read.variables),
        "record": values,
    }
    terminal.emit(found)
    if not as_json:
        from rich.table import Table

        table = Table(show_header=False)
        for key in ("objective", "bound", "status", "seconds"):
            value = found[key]
            digits = 3 if key == "seconds" else 10
            text = "none" if value is None else value if key == "status" else f"{value:.{digits}g}"
            table.add_row(key, text)
        terminal.console.print(table)
        ones = [name for name, bit in zip(read.variables, values, strict=True) if bit]
        terminal.console.print(
            f"record: {len(ones)} of {len(read.variables)} variables are 1:", " ".join(ones),
            markup=False,
        )  # fmt: skip


def convert(
    source: Annotated[
        Path, typer.Argument(help="A .wcnf, .lp or .mps file, also with .gz or .xz.", metavar="IN")
    ],
    target: Annotated[Path, typer.Argument(help="A new file.", metavar="OUT")],
) -> None:
    """Write a problem in another format: the suffixes tell which.

    Real weights are scaled to integers in WCNF, exactly so for decimals of up to 9 places.

    Example:

      dualquery convert instance.wcnf instance.lp
    """
    from solvers.formats import read_instance, write_instance

    if target.exists():
        raise BadInputError(f"{target} exists already; name another file")
    write_instance(target, read_instance(source).problem)
    typer.echo(f"written to {target}")
