"""``dualquery answer``: answer queries from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.options import Json
from dualquery.cli.terminal import Terminal
from dualquery.runtime.escaping import terminal_line


def answer(
    release: Annotated[Path, typer.Argument(help="Folder of a release.")],
    queries: Annotated[
        list[str], typer.Argument(help="Conjunctions, such as 'age=30-35 & sex!=Female'.")
    ],
    as_json: Json = False,
) -> None:
    """Answer conjunctions from a release; costs no privacy.

    A query of the release's workload gets its released answer. Any other query
    is answered from the synthetic records; nothing is known of its error. A
    value stands for its whole bucket or category; the output shows the bucket
    where it is not what you typed.

    Example:

      dualquery answer my-release "age=30-35 & sex=Female & income=>50K"
    """
    from dualquery.releases.answering import answer_queries
    from dualquery.releases.folder import load_release

    terminal = Terminal(machine=as_json)
    found = answer_queries(load_release(release), queries)
    terminal.emit({"answers": found})
    if not as_json:
        for line in found:
            asked, answered = terminal_line(line["query"]), terminal_line(line["answered"])
            shown = asked if asked == answered else f"{asked}\tanswered: {answered}"
            if line["interval"]:
                low, high = line["interval"]
                shown += f"\t{line['level']:.0%} interval of the truth: {low:.6f} to {high:.6f}"
            typer.echo(f"{line['answer']:.6f}\t{line['source']}\t{shown}")
        if any(line["source"] == "synthetic" for line in found):
            typer.echo(
                "synthetic: not in the release's workload, so computed from its records; nothing "
                "is known of the error",
                err=True,
            )
        for basis in sorted({line["basis"] for line in found if line["basis"]}):
            typer.echo(f"intervals: {terminal_line(basis)}", err=True)
