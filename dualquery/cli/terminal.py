"""What goes to the operator's terminal: tables, progress on stderr, or one JSON object."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualquery.runtime.errors import privacy_log
from dualquery.runtime.escaping import terminal_json, terminal_text
from dualquery.runtime.progress import Lines
from dualquery.runtime.resources import thread_count

if TYPE_CHECKING:
    from rich.console import Console

    from dualquery.runtime.progress import Progress

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
)


PACKAGES = ("dualquery", "solvers", "mwem", "experiments")

LOADING = "loading; kernels that are used for the first time are compiled, up to a minute"

_log = logging.getLogger(__name__)


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

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]], **more: Any) -> None:
        """Print a table; what stands in its cells is no markup."""
        from rich.markup import escape
        from rich.table import Table

        drawn = Table(*map(escape, heads), **more)
        for row in rows:
            drawn.add_row(*map(escape, row))
        self.console.print(drawn)

    def emit(self, value: Any) -> None:
        """Print one JSON object on stdout when a machine asked for it."""
        if self.machine:
            readable = "utf" in (sys.stdout.encoding or "").lower()
            print(terminal_json(value, ascii_only=not readable))

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Show phases and rounds on stderr: a bar on a terminal, else lines.

        The first phase is the loading of what is heavy: import it inside the block.
        """
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        if self.quiet or not sys.stderr.isatty():
            lines = Lines(quiet=self.quiet)
            lines.phase(LOADING)
            yield lines
            return
        bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=plain_console(stderr=True),
            transient=True,
        )
        with bar:
            yield _Bar(bar)


class _Bar:
    """A progress bar as a listener of a run."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task = bar.add_task(LOADING, total=None)

    def phase(self, name: str) -> None:
        _log.info("%s", name)
        self._bar.reset(self._task, total=None, description=name)

    def step(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def note(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)


class _PlainLog(logging.Formatter):
    """Lines of the log, in which names of columns and files may stand."""

    def format(self, record: logging.LogRecord) -> str:
        return terminal_text(super().format(record))


def start_logging(*, verbose: bool, quiet: bool) -> None:
    """Send the log to stderr: warnings as a rule, everything if verbose, if quiet errors and
    what weakens a guarantee.
    """
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING
    handler = logging.StreamHandler(sys.stderr)
    where = "%(levelname)s %(name)s: " if verbose else ""
    handler.setFormatter(_PlainLog(f"{where}%(message)s"))
    logging.basicConfig(handlers=[handler])
    for package in PACKAGES:
        logging.getLogger(package).setLevel(level)
    privacy_log.setLevel(min(level, logging.WARNING))  # however quiet


def set_threads(threads: int | None) -> None:
    """Tell every library how many threads to use; must come before they are imported."""
    if threads is not None:
        thread_count(threads)
        for variable in THREAD_VARIABLES:
            os.environ[variable] = str(threads)
