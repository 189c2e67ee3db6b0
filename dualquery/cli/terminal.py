"""What goes to the operator's terminal: tables, progress on stderr, or one JSON object."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualquery.runtime.errors import privacy_log
from dualquery.runtime.escaping import terminal_json, terminal_text
from dualquery.runtime.progress import Lines
from dualquery.runtime.resources import thread_count

if TYPE_CHECKING:
    from rich.console import Console

THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)  # fmt: skip
PACKAGES = ("dualquery", "solvers", "mwem", "experiments")
LOADING = "loading; kernels that are used for the first time are compiled, up to a minute"


def plain_console(**options: Any) -> Console:
    """Return a console that escapes control characters in all that is printed as a text."""
    from rich.console import Console
    from rich.text import Text

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            """Turn a text into what is shown: every text and cell of a table comes here."""
            return super().render_str(terminal_text(text), **options)

    return PlainConsole(**options)


@dataclass
class Terminal:
    """How a command talks. One for each invocation."""

    machine: bool = False
    quiet: bool = False

    @property
    def console(self) -> Console:
        """Where people read: stdout, or stderr when stdout belongs to a machine."""
        return plain_console(stderr=self.machine, quiet=self.quiet, highlight=False)

    def say(self, text: str, **style: Any) -> None:
        """Print a text to people; what stands in it is no markup."""
        self.console.print(text, markup=False, **style)

    def table(
        self, heads: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", **more: Any
    ) -> None:
        """Print a table; what stands in it is no markup."""
        from rich.markup import escape
        from rich.table import Table

        drawn = Table(*map(escape, heads), title=escape(title) or None, **more)
        for row in rows:
            drawn.add_row(*map(escape, row))
        self.console.print(drawn)

    def emit(self, value: Any) -> None:
        """Print one JSON object on stdout when a machine asked for it."""
        if self.machine:
            readable = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
            print(terminal_json(value, ascii_only=not readable))

    def progress(self) -> Lines:
        """Return who prints phases and rounds on stderr; import after it what is heavy."""
        lines = Lines(quiet=self.quiet)
        lines.phase(LOADING)
        return lines


class _PlainLog(logging.Formatter):
    """Lines of the log, in which names of columns and files may stand."""

    def format(self, record: logging.LogRecord) -> str:
        return terminal_text(super().format(record))


def start_logging(*, verbose: bool, quiet: bool) -> None:
    """Log warnings to stderr; verbose: everything; quiet: errors and what weakens a guarantee."""
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING
    handler = logging.StreamHandler(sys.stderr)
    where = "%(levelname)s %(name)s: " if verbose else ""
    handler.setFormatter(_PlainLog(f"{where}%(message)s"))
    logging.basicConfig(handlers=[handler])
    for package in PACKAGES:
        logging.getLogger(package).setLevel(level)
    privacy_log.setLevel(min(level, logging.WARNING))  # however quiet


def start(
    *, machine: bool = False, quiet: bool = False, verbose: bool = False, threads: int | None = None
) -> Terminal:
    """Start a command's log and return its terminal; tell every library how many threads to use.

    To be called before these libraries are imported.
    """
    start_logging(verbose=verbose, quiet=quiet)
    if threads is not None:
        thread_count(threads)
        for variable in THREAD_VARIABLES:
            os.environ[variable] = str(threads)
    return Terminal(machine, quiet)
