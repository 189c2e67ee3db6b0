"""The experiments by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dualquery.errors import BadInputError

app = typer.Typer(invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False)

Quick = Annotated[bool, typer.Option("--quick", help="A small form, in seconds.")]
Runs = Annotated[int | None, typer.Option(help="Seeds 1 to N.", min=1)]
Data = Annotated[str | None, typer.Option(help="Data that are not in the package.")]
Folder = Annotated[Path | None, typer.Option("--data", help="Folder of the real sparse tables.")]
Parts = Annotated[list[str] | None, typer.Option(help="Only this part; may be repeated.")]
Out = Annotated[Path | None, typer.Option(help="Folder for results.json.")]


@app.callback()
def common(context: typer.Context) -> None:
    """Run reproducible measurements."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
def list_experiments() -> None:
    """Name the experiments."""
    for command in app.registered_commands:
        if command.name and command.name != "list" and command.callback:
            typer.echo(f"{command.name:12} {(command.callback.__doc__ or '').splitlines()[0]}")


@app.command("headline")
def headline(quick: Quick = False, runs: Runs = None, data: Data = None, out: Out = None) -> None:
    """DualQuery, sampled MWEM and the baselines on Adult, or on KDD99 with --data kdd99:PATH."""
    from experiments.headline import run

    found = run(data or "adult", runs or (1 if quick else 3), quick=quick)
    if out is not None:
        write_results(found, out)


@app.command("benchmarks")
def benchmarks(
    quick: Quick = False, part: Parts = None, data: Folder = None, out: Out = None
) -> None:
    """Speed and memory beside NumPy, Polars, DuckDB and SciPy; the largest sizes; MWEM."""
    from experiments.benchmarks import run

    found = run(part or (), quick=quick, data=data)
    if out is not None:
        write_results(found, out)


def write_results(found: object, out: Path) -> None:
    """Write ``results.json``.

    Raises
    ------
    BadInputError
        If the folder cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"--out {out}: {error.strerror}") from error
