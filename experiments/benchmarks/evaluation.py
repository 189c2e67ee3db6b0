"""Counting 500,000 signed 3-way conjunctions on random bits of the shape of KDD Cup 99.

The limit to measure against: a pass that reads the three packed columns of each query from memory
moves ``3 n m / 8`` bytes. These "effective bytes" a second may exceed the bandwidth of the memory,
because a block of rows stays in the caches for all queries.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dualquery.data.domain import Domain
from dualquery.queries.generate.random import random_conjunctions
from dualquery.rows.generated.biased import Biased, Generator, generated_records
from dualquery.rows.packed import PackedBlock, Records
from experiments.benchmarks.alternatives import ALTERNATIVES
from experiments.benchmarks.timing import fastest, stream_bandwidth

ROWS, BITS, QUERIES = 494_021, 396, 500_000
SAMPLE = 200
"""Queries on which the alternatives are timed; their times are scaled to the whole workload."""


def stored_records(generator: Generator) -> Records:
    """Return a generator's table as packed blocks in memory."""
    records = generated_records(generator)
    everything = np.arange(records.bits, dtype=np.int32)
    blocks = (PackedBlock(records.block(block, everything)) for block in range(records.blocks))
    return Records(records.n, records.bits, tuple(blocks))


def run(console: Console, quick: bool) -> dict[str, Any]:
    """Measure, check that all agree, and print a table."""
    rows, queries = (20_000, 20_000) if quick else (ROWS, QUERIES)
    cores = os.cpu_count() or 1
    records = stored_records(Biased(rows, BITS, seed=1))
    workload = random_conjunctions(Domain.binary(BITS), queries, seed=1)
    effective = 3 * rows * queries / 8

    table = Table(
        "counted by",
        "threads",
        "seconds",
        "GB/s",
        "x stream",
        "slower by",
        title=f"{queries:,} signed 3-way conjunctions on {rows:,} x {BITS} random bits\n"
        "GB/s are effective: 3 n m / 8 bytes",
    )
    ours: list[dict[str, Any]] = []
    for threads in sorted({1, cores}):
        seconds, counts = fastest(lambda t=threads: workload.counts(records, t), 3)  # type: ignore[misc]
        stream = stream_bandwidth(threads)
        line = {
            "threads": threads,
            "seconds": seconds,
            "effective_bytes_per_second": effective / seconds,
            "stream_bytes_per_second": stream,
            "times_stream": effective / seconds / stream,
        }
        ours.append(line)
        speed = f"{effective / seconds / 1e9:.1f}"
        table.add_row(
            "dualquery", f"{threads}", f"{seconds:.2f}", speed, f"{line['times_stream']:.2f}", ""
        )

    sample = workload.literals[:SAMPLE]
    bits = np.asfortranarray(records.dense_rows(0, rows))
    others: dict[str, Any] = {}
    for other in ALTERNATIVES:
        if not other.installed:
            others[other.name] = None
            table.add_row(other.name, "", f"{other.module} is not installed", "", "", "")
            continue
        sample_seconds, found = fastest(other.prepare(bits, sample), 2)
        if not np.array_equal(found, counts[:SAMPLE]):
            raise RuntimeError(f"{other.name} counts otherwise")
        seconds = sample_seconds * queries / SAMPLE
        ratios = [seconds / line["seconds"] for line in ours]
        others[other.name] = {
            "sample_seconds": sample_seconds,
            "scaled_seconds": seconds,
            "times_ours": {str(line["threads"]): r for line, r in zip(ours, ratios, strict=True)},
        }
        table.add_row(
            other.name,
            "own",
            f"{seconds:,.1f}",
            f"{effective / seconds / 1e9:.2f}",
            "",
            " / ".join(f"{ratio:.0f}" for ratio in ratios),
        )
    console.print(table)
    return {
        "rows": rows,
        "bits": BITS,
        "queries": queries,
        "effective_bytes": effective,
        "dualquery": ours,
        "contenders": others,
    }
