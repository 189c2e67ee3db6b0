"""``dualquery release``: the main job."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.options import apply_config, mechanism_options
from dualquery.cli.terminal import Terminal, set_threads, start_logging
from dualquery.mechanisms.registry import BUILT_IN, check_mechanism, implied_mechanism
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.releases.folder import Release
    from dualquery.requests import WorkloadRequest

DATA, WORKLOAD, MECHANISM, BUDGET, RUN = "Data", "Workload", "Mechanism", "Budget", "Run and output"


def release(
    context: typer.Context,
    data: Annotated[
        str, typer.Argument(help="A built-in data set, PATH or FORMAT:PATH.", metavar="DATA")
    ] = "adult",
    schema: Annotated[
        str | None,
        typer.Option(
            help="Schema: a file or a built-in name. A draft is made without it: NOT private.",
            rich_help_panel=DATA,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns to read: names, positions, ranges; !name leaves one out.",
            rich_help_panel=DATA,
        ),
    ] = None,
    max_ones_per_row: Annotated[
        int | None,
        typer.Option(
            help="Cut rows of 0/1 columns to this many 1s, so that they need less noise. Public.",
            min=1,
            rich_help_panel=DATA,
        ),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            help="Number of random conjunctions (default: 100000, or all that differ), 'all', or a "
            "file with one query a line.",
            rich_help_panel=WORKLOAD,
        ),
    ] = None,
    way: Annotated[int, typer.Option(help="Literals of a query.", rich_help_panel=WORKLOAD)] = 3,
    signed: Annotated[
        bool,
        typer.Option(
            "--signed/--positive",
            help="Whether literals may be negated.",
            rich_help_panel=WORKLOAD,
        ),
    ] = True,
    workload_seed: Annotated[
        int, typer.Option(help="Seed of the random queries. Public.", rich_help_panel=WORKLOAD)
    ] = 0,
    query_columns: Annotated[
        str | None,
        typer.Option(help="Columns that queries may use; default: all.", rich_help_panel=WORKLOAD),
    ] = None,
    marginals: Annotated[
        int | None,
        typer.Option(
            help="Number of random whole marginals to ask about, instead of --queries.",
            rich_help_panel=WORKLOAD,
        ),
    ] = None,
    max_cells: Annotated[
        int | None,
        typer.Option(help="Most cells of a marginal; default: n.", rich_help_panel=WORKLOAD),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(BUILT_IN)}. Default: auto, or dualquery if one of the options "
            "below is given.",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            help="An option of the mechanism; -o help lists them.",
            metavar="KEY=VALUE",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds", "--iterations", help="Rounds of the game (T).", rich_help_panel=MECHANISM
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Queries drawn in each round (s).", rich_help_panel=MECHANISM)
    ] = None,
    eta: Annotated[
        float | None, typer.Option(help="Learning rate of the game.", rich_help_panel=MECHANISM)
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(help="Updates in each iteration of mwem.", rich_help_panel=MECHANISM),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            help="Solver of best responses, one that 'dualquery solvers' lists; default: auto.",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    solver_timeout: Annotated[
        float | None,
        typer.Option(
            help="Most seconds for one best response; default: 20.", rich_help_panel=MECHANISM
        ),
    ] = None,
    epsilon: Annotated[
        float, typer.Option(help="Largest privacy loss.", rich_help_panel=BUDGET)
    ] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(help="Default: 1/n^2, or 0 for a pure mechanism.", rich_help_panel=BUDGET),
    ] = None,
    neighbours: Annotated[
        str,
        typer.Option(
            help="replace-one (n is public) or add-remove (n is private).", rich_help_panel=BUDGET
        ),
    ] = "replace-one",
    rows: Annotated[
        int | None,
        typer.Option(
            help="With add-remove: a public number in place of n; default: a noisy one.",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    accountant: Annotated[
        str,
        typer.Option(
            help="auto (the smallest valid bound), or one that 'dualquery budget' lists.",
            rich_help_panel=BUDGET,
        ),
    ] = "auto",
    seed: Annotated[
        int | None,
        typer.Option(
            help="Makes the run reproducible, and the release NOT private.", rich_help_panel=RUN
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(help="How rows are read: auto, memory, stream or dask.", rich_help_panel=RUN),
    ] = "auto",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler.", rich_help_panel=RUN)
    ] = None,
    answers_cache: Annotated[
        Path | None,
        typer.Option(
            help="A file of yours that keeps EXACT, PRIVATE answers.", rich_help_panel=RUN
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Say on stderr how queries are counted and how long passes took.",
            rich_help_panel=RUN,
        ),
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(help="Most threads; default: one for each core.", min=1, rich_help_panel=RUN),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to make; default: release-<UTC time>.", rich_help_panel=RUN),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with these options; see above.", rich_help_panel=RUN),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.", rich_help_panel=RUN)
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print errors only, and whether the release is not private.",
            rich_help_panel=RUN,
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print more.", rich_help_panel=RUN)
    ] = False,
) -> None:
    """Release private answers and synthetic records of a table.

    Examples:

      dualquery release

      dualquery release survey.csv --schema survey.json --epsilon 0.5 --out survey-release

      dualquery release adult --schema adult-paper --queries 100000 --delta 0.001

      dualquery release fimi:baskets.dat.gz --columns 0-999 --way 2 -o free=coins

      dualquery release --mechanism mwem -o help

    A TOML file for --config holds the same options by their names, for example:

      epsilon = 0.5

      queries = "all"

      mechanism = "dualquery"

      option = {free = "coins", burn_in = 0}
    """
    given = apply_config(context, config)
    terminal = Terminal(machine=given["as_json"], quiet=given["quiet"])
    start_logging(verbose=given["verbose"], quiet=given["quiet"], explain=given["explain"])
    set_threads(given["threads"])

    if "help" in (given["option"] or []):
        name = given["mechanism"] or implied_mechanism(given["option"])
        show_options(terminal, name)
        return
    workload = check_options(given)

    from dualquery.releases.folder import reserve

    target = given["out"] or Path(default_name())
    with reserve(target) as folder, terminal.progress() as progress:
        from dualquery.api import release as make_release
        from dualquery.rows.engines import Engine

        made = make_release(
            given["data"],
            schema=given["schema"],
            columns=given["columns"],
            max_ones_per_row=given["max_ones_per_row"],
            queries=workload.queries,
            way=workload.way,
            signed=workload.signed,
            workload_seed=workload.seed,
            query_columns=workload.columns,
            marginals=workload.marginals,
            max_cells=workload.max_cells,
            mechanism=given["mechanism"],
            options=mechanism_options(given),
            epsilon=given["epsilon"],
            delta=given["delta"],
            neighbours=given["neighbours"],
            rows=given["rows"],
            accountant=given["accountant"],
            seed=given["seed"],
            engine=Engine(
                name=given["engine"],
                scheduler=given["scheduler"],
                answers_cache=given["answers_cache"],
            ),
            threads=given["threads"],
            progress=progress,
        )
        progress.phase("writing the release")
        folder.write(made)
    if given["quiet"] and not made.privacy.private:
        typer.echo(made.privacy.guarantee(), err=True)
    summary = made.summary()
    terminal.emit({"release": str(target), **{k: v for k, v in summary.items() if k != "schema"}})
    if not terminal.machine:
        show(terminal, made, target, verbose=given["verbose"])


def check_options(given: dict[str, Any]) -> WorkloadRequest:
    """Check all options that need no table, before anything heavy is imported.

    Returns
    -------
    The queries asked for.
    """
    from dualquery.requests import BudgetRequest, WorkloadRequest
    from dualquery.room.randomness import check_seed
    from solvers import get_solver

    BudgetRequest(
        **{name: given[name] for name in ("epsilon", "delta", "accountant", "neighbours", "rows")}
    )
    own = mechanism_options(given)
    check_mechanism(given["mechanism"] or implied_mechanism(own))
    if given["solver"] is not None:
        get_solver(given["solver"])
    check_seed(given["seed"])
    queries = given["queries"]
    return WorkloadRequest(
        queries=None if queries is None else parse_queries(queries),
        way=given["way"],
        signed=given["signed"],
        seed=given["workload_seed"],
        columns=given["query_columns"],
        marginals=given["marginals"],
        max_cells=given["max_cells"],
    )


def show_options(terminal: Terminal, mechanism: str) -> None:
    """List a mechanism's options with their defaults."""
    from dualquery.cli.mechanism_help import option_helps
    from dualquery.mechanisms.registry import mechanism_class

    helps = option_helps(mechanism_class(mechanism))
    terminal.console.print(f"options of the mechanism {mechanism}", markup=False)
    for each in helps:
        terminal.console.print(each.title, markup=False, style="bold")
        terminal.console.print(f"    {each.text}", markup=False)
    if not helps:
        terminal.console.print(f"{mechanism} has no options")


def default_name() -> str:
    """Return the default name of a release folder."""
    return f"release-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}"


def parse_queries(text: str | int) -> int | str:
    """Read ``--queries``: a number, ``all`` or a file."""
    try:
        return int(str(text).replace("_", ""))
    except ValueError:
        if text == "all" or Path(str(text)).is_file():
            return str(text)
        raise BadInputError(
            f"--queries is {text!r}, and there is no such file; give a number, 'all', or the path "
            "of a file of queries"
        ) from None


def show(terminal: Terminal, made: Release, target: Path, *, verbose: bool) -> None:
    """Show a release to a person."""
    from rich.markup import escape
    from rich.panel import Panel
    from rich.table import Table

    from dualquery.queries.conjunctions import require_conjunctions
    from dualquery.queries.text import print_queries

    console = terminal.console
    style = "green" if made.privacy.private else "bold red"
    statement = made.privacy.text() if verbose else made.privacy.guarantee()
    console.print(Panel(escape(statement), title="Privacy", border_style=style))
    for note in made.notes:
        # The panel says already why a release is not private, and what some notes repeat.
        if note not in statement and "not private" not in note:
            console.print(f"note: {escape(note)}", style="yellow")
    shown = 5  # the text of all of them would take a while
    few = ", the first few" if len(made.workload) > shown else ""
    answers = "answer" if len(made.workload) == 1 else "answers"
    table = Table("query", "released answer", title=f"{len(made.workload):,} {answers}{few}")
    texts = print_queries(require_conjunctions(made.workload).literals[:shown], made.schema)
    rows = [[escape(text), f"{made.answers[i]:.4f}"] for i, text in enumerate(texts)]
    if made.intervals is not None:
        table.add_column(f"{made.intervals.level:.0%} interval of the truth")
        for i, row in enumerate(rows):
            row.append(made.intervals.text(i))
        table.caption = f"intervals: {escape(made.intervals.basis)}"
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if made.records is not None:
        grain = f": answers are multiples of 1/{len(made.records):,}"
        console.print(
            f"{len(made.records):,} synthetic records in the table's own columns"
            f"{grain if made.chosen == 'dualquery' else ''}"
        )
    console.print(f"written to [bold]{escape(str(target))}[/bold]")
