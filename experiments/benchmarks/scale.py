"""Whole releases at the paper's largest sizes, each in a process of its own.

- Netflix's shape: from a file of 480,189 x 17,770 bits, 100 million of them ones, to a folder.
- Section 6's largest: 100,000 x 512,000 bits, which are made while they are counted.

Both play DualQuery with its own policy at (1, 0.001), as a user would.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from experiments.harness.processes import measure

EPSILON, DELTA = 1.0, 0.001
EVALUATING = "evaluating the queries"


def run(console: Console, quick: bool) -> dict[str, Any]:
    """Make the releases, and print where their time and memory went."""
    netflix = "netflix-like:20000,2000" if quick else "netflix-like"
    widest = "biased:10000,40000" if quick else "biased:100000,512000"
    queries = (20_000, 10_000) if quick else (500_000, 100_000)
    table = Table(
        Column("table", overflow="fold"), "seconds", "evaluation", "overhead", "CPU s",
        "peak MiB", "rounds x samples",
        title=f"releases at epsilon {EPSILON:g}, delta {DELTA:g}",
    )  # fmt: skip
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ones = measure(write_files, netflix, folder).value
        items = f"1-{np.load(folder / 'table.npz')['shape'][1]}"
        runs = {
            f"{netflix} npz": (f"npz:{folder / 'table.npz'}", None, queries[0]),
            f"{netflix} parquet": (f"parquet:{folder / 'table.parquet'}", items, queries[0]),
            widest: (widest, None, queries[1]),
        }
        for number, (name, arguments) in enumerate(runs.items()):
            took = measure(release_and_save, *arguments, folder / f"release-{number}")
            line = took.value
            evaluation = took.value["phases"][EVALUATING]
            found[name] = {
                "seconds": took.seconds,
                "cpu_s": took.cpu_seconds,
                "evaluation_s": evaluation,
                "overhead_s": took.seconds - evaluation,
                "peak_mib": took.peak_mib,
                **line,
            }
            table.add_row(
                name,
                *(f"{x:.1f}" for x in (took.seconds, evaluation, took.seconds - evaluation)),
                f"{took.cpu_seconds:.1f}",
                "unknown" if took.peak_mib is None else f"{took.peak_mib:,.0f}",
                f"{line['rounds']} x {line['samples']:,}",
            )
    console.print(table)
    return {"netflix_like_ones": ones, "releases": found}


def write_files(source: str, folder: Path) -> int:
    """Write a generated table as ``table.npz`` and ``table.parquet``; return its number of ones.

    Its items are numbered from 1.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from scipy.sparse import csr_array, save_npz

    from dualquery.data.readers.formats import parse_source
    from dualquery.rows.generated.generated_source import GeneratedSource

    table = parse_source(source)
    if not isinstance(table, GeneratedSource):
        raise TypeError(f"{source} is not generated")
    pieces: list[np.ndarray[Any, np.dtype[np.int32]]] = []
    lengths: list[np.ndarray[Any, np.dtype[np.int64]]] = [np.zeros(1, np.int64)]
    form = pa.schema([("items", pa.list_(pa.int32()))])
    with pq.ParquetWriter(folder / "table.parquet", form) as writer:
        for rows in table.item_rows():
            items = rows.items.astype(np.int32)
            lists = pa.ListArray.from_arrays(rows.indptr.astype(np.int32), items)
            writer.write_table(pa.table({"items": lists}))
            pieces.append(items - 1)
            lengths.append(np.diff(rows.indptr))
    indices = np.concatenate(pieces)
    indptr = np.cumsum(np.concatenate(lengths)).astype(np.int32)
    shape = (len(indptr) - 1, len(table.items.items))
    matrix = csr_array((np.ones(len(indices), np.uint8), indices, indptr), shape=shape)
    save_npz(folder / "table.npz", matrix, compressed=False)
    return len(indices)


class PhaseTimes:
    """A listener that notes how long each phase took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._name = "starting"
        self._began = time.perf_counter()

    def phase(self, name: str) -> None:
        """End the phase before, and begin the next."""
        now = time.perf_counter()
        self.seconds[self._name] = now - self._began
        self._name, self._began = name, now

    def step(self, done: int, total: int) -> None:
        """Ignore rounds."""

    def note(self, text: str) -> None:
        """Ignore notes."""


def release_and_save(source: str, columns: str | None, queries: int, out: Path) -> dict[str, Any]:
    """Release a table into a folder; return the seconds of the phases and the parameters."""
    times = PhaseTimes()

    import dualquery

    release = dualquery.release(
        source,
        columns=columns,
        queries=queries,
        mechanism="dualquery",
        epsilon=EPSILON,
        delta=DELTA,
        progress=times,
    )
    times.phase("writing")
    release.save(out)
    times.phase("done")
    chosen = {name: release.parameters[name] for name in ("rounds", "samples", "eta")}
    return {"phases": times.seconds, "queries": queries, **chosen}
