"""``dualquery evaluate``: compare a release with its table. The output is not private."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.options import (
    AnswersCache,
    Csv,
    EngineName,
    Explain,
    Json,
    Quiet,
    ReleaseFolder,
    Scheduler,
    TableName,
    Threads,
    Verbose,
    given_table,
)
from dualquery.cli.terminal import Terminal, set_threads, start_logging
from dualquery.runtime.figures import share

_NAMED = 5
"""Columns and queries that the terminal shows; ``--json`` has more."""


def evaluate(
    release: ReleaseFolder,
    table: TableName,
    csv: Csv = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Also draw the errors, against the truth and by column: FILE.svg, .png or .pdf, "
            "NOT PRIVATE. Needs the extra 'plots'."
        ),
    ] = None,
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

    Examples:

      dualquery evaluate release-20261120T101500Z adult

      dualquery evaluate my-release survey.csv --picture errors.svg
    """
    if picture is not None:
        from dualquery.releases.pictures import check_ending

        check_ending(picture)
    terminal = Terminal(machine=as_json, quiet=quiet)
    start_logging(verbose=verbose, quiet=quiet, explain=explain)
    set_threads(threads)

    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from dualquery.releases.sampling import unasked_note

    with given_table(table, csv) as holders, terminal.progress() as progress:
        from dualquery.releases.evaluation import compare
        from dualquery.rows.engines import Engine

        compared = compare(
            release,
            holders,
            engine=Engine(name=engine, scheduler=scheduler, answers_cache=answers_cache),
            threads=threads,
            seed=seed,
            progress=progress,
        )
        if picture is not None:
            from dualquery.releases.pictures import save

            progress.phase("drawing")
            save(compared.plot(), picture)
    found = compared.to_dict()
    terminal.emit(found)
    console = terminal.console
    console.print(found["warning"], style="bold white on red")
    guarantee = f"epsilon {found['epsilon']:g}, delta {found['delta']:.3g}, {compared.protected}"
    if not found["private"]:
        guarantee = f"the release is NOT private; baselines at {guarantee}"
    console.print(f"{found['queries']:,} queries on {compared.size}; {escape(guarantee)}")
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
        lines.add_row(name, *_errors(line))
    console.print(lines)
    if found["means"]:
        level = f"{found['means'][0]['level']:.0%}"
        means = Table("mean of", "released", f"{level} interval", "truth")
        for line in found["means"]:
            figures = (f"{line[key]:.6g}" for key in ("mean", "low", "high", "truth"))
            mean, low, high, truth = figures
            means.add_row(Text(line["column"]), mean, f"{low} to {high}", truth)
        console.print(means)
    if found["remark"] is not None:
        console.print(found["remark"], markup=False)
    if note := unasked_note(compared.release):
        console.print(note, markup=False)
    if len(found["by_literals"]) > 1:
        sizes = Table("literals", "queries", "max error", "mean error")
        for line in found["by_literals"]:
            sizes.add_row(f"{line['literals']}", f"{line['queries']:,}", *_errors(line))
        console.print(sizes)
    if found["by_column"]:
        columns = Table("queries about", "queries", "max error", "mean error")
        for line in found["by_column"][:_NAMED]:
            columns.add_row(Text(line["column"]), f"{line['queries']:,}", *_errors(line))
        console.print(columns)
    queries = Table("furthest from the truth", "answer", "truth", "error")
    for line in found["worst"][:_NAMED]:
        figures = (share(line[key]) for key in ("answer", "truth", "error"))
        queries.add_row(Text(line["query"]), *figures)
    console.print(queries)


def _errors(line: Mapping[str, float]) -> tuple[str, str]:
    return share(line["max_error"]), share(line["mean_error"])
