"""``dualquery audit``: tries to refute what releases state. Looks at made-up tables only."""

import datetime
import json
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.shared_options import Json, Quiet, with_options
from dualquery.cli.terminal import Terminal, start
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import whole_file
from dualquery.runtime.resources import __version__, thread_count


@with_options("threads")
def audit(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Take less than ten minutes, and not over half an hour.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results: audit.md, a page, and audit.json.")
    ] = None,
    threads: int | None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try to refute what releases state about their privacy. Needs no data.

    Tiny games are enumerated, sensitivities tried by brute force, releases of
    neighbouring tables made again and again, and bugs planted that have to be
    caught: for every mechanism that is installed, those of others too. The exit
    code is 2 if something is wrong, or a planted bug is missed.

    Example:

      dualquery audit --quick --out my-audit
    """
    start(quiet=True, threads=1)  # of each process
    terminal = Terminal(machine=as_json, quiet=quiet)
    progress = terminal.progress()
    from dualquery.audit.findings import to_data, to_markdown, verdict
    from dualquery.audit.suite import run_audit

    if out is not None:
        try:  # before the work begins
            out.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise BadInputError(f"--out {out}: no folder can be made ({fault.strerror})") from None
    found = run_audit(quick=quick, processes=thread_count(threads), progress=progress)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    data = to_data(found, __version__, date)
    page = to_markdown(found, __version__, date)
    if out is not None:
        text = json.dumps(data, indent=2, ensure_ascii=False)
        for name, content in (("audit.md", page), ("audit.json", f"{text}\n")):
            with whole_file(out / name) as part:
                part.write_text(content, encoding="utf-8")
    terminal.emit(data)
    if not as_json:
        terminal.say(page)
    if not found.passed:
        raise BadInputError(f"the audit failed: {verdict(found)}")
