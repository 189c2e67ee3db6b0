"""What commands share: options as the request's fields declare them, ``--config``, the table."""

import datetime
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup

from dualquery.data.given_table import Table
from dualquery.requests import ReleaseSpec
from dualquery.runtime.documents import parse_toml, read_text
from dualquery.runtime.errors import BadInputError, did_you_mean
from dualquery.runtime.option_fields import RUN, options_of

ReleaseFolder: TypeAlias = Annotated[
    Path, typer.Argument(help="Folder of a release.", metavar="RELEASE")
]
TableName: TypeAlias = Annotated[
    str, typer.Argument(help="The private table: NAME, PATH or FORMAT:PATH.", metavar="TABLE")
]


def run_option(help: str, *names: str, **more: Any) -> Any:
    """Return an option, as Typer knows it, of how a command runs and what it prints."""
    return typer.Option(*names, help=help, rich_help_panel=RUN, **more)


Json: TypeAlias = Annotated[bool, run_option("Print JSON on stdout.", "--json")]
Quiet: TypeAlias = Annotated[
    bool, run_option("Print errors only, and what voids a guarantee.", "--quiet", "-q")
]
Verbose: TypeAlias = Annotated[bool, run_option("Print more.", "--verbose", "-v")]

_NAMED = inspect.Parameter.KEYWORD_ONLY


def with_options(
    *names: str, **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: a command takes a release's options: these, with own defaults, or all."""
    declared = options_of(ReleaseSpec)
    named = names or ([] if defaults else declared)
    chosen = {name: declared[name].default for name in named} | defaults

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        taken = []
        for name, default in chosen.items():
            each = declared[name]
            said = each.help.split("; default")[0] if name in defaults else each.help
            more: dict[str, Any] = {"help": said, "metavar": each.metavar or None}
            if each.flags:
                panel = each.panel if len(chosen) == len(declared) else None
                kind: Any = typer.Option(*each.flags, rich_help_panel=panel, **more)
            else:
                kind = typer.Argument(**more)
            typed = each.kind if default is not None else each.kind | None
            taken.append(
                inspect.Parameter(name, _NAMED, default=default, annotation=Annotated[typed, kind])
            )
        rest = [each for each in own if each.name not in chosen and each.kind <= _NAMED]
        signature = inspect.Signature(sorted([*taken, *rest], key=lambda each: each.kind))
        command.__signature__ = signature  # type: ignore[attr-defined]  # Typer reads it
        command.__annotations__ = {}
        return command

    return taking


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make a file's values the defaults of the command's options, so that what is typed wins.

    `BadInputError` if the file cannot be read, or has a key that the command does not take.
    """
    if path is None:
        return None
    try:
        stored = parse_toml(read_text(path))
    except BadInputError as error:
        raise BadInputError(f"--config {path}: {error}") from None
    parameters = {str(each.name): each for each in context.command.params if each.name != "config"}
    aliases = {"iterations": "rounds", "json": "as_json", "o": "option", "options": "option"}
    found: dict[str, Any] = {}
    for key, value in stored.items():
        name = aliases.get(key, key.replace("-", "_"))
        if name == "positive" and isinstance(value, bool):
            name, value = "signed", not value
        if name not in parameters:
            known = [each.replace("_", "-") for each in (*parameters, *aliases)]
            raise BadInputError(
                f"--config {path}: unknown option {key!r}{did_you_mean(key, known)}"
            )
        if name in found:
            raise BadInputError(f"--config {path}: {key}, or what means the same, is given twice")
        several = parameters[name].multiple
        if several and isinstance(value, dict):
            value = [f"{own}={each}" for own, each in value.items()]
        if isinstance(value, dict) or (isinstance(value, list) and not several):
            raise BadInputError(
                f"--config {path}: {key} = {value!r}: one value is expected; write several as one "
                "text with commas"
            )
        # As text that a user would type, so that both are read by one rule.
        found[name] = [str(each) for each in value] if isinstance(value, list) else str(value)
    context.default_map = found
    return path


def timed_name(what: str) -> Path:
    """Return the default name of a folder: what it holds, and the time."""
    return Path(f"{what}-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}")


def is_stdin(text: str) -> bool:
    """Return whether a table is the standard input: ``-`` or ``FORMAT:-``."""
    return text.rpartition(":")[2] == "-"


def given_table(text: str, csv: str | None) -> Any:
    """Return what `dualquery.release` takes as a table.

    ``text`` is as for `parse_source`; or ``-``, for CSV from the standard input, or ``FORMAT:-``.
    ``csv`` says how CSV is written. `BadInputError` if the standard input is a terminal or too
    large, or ``csv`` goes with no CSV file.
    """
    if not is_stdin(text):
        return text if csv is None else Table(text, csv=csv).source
    from dualquery.data.opening import held
    from dualquery.data.readers.csv import Dialect
    from dualquery.data.readers.formats import FORMATS, open_as

    form = text.rpartition(":")[0] or "csv"
    if form not in FORMATS or FORMATS[form].folders:
        raise BadInputError(
            f"{text}: the standard input is read as CSV, or as FORMAT:- of a format of files"
        )
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInputError(f"{text}: the standard input is no file; pipe a table into it")
    dialect = None if csv is None else Dialect.parse(csv)
    return open_as(form, held(sys.stdin.buffer, text), text, dialect)


def with_default(command: str, stands_alone: Callable[[str], bool]) -> type[TyperGroup]:
    """Return a group of commands whose ``command`` need not be named.

    It is meant where `stands_alone` holds of a first argument that names no command.
    """

    class WithDefault(TyperGroup):
        def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
            named = arguments and arguments[0] in {*self.commands, *context.help_option_names}
            # To complete the first word, a shell wants to hear the commands, too.
            asked = arguments or not context.resilient_parsing
            if asked and not named and stands_alone(arguments[0] if arguments else ""):
                arguments = [command, *arguments]
            return super().parse_args(context, arguments)

    return WithDefault
