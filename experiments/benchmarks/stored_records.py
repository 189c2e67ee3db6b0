"""Generated records that a benchmark holds in memory."""

from __future__ import annotations

import numpy as np

from dualquery.rows.generated.biased import Generator, generated_records
from dualquery.rows.packed import PackedBlock, Records


def stored_records(generator: Generator) -> Records:
    """Return a generator's table as packed blocks."""
    records = generated_records(generator)
    everything = np.arange(records.bits, dtype=np.int32)
    blocks = (PackedBlock(records.block(block, everything)) for block in range(records.blocks))
    return Records(records.n, records.bits, tuple(blocks))
