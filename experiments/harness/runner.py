"""Carries out an experiment: what is missing is run, and the results are written."""

import io
import json
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import methodcaller
from pathlib import Path
from typing import Any

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from dualquery.releases.compare.evaluation import WARNING
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import thread_count, versions
from experiments.harness.processes import do_runs
from experiments.harness.recipe import Choices, Finding, Recipe, Row, Run
from experiments.harness.run_folder import RunFolder, code_version, write_whole

_WIDEST = 160
"""Characters that a line of a summary may always have."""


@dataclass(frozen=True, eq=False)
class Result:
    """What an experiment found."""

    recipe: Recipe  # the experiment
    caption: str  # the experiment's setting, and how many runs there were
    command: str  # what was called
    table: pl.DataFrame  # the tidy table
    summary: pl.DataFrame  # the few lines to show
    findings: Sequence[Finding]  # what was expected and found
    pictures: Mapping[str, Path]  # name of each picture -> its SVG file; empty without Matplotlib
    folder: Path  # where all of it is


def run_recipe(
    recipe: Recipe,
    choices: Choices,
    out: Path,
    *,
    jobs: int | None = None,
    command: str = "",
    console: Console | None = None,
) -> Result:
    """Do the runs that are not finished yet, and write the results.

    Parameters
    ----------
    recipe
        The experiment.
    choices
        What the user chose.
    out
        Folder of the results: ``runs/`` (a file each), ``results.parquet``, ``results.json`` and
        the pictures. What is finished there is not done again.
    jobs
        Runs at a time (threads of the one run, if the experiment takes times); None for one a core.
    command, console
        What was called, for the results; where progress goes, None for stderr.

    Raises
    ------
    BadInputError
        If data are missing, or the folder cannot be written.
    """
    shown = console or Console(stderr=True)
    choices = replace(choices, out=out)
    if not (runs := recipe.plan(choices)):
        raise BadInputError(f"{recipe.name} has no run with these options")
    folder = RunFolder(out / "runs", recipe.name, code_version(), choices.data.paths)
    missing = [run for run in runs if folder.load(run) is None]
    cores = thread_count(jobs)
    with Progress(
        recipe.name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), "left",
        TimeRemainingColumn(), "{task.fields[now]}", console=shown,
    ) as progress:  # fmt: skip
        task = progress.add_task("", total=len(runs), completed=len(runs) - len(missing), now="")
        side_by_side, threads = (1, cores) if recipe.timed else (cores, 1)
        fresh = recipe.timed or recipe.fresh
        for run in do_runs(
            recipe.perform, missing, folder, jobs=side_by_side, threads=threads, fresh=fresh
        ):
            progress.update(task, advance=1, now=_brief(run))
    table = tidy_table((run, folder.load(run, failed=True) or ()) for run in runs)
    caption = f"{recipe.setting}{repetitions(table)}"
    summary = recipe.summarise(table)
    findings = recipe.expect(table)
    result = Result(recipe, caption, command, table, summary, findings, {}, out)
    _write_results(result, choices.quick, folder.code)
    return replace(result, pictures=_draw(result, shown))


def repetitions(table: pl.DataFrame) -> str:
    """Return how many runs a mean is of at most, as a sentence; nothing without seeds."""
    if "seed" not in table.columns:
        return ""
    runs = int(table["seed"].to_numpy().max())
    return f" Means of {runs} runs at most." if runs > 1 else " One run each."


def tidy_table(finished: Iterable[tuple[Run, Sequence[Row]]]) -> pl.DataFrame:
    """Return one line a row, with the plain parameters of its run before its own columns."""
    lines = [
        {name: value for name, value in run.items() if not isinstance(value, dict | list)}
        | dict(row)
        for run, rows in finished
        for row in rows
    ]
    return pl.DataFrame(lines, infer_schema_length=None)


def show(result: Result) -> None:
    """Print the summary and the findings."""
    console = Console()
    console.print(f"[bold]{result.recipe.title}[/bold]\n{result.caption}")
    console.print(WARNING, style="bold white on red")
    listing = Table(*(name.replace("_", " ") for name in result.summary.columns), box=SIMPLE_HEAD)
    for line in result.summary.iter_rows():
        listing.add_row(*map(shown_value, line))
    # Not cut at the width of the terminal: half a number is worse than a long line.
    Console(width=max(console.width, _WIDEST)).print(listing)
    for finding in result.findings:
        console.print(finding.text(), markup=False, highlight=False)
    console.print(f"results and pictures: {result.folder}", markup=False, highlight=False)


def shown_value(value: Any) -> str:
    """Return a value of a summary as text: four significant digits, thousands separated."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _brief(run: Run) -> str:
    """Return a run's parameters in one short line."""
    text = " ".join(
        f"{each:g}" if isinstance(each, float) else str(each)
        for value in run.values()
        for each in (value if isinstance(value, dict | list) else [value])
        if each is not None
    )
    return text if len(text) <= 60 else text[:57] + "..."


def _write_results(result: Result, quick: bool, code: str) -> None:
    """Write ``results.parquet``, ``results.json`` and ``findings.txt``."""
    recipe, table, out = result.recipe, result.table, result.folder
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    write_whole(out / "results.parquet", buffer.getvalue())
    found = {
        "warning": WARNING,
        "experiment": recipe.name,
        "title": recipe.title,
        "setting": result.caption,
        "command": result.command,
        "quick": quick,
        "seeds": sorted(table["seed"].unique().to_list()) if "seed" in table.columns else [],
        "code": code,
        "versions": versions(),
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        "findings": [asdict(finding) for finding in result.findings],
        **(recipe.headline(table) if recipe.headline else {}),
        "summary": result.summary.to_dicts(),
    }
    write_whole(
        out / "results.json", json.dumps(found, indent=2, default=methodcaller("item")) + "\n"
    )
    text = "\n".join(finding.text() for finding in result.findings)
    write_whole(out / "findings.txt", text + "\n")


def _draw(result: Result, console: Console) -> Mapping[str, Path]:
    """Write the pictures, or say how to get them."""
    recipe, out = result.recipe, result.folder
    if recipe.draw is None:
        return {}
    try:
        from experiments.harness.style import save, styled
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        console.print(
            f"no pictures of {recipe.name}: they need Matplotlib (pip install 'dualquery[plots]'); "
            "results and tables are written",
            markup=False,
        )
        return {}
    with styled(recipe.name):
        return {name: save(figure, out, name) for name, figure in recipe.draw(result.table).items()}


def called() -> str:
    """Return the command that was called, as it can be typed again."""
    return f"python -m experiments {shlex.join(sys.argv[1:])}"
