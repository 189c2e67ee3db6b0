"""What a person sees of a release that was just made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.cli.terminal import Terminal
from dualquery.runtime.figures import share

if TYPE_CHECKING:
    from dualquery.releases.folder import Release


def show(terminal: Terminal, made: Release, target: Path, *, verbose: bool) -> None:
    """Show a release to a person."""
    from rich.markup import escape
    from rich.panel import Panel
    from rich.table import Table

    from dualquery.queries.conjunctions import require_conjunctions
    from dualquery.queries.text import print_queries
    from dualquery.releases.bought import means_of

    console = terminal.console
    style = "green" if made.privacy.private else "bold red"
    statement = made.privacy.text() if verbose else made.privacy.guarantee()
    console.print(Panel(escape(statement), title="Privacy", border_style=style))
    for note in made.notes:
        # The panel says already why a release is not private, and what some notes repeat.
        if note not in statement and "not private" not in note:
            console.print(f"note: {escape(note)}", style="yellow")
    if questions := made.workload.description.get("questions"):
        console.print(
            f"{len(questions):,} questions of the list were asked by their parts, the conjunctions "
            "that they are made of; they are answered by "
            f"[bold]dualquery answer {escape(str(target))}[/bold]"
        )
    shown = 5  # the text of all of them would take a while
    few = ", the first few" if len(made.workload) > shown else ""
    answers = "answer" if len(made.workload) == 1 else "answers"
    table = Table("query", "released answer", title=f"{len(made.workload):,} {answers}{few}")
    texts = print_queries(require_conjunctions(made.workload).literals[:shown], made.schema)
    rows = [[escape(text), share(made.answers[i])] for i, text in enumerate(texts)]
    if made.intervals is not None:
        table.add_column(f"{made.intervals.level:.0%} interval of the truth")
        for i, row in enumerate(rows):
            row.append(made.intervals.text(i))
        table.caption = f"intervals: {escape(made.intervals.basis)}"
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for column, mean, _ in means_of(made):
        console.print(f"mean of {column}: {mean:.6g}", markup=False)
    if made.records is not None:
        grain = f": answers are multiples of 1/{len(made.records):,}"
        console.print(
            f"{len(made.records):,} synthetic records in the table's own columns"
            f"{grain if made.chosen == 'dualquery' else ''}"
        )
    console.print(f"written to [bold]{escape(str(target))}[/bold]")
