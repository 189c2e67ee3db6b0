"""The command line of the experiments."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from dualquery.runtime.errors import BadInputError, did_you_mean
from experiments.harness.data_files import DataFiles
from experiments.harness.recipe import Choices, Recipe
from experiments.harness.run_folder import write_whole

MODULES: Mapping[str, str] = {
    **{
        name: f"experiments.{name}"
        for name in (
            "figure1", "figure2", "figure3", "figure4", "parameters", "policy",
            "ranges", "contingency", "datacubes", "factored",
        )
    },
    "solvers": "experiments.solver_study",
    "accuracy": "experiments.accuracy",
    "headline": "experiments.headline",
    "learning": "experiments.learning",
    "drafts": "experiments.drafts",
    "coverage": "experiments.coverage",
    "gate": "experiments.gate",
    "nist": "experiments.nist",
}  # fmt: skip
"""Name -> module that holds it as ``RECIPE``, in the order in which a page shows them."""

KEPT = "finished runs are kept, and the same command goes on from there"
"""What is left of an experiment that is interrupted."""
DEFAULT_OUT = Path("results")
PAGE = "index.html"
TITLE = "Private release of many answers: the experiments"

Quick = Annotated[
    bool, typer.Option("--quick", help="A small form: at most 40 seconds, no data needed.")
]
Runs = Annotated[int | None, typer.Option(help="Seeds 1 to N.", min=1)]
Data = Annotated[
    list[str] | None,
    typer.Option(help="A folder of data, or NAME:PATH; may be repeated."),
]
Jobs = Annotated[int | None, typer.Option(help="Runs at a time; one a core by default.", min=1)]
Out = Annotated[Path | None, typer.Option(help="Folder of the results; results/NAME by default.")]
Parts = Annotated[list[str] | None, typer.Option(help="Only this part; may be repeated.")]


class _Group(TyperGroup):
    """Commands of the module, and one for each experiment, made when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*MODULES, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in MODULES:
            return _command_of(recipe_named(cmd_name))
        found = super().get_command(ctx, cmd_name)
        if found is None:
            known = self.list_commands(ctx)
            raise BadInputError(
                f"unknown experiment {cmd_name!r}{did_you_mean(cmd_name, known)} (known: "
                f"{', '.join(known)}; `python -m experiments list` tells what each shows)"
            )
        return found


def recipe_named(name: str) -> Recipe:
    """Return the recipe of an experiment, a key of `MODULES`."""
    recipe: Recipe = importlib.import_module(MODULES[name]).RECIPE
    return recipe


app = typer.Typer(
    cls=_Group,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def common(context: typer.Context) -> None:
    """Reproduce the figures of the papers and the project's own measurements."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
def list_experiments() -> None:
    """Name the experiments."""
    for name in MODULES:
        typer.echo(f"{name:12} {recipe_named(name).title}")
    typer.echo(f"{'benchmarks':12} {(benchmarks.__doc__ or '').splitlines()[0]}")
    typer.echo(f"{'instances':12} {(instances.__doc__ or '').splitlines()[0]}")
    typer.echo(f"{'all':12} {(every.__doc__ or '').splitlines()[0]}")


@app.command("all")
def every(
    quick: Quick = False, runs: Runs = None, data: Data = None, out: Out = None, jobs: Jobs = None
) -> None:
    """Every experiment, and one HTML page of all."""
    from experiments.harness.page import page
    from experiments.harness.runner import run_recipe

    console = Console(stderr=True)
    folder = _folder(out, "all", quick)
    choices = Choices(quick=quick, runs=runs, data=DataFiles(data or ()))
    results, left_out = [], {}
    for name in MODULES:
        recipe = recipe_named(name)
        try:
            recipe.plan(choices)
        except BadInputError as missing:
            left_out[name] = str(missing)
            console.print(f"{name} is left out: {missing}", markup=False, highlight=False)
            continue
        command = f"python -m experiments {name}{' --quick' if quick else ''}"
        own = folder / name
        results.append(
            run_recipe(recipe, choices, own, jobs=jobs, command=command, console=console)
        )
    path = folder / PAGE
    write_whole(path, page(TITLE, results, left_out, quick=quick))
    for result in results:
        for finding in result.findings:
            print(f"{result.recipe.name}: {finding.text()}")
    print(f"page: {path}")


@app.command("benchmarks")
def benchmarks(quick: Quick = False, part: Parts = None, out: Out = None) -> None:
    """Speed and memory beside NumPy, Polars, DuckDB and SciPy; the largest sizes; MWEM."""
    import json

    from experiments.benchmarks import run

    found = run(part or (), quick=quick)
    if out is not None:
        write_whole(_folder(out, "benchmarks", quick) / "results.json",
                    json.dumps(found, indent=2) + "\n")  # fmt: skip


@app.command("instances")
def instances(quick: Quick = False, data: Data = None, out: Out = None) -> None:
    """The best-response problems of games as files for other solvers, with a manifest."""
    from experiments.instances.export import export

    choices = Choices(quick=quick, data=DataFiles(data or ()))
    folder = _folder(out, "instances", quick)
    for name in export(choices, folder):
        typer.echo(f"written: {folder / name}")


def _command_of(recipe: Recipe) -> Any:
    """Return the command of an experiment: the common options, then its own."""

    def command(
        quick: Quick = False,
        runs: Runs = None,
        data: Data = None,
        out: Out = None,
        jobs: Jobs = None,
        **options: Any,
    ) -> None:
        from experiments.harness.runner import called, run_recipe, show

        own = {name: tuple(values) for name, values in options.items() if values}
        choices = Choices(quick=quick, runs=runs, data=DataFiles(data or ()), options=own)
        folder = _folder(out, recipe.name, quick)
        show(run_recipe(recipe, choices, folder, jobs=jobs, command=called()))

    command.__doc__ = f"{recipe.title}\n\n{recipe.setting}"
    return _with_options(command, recipe)


def _with_options(command: Callable[..., None], recipe: Recipe) -> Any:
    """Return Typer's command of a function whose keywords are the recipe's own options."""
    signature = inspect.signature(command, eval_str=True)
    given = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    own = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                list[option.kind] | None,  # type: ignore[name-defined]
                typer.Option(f"--{option.name}", help=f"{option.help} May be repeated."),
            ],
        )
        for option in recipe.options
    ]
    parameters = [*given, *own]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(recipe.name, short_help=recipe.title)(command)
    return typer.main.get_command(single)


def _folder(out: Path | None, name: str, quick: bool) -> Path:
    """Return the folder of results, made if it is not there.

    Raises
    ------
    BadInputError
        If it cannot be made, or is a release.
    """
    folder = out or DEFAULT_OUT / (f"{name}-quick" if quick else name)
    if (folder / "release.json").exists():
        raise BadInputError(
            f"--out {folder}: this is a release, which is for others to see; results of an "
            "experiment are not private, so name another folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"--out {folder}: {error.strerror}") from error
    return folder
