"""``dualquery evaluate``: compare a release with its table. The output is not private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from dualquery.cli.options import (
    Csv,
    EngineName,
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
from dualquery.runtime.escaping import share

_NAMED = 5
"""Columns and queries that the terminal shows; ``--json`` has more."""


def evaluate(
    release: ReleaseFolder,
    table: TableName,
    csv: Csv = None,
    seed: Annotated[int, typer.Option(help="Seed of the baselines' noise.")] = 0,
    engine: EngineName = "auto",
    scheduler: Scheduler = None,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare a release with its table and with trivial baselines. The output is NOT PRIVATE.

    Examples:

      dualquery evaluate release-20261120T101500Z adult

      dualquery evaluate my-release survey.csv
    """
    terminal = Terminal(machine=as_json, quiet=quiet)
    start_logging(verbose=verbose, quiet=quiet)
    set_threads(threads)

    from dualquery.releases.answer.sampling import unasked_note

    with given_table(table, csv) as holders, terminal.progress() as progress:
        from dualquery.releases.compare.evaluation import compare
        from dualquery.rows.engines import Engine

        compared = compare(
            release,
            holders,
            engine=Engine(name=engine, scheduler=scheduler),
            threads=threads,
            seed=seed,
            progress=progress,
        )
    found = compared.to_dict()
    terminal.emit(found)
    console = terminal.console
    console.print(found["warning"], style="bold white on red")
    guarantee = f"epsilon {found['epsilon']:g}, delta {found['delta']:.3g}, {compared.protected}"
    if not found["private"]:
        guarantee = f"the release is NOT private; baselines at {guarantee}"
    console.print(f"{found['queries']:,} queries on {compared.size}; {guarantee}", markup=False)
    mechanism, synthetic = found["mechanism"], found["synthetic"]
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
    errors = ("max error", "mean error")
    terminal.table(("answers from", *errors), [(name, *_errors(line)) for name, line in rows])
    if found["means"]:
        level = f"{found['means'][0]['level']:.0%}"
        means = [
            (each["column"], f"{each['mean']:.6g}", f"{each['low']:.6g} to {each['high']:.6g}",
             f"{each['truth']:.6g}")
            for each in found["means"]
        ]  # fmt: skip
        terminal.table(("mean of", "released", f"{level} interval", "truth"), means)
    made = compared.release
    for remark in (found["remark"], *unasked_note(made.schema, made.workload, made)):
        if remark:
            console.print(remark, markup=False)
    if found["by_column"]:
        columns = [
            (each["column"], f"{each['queries']:,}", *_errors(each))
            for each in found["by_column"][:_NAMED]
        ]
        terminal.table(("queries about", "queries", *errors), columns)
    figures = ("answer", "truth", "error")
    worst = [(each["query"], *(share(each[key]) for key in figures)) for each in found["worst"]]
    terminal.table(("furthest from the truth", *figures), worst[:_NAMED])


def _errors(line: Mapping[str, float]) -> tuple[str, str]:
    return share(line["max_error"]), share(line["mean_error"])
