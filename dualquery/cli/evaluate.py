"""``dualquery evaluate``: compare a release with its table. The output is not private."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.options import (
    AnswersCache,
    EngineName,
    Explain,
    Json,
    Quiet,
    Scheduler,
    Threads,
    Verbose,
)
from dualquery.cli.terminal import Terminal, set_threads, start_logging


def evaluate(
    release: Annotated[Path, typer.Argument(help="Folder of a release.")],
    table: Annotated[str, typer.Argument(help="The private table: NAME, PATH or FORMAT:PATH.")],
    seed: Annotated[int, typer.Option(help="Seed of the baselines' noise.")] = 0,
    engine: EngineName = "auto",
    scheduler: Scheduler = None,
    answers_cache: AnswersCache = None,
    explain: Explain = False,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare a release with its table and with trivial baselines. The output is NOT PRIVATE.

    Example:

      dualquery evaluate release-20261120T101500Z adult
    """
    terminal = Terminal(machine=as_json, quiet=quiet)
    start_logging(verbose=verbose, quiet=quiet, explain=explain)
    set_threads(threads)

    from rich.markup import escape
    from rich.table import Table

    with terminal.progress() as progress:
        from dualquery.releases.evaluation import evaluate as run_evaluation
        from dualquery.rows.engines import Engine

        found = run_evaluation(
            release,
            table,
            engine=Engine(name=engine, scheduler=scheduler, answers_cache=answers_cache),
            threads=threads,
            seed=seed,
            progress=progress,
        )
    terminal.emit(found)
    console = terminal.console
    console.print(found["warning"], style="bold white on red")
    guarantee = f"epsilon {found['epsilon']:g}, delta {found['delta']:.3g}, {found['neighbours']}"
    if not found["private"]:
        guarantee = f"the release is NOT private; baselines at {guarantee}"
    console.print(f"{found['queries']:,} queries on {found['rows']:,} rows; {escape(guarantee)}")
    lines = Table("answers from", "max error", "mean error")
    mechanism, synthetic = f"[bold]{escape(found['mechanism'])}[/bold]", found["synthetic"]
    if synthetic == {key: found[key] for key in ("max_error", "mean_error")}:
        rows = [(f"{mechanism} (release and synthetic records)", found)]
    else:
        rows = [(f"{mechanism} (this release)", found)]
        if synthetic is not None:
            rows.append(("its synthetic records, same queries", synthetic))
    rows += [
        (f"baseline: {name}" + (f" ({line['noise']} noise)" if "noise" in line else ""), line)
        for name, line in found["baselines"].items()
    ]
    for name, line in rows:
        lines.add_row(name, f"{line['max_error']:.4f}", f"{line['mean_error']:.5f}")
    console.print(lines)
