"""What commands share: options as the request's fields declare them, ``--config``, the table."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup

from dualquery.data.readers.given_table import Table
from dualquery.requests import ReleaseSpec
from dualquery.runtime.documents import parse_toml, read_text
from dualquery.runtime.errors import BadInputError, did_you_mean
from dualquery.runtime.option_fields import RUN, Option, options_of


def declared(name: str) -> Any:
    """Return how Typer knows an option that a release's request declares."""
    return _for_typer(options_of(ReleaseSpec)[name])


def _for_typer(each: Option) -> Any:
    more: dict[str, Any] = {"help": each.help}
    if each.metavar:
        more["metavar"] = each.metavar
    if not each.flags:
        return typer.Argument(**more)
    return typer.Option(*each.flags, rich_help_panel=each.panel, **more)


def with_options_of(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: a command takes all options of a request's class, beside its own.

    The command reads them from its context.
    """

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        first, *own = inspect.signature(command, eval_str=True).parameters.values()
        inherited = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=each.default,
                annotation=Annotated[
                    each.kind if each.default is not None else each.kind | None, _for_typer(each)
                ],
            )
            for name, each in options_of(kind).items()
        ]
        own = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
        signature = inspect.Signature([first, *inherited, *own])
        command.__signature__ = signature  # type: ignore[attr-defined]  # Typer reads it
        command.__annotations__ = {}
        return command

    return taking


ReleaseFolder: TypeAlias = Annotated[
    Path, typer.Argument(help="Folder of a release.", metavar="RELEASE")
]
TableName: TypeAlias = Annotated[
    str,
    typer.Argument(help="The private table: NAME, PATH or FORMAT:PATH.", metavar="TABLE"),
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
Csv: TypeAlias = Annotated[str | None, declared("csv")]
Columns: TypeAlias = Annotated[str | None, declared("columns")]
SchemaName: TypeAlias = Annotated[str | None, declared("schema")]
Threads: TypeAlias = Annotated[int | None, declared("threads")]
EngineName: TypeAlias = Annotated[str, declared("engine")]
Scheduler: TypeAlias = Annotated[str | None, declared("scheduler")]
UnitColumn: TypeAlias = Annotated[str | None, declared("unit")]
MaxRowsPerUnit: TypeAlias = Annotated[int | None, declared("max_rows_per_unit")]
WeightColumn: TypeAlias = Annotated[str | None, declared("weight")]
MaxWeight: TypeAlias = Annotated[float | None, declared("max_weight")]
Epsilon: TypeAlias = Annotated[float, declared("epsilon")]
Delta: TypeAlias = Annotated[float | None, declared("delta")]
NeighboursName: TypeAlias = Annotated[str, declared("neighbours")]
Budget: TypeAlias = Annotated[Path | None, declared("budget")]


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make a file's values the defaults of the command's options, so that what is typed wins.

    Raises
    ------
    BadInputError
        If the file cannot be read, or has a key that the command does not take.
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
        name = key.replace("-", "_")
        name = aliases.get(name, name)
        if name == "positive" and isinstance(value, bool):
            name, value = "signed", not value
        if name not in parameters:
            known = [each.replace("_", "-") for each in (*parameters, *aliases)]
            raise BadInputError(
                f"--config {path}: unknown option {key!r}{did_you_mean(key, known)}"
            )
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


def is_stdin(text: str) -> bool:
    """Return whether a table is the standard input: ``-`` or ``FORMAT:-``."""
    return text.rpartition(":")[2] == "-"


@contextlib.contextmanager
def given_table(text: str, csv: str | None) -> Iterator[Any]:
    """Yield what `dualquery.release` takes as a table, for as long as it is read.

    Parameters
    ----------
    text
        As for `parse_source`; or ``-``, for CSV from the standard input, or ``FORMAT:-``.
    csv
        How a CSV file is written; None for the standard.

    Raises
    ------
    BadInputError
        If the standard input is a terminal, or too large; if ``csv`` goes with no CSV file.
    """
    if not is_stdin(text):
        yield text if csv is None else Table(text, csv=csv).named
        return
    from dualquery.data.opening import held
    from dualquery.data.readers.dialect import Dialect
    from dualquery.data.readers.formats import FORMATS, open_as

    form = text.rpartition(":")[0] or "csv"
    if form not in FORMATS or FORMATS[form].folders:
        raise BadInputError(
            f"{text}: the standard input is read as CSV, or as FORMAT:- of a format of files"
        )
    if sys.stdin.isatty():
        raise BadInputError(f"{text}: the standard input is the keyboard; pipe a table into it")
    dialect = None if csv is None else Dialect.parse(csv)
    yield open_as(form, held(sys.stdin.buffer, text), text, dialect)


def with_default(command: str, stands_alone: Callable[[str], bool]) -> type[TyperGroup]:
    """Return a group of commands of which one need not be named.

    Parameters
    ----------
    command
        The command that is meant then.
    stands_alone
        Whether a first argument that is neither a command nor a request for help belongs to it.
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
