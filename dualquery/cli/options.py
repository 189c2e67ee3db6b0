"""Options of several commands; options from ``--config``; a mechanism's from ``-o``.

Values stay texts here: the command line reads its own, and `dualquery.mechanisms.options` those of
a mechanism, by the types that they declare.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from dualquery.runtime.documents import parse_toml, read_text
from dualquery.runtime.errors import BadInputError, did_you_mean

RUN = "Run and output"
"""Panel of the help for the options of every run."""

ReleaseFolder: TypeAlias = Annotated[
    Path, typer.Argument(help="Folder of a release.", metavar="RELEASE")
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout.", rich_help_panel=RUN)
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print errors only.", rich_help_panel=RUN)
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print more.", rich_help_panel=RUN)
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Most threads; default: one for each core.", min=1, rich_help_panel=RUN),
]
EngineName: TypeAlias = Annotated[
    str, typer.Option(help="How rows are read: auto, memory, stream or dask.", rich_help_panel=RUN)
]
Scheduler: TypeAlias = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler.", rich_help_panel=RUN)
]
AnswersCache: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="A file of yours that keeps EXACT, PRIVATE answers.", rich_help_panel=RUN),
]
Explain: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Say on stderr how queries are counted and how long passes took.",
        rich_help_panel=RUN,
    ),
]

SHORTHANDS = ("rounds", "samples", "eta", "repetitions", "solver", "solver_timeout")
"""Options of mechanisms that the command has, too."""


def apply_config(context: typer.Context, path: Path | None) -> dict[str, Any]:
    """Return the command's parameters by name: the command line wins over the file.

    Parameters
    ----------
    context
        The running command.
    path
        The configuration file, or None.

    Raises
    ------
    BadInputError
        If the file cannot be read, or has a key or a value that the command does not take.
    """
    values = dict(context.params)
    if path is None:
        return values
    try:
        stored = parse_toml(read_text(path))
    except BadInputError as error:
        raise BadInputError(f"--config {path}: {error}") from None
    parameters = {parameter.name: parameter for parameter in context.command.params}
    aliases = {"iterations": "rounds", "json": "as_json", "o": "option", "options": "option"}
    for key, value in stored.items():
        name = key.replace("-", "_")
        name = aliases.get(name, name)
        parameter = parameters.get(name)
        if name == "positive" and isinstance(value, bool):
            name, value, parameter = "signed", not value, parameters["signed"]
        if parameter is None or name == "config":
            known = [str(known).replace("_", "-") for known in [*parameters, *aliases]]
            known.remove("config")
            guess = ": a file names no other" if name == "config" else did_you_mean(key, known)
            raise BadInputError(f"--config {path}: unknown option {key!r}{guess}")
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            continue
        if name == "option" and isinstance(value, dict):
            value = [f"{k}={v}" for k, v in value.items()]
        try:
            values[name] = parameter.process_value(context, _as_typed(value, parameter.multiple))
        except Exception as error:
            raise BadInputError(f"--config {path}: {key} = {value!r}: {error}") from error
    return values


def _as_typed(value: Any, several: bool) -> str | list[str]:
    """Return a value as the text that a user would type, so that both are read by one rule."""
    if isinstance(value, list) and several:
        return [str(item) for item in value]
    if isinstance(value, list | dict):
        raise BadInputError("one value is expected; write several as one text with commas")
    return str(value)


def mechanism_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the mechanism's options: each ``-o key=value``, and the shorthands that were given.

    Raises
    ------
    BadInputError
        If one is not ``key=value``, or is given twice.
    """
    options: dict[str, Any] = {}
    for pair in given["option"] or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise BadInputError(f"-o {pair!r}: write it as key=value")
        if key in options:
            raise BadInputError(f"-o {key} is given twice")
        options[key] = value
    for name in SHORTHANDS:
        if given[name] is not None:
            if name in options:
                raise BadInputError(f"{name} is given twice, as -o {name} and as an option")
            options[name] = given[name]
    return options
