"""Entry point of the command line: the commands, and what an exception becomes."""

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import EntryPoint, entry_points
from types import FrameType
from typing import Annotated, Any

import typer

from dualquery.cli.commands.answer import answer, table
from dualquery.cli.commands.audit import audit
from dualquery.cli.commands.budget import budget
from dualquery.cli.commands.compare_solvers import compare_solvers
from dualquery.cli.commands.evaluate import evaluate
from dualquery.cli.commands.release import release
from dualquery.cli.commands.report import report
from dualquery.cli.commands.sample import sample
from dualquery.cli.commands.schema import schema
from dualquery.cli.commands.solve import convert, solve, solvers
from dualquery.cli.commands.verify import sign, verify
from dualquery.runtime.errors import BadInputError, InterruptedRun
from dualquery.runtime.escaping import terminal_line
from dualquery.runtime.resources import __version__

DONE, FAULT, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
_OF_OUTPUT = errno.ENOSPC, errno.EPIPE  # a full disk, and a reader that is gone
_LONGEST_MESSAGE = 4000  # characters: a cell or a name that it quotes may be megabytes

FIRST_STEPS = """\
dualquery publishes private answers and synthetic records of a table. First steps, in this order:

  dualquery release --out first            try it on the built-in data
  dualquery schema TABLE --out FILE.json   draft what the columns of your table may hold
  $EDITOR FILE.json                        check that nothing is known from the table alone,
                                           then write "declared": true
  dualquery release TABLE --schema FILE.json --epsilon 1 --out FOLDER
  dualquery report FOLDER --out page.html  one page about the release, for people

dualquery --help lists all commands; dualquery COMMAND --help their options."""

USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[2]  # of Typer's Click, which may be its own

app = typer.Typer(
    name="dualquery",
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for heading, commands in {
    "Make a release": (release,),
    "Read a release": (report, answer, table, sample, evaluate),
    "Budget and trust": (verify, sign, audit),
    "Solvers": (solvers, solve, convert, compare_solvers),
}.items():
    for command in commands:
        app.command(rich_help_panel=heading)(command)
app.add_typer(schema, name="schema", rich_help_panel="Make a release")
app.add_typer(budget, name="budget", rich_help_panel="Budget and trust")


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Publish answers and synthetic data about very many attributes, under differential privacy."""
    if version:
        typer.echo(f"dualquery {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(FIRST_STEPS)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, on arguments or those of the process, and return its exit code."""
    if sys.stderr is None:  # closed: else the next file that is opened gets its number
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if arguments is None and sys.stdout is sys.__stdout__ and sys.stdout:  # libraries use stderr
        sys.stdout = os.fdopen(os.dup(1), "w", 1, sys.stdout.encoding, "backslashreplace")
        os.dup2(2, 1)
    entries = entry_points(group="dualquery.commands")
    known = {*typer.main.get_command(app).commands} if entries else ()  # type: ignore[attr-defined]
    for entry in entries:
        if entry.name not in known:
            app.command(name=entry.name)(_third_party(entry))
    return guarded(app, sys.argv[1:] if arguments is None else arguments, "dualquery")


def _third_party(entry: EntryPoint) -> Callable[..., Any]:
    """Return a third party's command; one that cannot be imported says so when it is run."""
    try:
        loaded: Callable[..., Any] = entry.load()
        (alone := typer.Typer()).command()(loaded)
        typer.main.get_command(alone)  # raises if it cannot be a command
        return loaded
    except (Exception, SystemExit) as error:
        message = f"command {entry.name!r} ({entry.value}) cannot be imported: {error}"

        def broken() -> None:
            raise BadInputError(message)

        return broken


def guarded(
    commands: typer.Typer, arguments: list[str], program: str, kept: str = "nothing was written"
) -> int:
    """Run commands; whatever goes wrong ends in one plain line and an exit code.

    ``program`` is the commands' name, and ``kept`` what remains of one that is interrupted.
    """
    command: Any = None
    try:
        command = typer.main.get_command(commands)
        with ending_signals_interrupt():
            code = command(arguments, prog_name=program, standalone_mode=False)
        if code == INTERRUPTED:  # what Typer makes of Ctrl-C in its newer versions
            raise KeyboardInterrupt
        return code if isinstance(code, int) else DONE
    except BaseException as error:
        return _explain(error, kept, command, arguments)


def _explain(error: BaseException, kept: str, command: Any, arguments: list[str]) -> int:
    """Turn an exception into one plain line and an exit code."""
    from solvers.errors import SolverError

    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))  # how to go on, say
    if isinstance(error, InterruptedRun | KeyboardInterrupt | typer.Abort):
        if any(each.startswith("--budget") for each in arguments):
            kept += "; what the budget file was charged, if anything, stays charged"
        return _stop(f"interrupted: {str(error) or kept}", INTERRUPTED)
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, USAGE_ERROR):
        return _stop(f"{error.format_message()}{_found(error)}", BAD_INPUT)
    lack = "not enough memory for this; take fewer queries or columns"
    if isinstance(error, BadInputError | SolverError | MemoryError):
        return _stop(f"{lack if isinstance(error, MemoryError) else error}{notes}", BAD_INPUT)
    lost = error.__context__ if getattr(error, "code", 0) == 1 else error  # Typer: a closed pipe
    if isinstance(lost, OSError) and lost.errno in _OF_OUTPUT and lost.filename is None:
        with suppress(AttributeError, ValueError):  # if it is closed, or replaced by another object
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _stop(f"cannot print: {lost.strerror}; what was written or charged stays", BAD_INPUT)
    if isinstance(error, SystemExit | GeneratorExit):
        raise error
    for name in arguments:
        command = getattr(command, "commands", {}).get(name, command)
    options = {name for each in getattr(command, "params", ()) for name in each.opts}
    if options & {"--verbose", "-v"} & {*arguments}:
        sys.__excepthook__(type(error), error, error.__traceback__)
    where = " (--verbose shows where)" if "--verbose" in options else ""
    return _stop(f"internal fault: {type(error).__name__}: {error}{where}{notes}", FAULT)


def _found(error: BaseException) -> str:
    """Return the end of a message about an option: what was given, and in which file."""
    faults = getattr(error.__cause__, "errors", None)  # of a ValidationError
    found = "" if faults is None else f"; found {faults()[0]['input']!r}"
    context, option = getattr(error, "ctx", None), getattr(error, "param", None)
    if context is None or option is None:
        return found
    source = context.get_parameter_source(option.name)
    of_file = source is not None and source.name == "DEFAULT_MAP"
    return f"{found} in --config {context.params['config']}" if of_file else found


def _stop(message: str, code: int) -> int:
    """Print the last line of a failed command."""
    if len(line := " ".join(message.split())) > _LONGEST_MESSAGE:
        line = f"{line[:_LONGEST_MESSAGE]} ... ({len(line):,} characters)"
    print(f"error: {terminal_line(line)}", file=sys.stderr)
    return code


@contextmanager
def ending_signals_interrupt() -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the block at the first signal that asks to end.

    Later ones are ignored, as are those ignored before (``nohup``). Only the main thread gets any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    # Of service managers, of terminals that close, and of Windows; where a system has them.
    for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.SIG_DFL
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
