"""The command line of the experiments."""

import importlib
import inspect
from collections.abc import Mapping
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
    "figure1": "figure1",
    "figure2": "errors:FIGURE2",
    "figure3": "figure3",
    "figure4": "figure4",
    "parameters": "parameters",
    "policy": "parameters:POLICY",
    "ranges": "ranges",
    "contingency": "contingency",
    "datacubes": "datacubes",
    "factored": "factored",
    "solvers": "solver_study",
    "accuracy": "errors:ACCURACY",
    "headline": "errors:HEADLINE",
    "learning": "learning",
    "drafts": "drafts",
    "coverage": "coverage",
    "gate": "gate",
    "nist": "nist",
    "peers": "peers",
}
"""Name -> module and name of its recipe (``RECIPE``), in the order in which a page shows them."""

KEPT = "finished runs are kept, and the same command goes on from there"
"""What remains of an interrupted experiment."""
DEFAULT_OUT = Path("results")
PAGE = "index.html"
TITLE = "Private release of many answers: the experiments"

Quick = Annotated[
    bool, typer.Option("--quick", help="A small form: about a minute or less, no data needed.")
]
Runs = Annotated[int | None, typer.Option(help="Seeds 1 to N.", min=1, max=10_000)]
Data = Annotated[
    list[str] | None, typer.Option(help="A folder of data, or NAME:PATH; may be repeated.")
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
        if (found := super().get_command(ctx, cmd_name)) is None:
            known = self.list_commands(ctx)
            raise BadInputError(
                f"unknown experiment {cmd_name!r}{did_you_mean(cmd_name, known)} (known: "
                f"{', '.join(known)}; `python -m experiments list` tells what each shows)"
            )
        return found


def recipe_named(name: str) -> Recipe:
    """Return the recipe of an experiment, a key of `MODULES`."""
    module, _, attribute = MODULES[name].partition(":")
    recipe: Recipe = getattr(
        importlib.import_module(f"experiments.{module}"), attribute or "RECIPE"
    )
    return recipe


app = typer.Typer(
    cls=_Group, invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False
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
    from experiments.harness.runner import called, run_recipe

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
        results.append(
            run_recipe(recipe, choices, folder / name, jobs=jobs, command=called(), console=console)
        )
    path = folder / PAGE
    write_whole(path, page(TITLE, results, left_out, quick=quick))
    for result in results:
        for finding in result.findings:
            print(f"{result.recipe.name}: {finding.text()}")
    print(f"page: {path}")


@app.command("benchmarks")
def benchmarks(quick: Quick = False, part: Parts = None, out: Out = None) -> None:
    """Speed and memory beside NumPy, Polars, DuckDB and SciPy; the largest sizes."""
    import json

    from experiments.benchmarks import run

    folder = None if out is None else _folder(out, "benchmarks", quick)
    found = run(part or (), quick=quick)
    if folder is not None:
        write_whole(folder / "results.json", json.dumps(found, indent=2) + "\n")


@app.command("instances")
def instances(quick: Quick = False, data: Data = None, out: Out = None) -> None:
    """The best-response problems of games as files for other solvers, with a manifest."""
    from experiments.instances.family import export

    choices = Choices(quick=quick, data=DataFiles(data or ()))
    folder = _folder(out, "instances", quick)
    for name in export(choices, folder):
        typer.echo(f"written: {folder / name}")


def _command_of(recipe: Recipe) -> Any:
    """Return the command of an experiment: the common options, then its own."""

    def command(**given: Any) -> None:
        from experiments.harness.runner import called, run_recipe, show

        own = {name: tuple(dict.fromkeys(given[name])) for name in names if given[name]}
        data = DataFiles(given["data"] or ())
        choices = Choices(quick=given["quick"], runs=given["runs"], data=data, options=own)
        folder = _folder(given["out"], recipe.name, choices.quick)
        show(run_recipe(recipe, choices, folder, jobs=given["jobs"], command=called()))

    names = [option.name for option in recipe.options]
    parameters = [*inspect.signature(every, eval_str=True).parameters.values()]
    for option in recipe.options:
        flag = f"--{option.name.replace('_', '-')}"
        typed = typer.Option(flag, help=f"{option.help} May be repeated.")
        kind = Annotated[list[option.kind] | None, typed]  # type: ignore[name-defined]
        parameters.append(
            inspect.Parameter(
                option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
            )
        )
    command.__doc__ = f"{recipe.title}\n\n{recipe.setting}"
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(recipe.name, short_help=recipe.title)(command)
    return typer.main.get_command(single)


def _folder(out: Path | None, name: str, quick: bool) -> Path:
    """Return the folder of results, made if it is not there; refuse that of a release."""
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
