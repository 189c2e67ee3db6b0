"""``dualquery sample``: new records from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.options import Json, Quiet, ReleaseFolder
from dualquery.cli.terminal import Terminal


def sample(
    release: ReleaseFolder,
    records: Annotated[int, typer.Option(help="Number of records.", min=1)],
    out: Annotated[Path, typer.Option(help="File to make: .csv or .parquet.")],
    seed: Annotated[
        int | None,
        typer.Option(help="Makes the records reproducible; may be told to others.", min=0),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw new synthetic records from a release; costs no privacy, however many.

    They come from the fitted model that the release keeps. Where it keeps none,
    its own records are repeated; the output says so.

    Example:

      dualquery sample my-release --records 1000000 --out rows.parquet
    """
    import numpy as np

    from dualquery.releases.folder import load_release
    from dualquery.releases.sampling import sampled_blocks, source_of_records
    from dualquery.releases.table_files import check_target, write_frames

    terminal = Terminal(machine=as_json, quiet=quiet)
    check_target(out)
    made = load_release(release)
    source = source_of_records(made)
    with terminal.progress() as progress:
        progress.phase("drawing records")
        generator = np.random.default_rng(seed)
        blocks = sampled_blocks(made, records, generator)
        schema = made.drawn_by
        write_frames((schema.decode(block, generator) for block in blocks), out)
    terminal.emit({"records": records, "source": source, "out": str(out)})
    if not terminal.machine:
        from rich.markup import escape

        own = 0 if made.records is None else len(made.records)
        said = "the model" if source == "model" else f"its {own:,} records, which repeat: no model"
        terminal.console.print(
            f"{records:,} records from {said}; written to [bold]{escape(str(out))}[/bold]"
        )
