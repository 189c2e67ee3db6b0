"""``dualquery sample``: new records from a release."""

from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.shared_options import Json, Quiet, ReleaseFolder, with_options
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError


@with_options("csv")
def sample(
    release: ReleaseFolder,
    *,
    records: Annotated[int, typer.Option(help="Number of records.", min=1)],
    out: Annotated[Path, typer.Option(help="File to make: .csv or .parquet.")],
    seed: Annotated[
        int | None,
        typer.Option(help="Makes the records reproducible; may be told to others.", min=0),
    ] = None,
    csv: str | None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw new synthetic records from a release; costs no privacy, however many.

    They come from the fitted model that the release keeps. Where it keeps none,
    its own records are repeated; the output says so. Without --csv, a CSV file is
    written as the release's table was, if that was a CSV file.

    Examples:

      dualquery sample my-release --records 1000000 --out rows.parquet

      dualquery sample my-release --records 1000 --out rows.csv --csv "delimiter=;,decimal=,"
    """
    import numpy as np

    from dualquery.data.readers.csv import Dialect
    from dualquery.data.schema.table import TableSchema
    from dualquery.releases.answer.sampling import sampled_blocks, source_of_records, unasked_note
    from dualquery.releases.answer.table_files import check_target, write_frames
    from dualquery.releases.keep.folder import load_release

    terminal = Terminal(machine=as_json, quiet=quiet)
    check_target(out)
    if csv is not None and out.suffix != ".csv":
        raise BadInputError(f"{out}: --csv says how a CSV file is written; this is none")
    made = load_release(release)
    kept = made.written_as or made.options.get("csv")  # the latter of older releases
    told = "" if csv is None else f" as --csv {csv!r} says"
    if csv is None and out.suffix == ".csv" and isinstance(kept, str):
        csv = kept
        told = f" like the table of the release (--csv {kept!r})"
    dialect = None if csv is None else Dialect.parse(csv)
    source = source_of_records(made)
    progress = terminal.progress()
    progress.phase("drawing records")
    generator = np.random.default_rng(seed)
    blocks = sampled_blocks(made, records, generator)
    schema = made.read_by
    tables = (schema.decode(block, generator) for block in blocks)
    if isinstance(schema, TableSchema) and out.suffix == ".csv":
        tables = (schema.with_missing_texts(table) for table in tables)
    write_frames(tables, out, dialect)
    written = {} if csv is None else {"csv": csv}
    terminal.emit({"records": records, "source": source, "out": str(out), **written})
    if not terminal.machine:
        own = 0 if made.records is None else len(made.records)
        said = "the model" if source == "model" else f"its {own:,} records, which repeat: no model"
        terminal.say(f"{records:,} records from {said}; written to {out}{told}")
        for note in unasked_note(made.schema, made.workload, made):
            terminal.say(note)
