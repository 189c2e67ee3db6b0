"""``dualquery evaluate``: compare a release with its table. The output is not private."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dualquery.cli.shared_options import (
    Json,
    Quiet,
    ReleaseFolder,
    TableName,
    Verbose,
    given_table,
    with_options,
)
from dualquery.cli.terminal import start
from dualquery.runtime.escaping import share

_NAMED = 5  # columns and queries that the terminal shows; ``--json`` has more


@with_options("csv", "engine", "scheduler", "threads")
def evaluate(
    release: ReleaseFolder,
    table: TableName,
    *,
    seed: Annotated[int, typer.Option(help="Seed of the baselines' noise.")] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **asked: Any,
) -> None:
    """Compare a release with its table and with trivial baselines. The output is NOT PRIVATE.

    Examples:

      dualquery evaluate release-20261120T101500Z adult

      dualquery evaluate my-release survey.csv
    """
    threads = asked["threads"]
    terminal = start(machine=as_json, quiet=quiet, verbose=verbose, threads=threads)
    progress = terminal.progress()
    from dualquery.releases.answer.sampling import unasked_note
    from dualquery.releases.compare.evaluation import compare
    from dualquery.rows.engines import Engine

    engine = Engine(name=asked["engine"], scheduler=asked["scheduler"])
    rows = given_table(table, asked["csv"])
    compared = compare(release, rows, engine=engine, threads=threads, seed=seed, progress=progress)
    found = compared.to_dict()
    terminal.emit(found)
    terminal.say(found["warning"], style="bold white on red")
    guarantee = f"epsilon {found['epsilon']:g}, delta {found['delta']:.3g}, {compared.protected}"
    if not found["private"]:
        guarantee = f"the release is NOT private; baselines at {guarantee}"
    terminal.say(f"{found['queries']:,} queries on {compared.size}; {guarantee}")
    mechanism, synthetic = found["mechanism"], found["synthetic"]
    if synthetic == {key: found[key] for key in ("max_error", "mean_error")}:
        lines = [(f"{mechanism} (release and synthetic records)", found)]
    else:
        lines = [(f"{mechanism} (this release)", found)]
        if synthetic is not None:
            lines.append(("its synthetic records, same queries", synthetic))
    lines += [
        (f"baseline: {name}" + (f" ({line['noise']} noise)" if "noise" in line else ""), line)
        for name, line in found["baselines"].items()
    ]
    errors = ("max error", "mean error")
    terminal.table(("answers from", *errors), [(name, *_errors(line)) for name, line in lines])
    if found["means"]:
        level = f"{found['means'][0]['level']:.0%}"
        means = [
            (each["column"], f"{each['mean']:.10g}", f"{each['low']:.10g} to {each['high']:.10g}",
             f"{each['truth']:.10g} ± {each['truth_within']:.1g}")
            for each in found["means"]
        ]  # fmt: skip
        terminal.table(("mean of", "released", f"{level} interval", "truth"), means)
    made = compared.release
    for remark in (found["remark"], *unasked_note(made.schema, made.workload, made)):
        if remark:
            terminal.say(remark)
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
