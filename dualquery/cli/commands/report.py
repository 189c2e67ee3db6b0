"""``dualquery report``: one page about a release, for people."""

from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.shared_options import Quiet, ReleaseFolder, given_table, with_options
from dualquery.cli.terminal import start
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import require_new, whole_file


@with_options("csv", "threads")
def report(
    release: ReleaseFolder,
    *,
    out: Annotated[Path, typer.Option(help="The page to make: a file of HTML.")],
    table: Annotated[
        str | None,
        typer.Option("--with", help="The private table: adds the truth; the page is NOT PRIVATE."),
    ] = None,
    csv: str | None,
    threads: int | None,
    quiet: Quiet = False,
) -> None:
    """Make one page about a release: what it protects, what it says, how far to trust it.

    The page needs nothing else: no network, no other file. Without --with it
    holds nothing that the release does not.

    Examples:

      dualquery report survey-release --out report.html

      dualquery report survey-release --out internal.html --with survey.csv
    """
    terminal = start(quiet=quiet, threads=threads)
    if out.suffix.lower() not in (".html", ".htm"):
        raise BadInputError(f"{out}: the page is HTML; name a file that ends in .html")
    require_new(out)
    if out.resolve().is_relative_to(release.resolve()):
        raise BadInputError(f"{out} lies in the release's folder; name a place outside it")
    progress = terminal.progress()
    from dualquery.releases.compare.evaluation import compare
    from dualquery.releases.keep.folder import load_release
    from dualquery.report.page import report as page_of

    progress.phase("reading the release")
    loaded = load_release(release)
    compared = None
    if table is not None:
        compared = compare(loaded, given_table(table, csv), threads=threads, progress=progress)
    progress.phase("making the page")
    text = page_of(loaded, compared)
    with whole_file(out) as part:
        part.write_text(text, encoding="utf-8")
    private = loaded.privacy.private and compared is None
    state = "" if private else "; NOT PRIVATE, for the holder of the table only"
    terminal.say(f"Written to {out} ({out.stat().st_size / 1e3:,.0f} kB){state}")
