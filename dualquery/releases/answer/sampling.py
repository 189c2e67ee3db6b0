"""New records from a finished release: post-processing, free of charge, as many as one likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import NDArray

from dualquery.estimates.measurements import factors_of
from dualquery.mechanisms.protocol import MOST_RECORDS, Outcome, default_records
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.family import offers, products_of
from dualquery.rules.reading import rules_of
from dualquery.rules.repair import repaired
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import some
from dualquery.runtime.resources import check_memory

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.queries.family import Queries
    from dualquery.releases.keep.folder import Release

BLOCK_CELLS = 1 << 28  # records times bits that are drawn at once: 256 MiB

Source = Literal["model", "records"]
UInt8 = NDArray[np.uint8]


def source_of_records(release: Release) -> Source:
    """Return what new records come from: the model, or the records; `BadInputError` if neither."""
    if release.model is not None:
        return "model"
    if release.records is not None:
        return "records"
    raise BadInputError(f"mechanism {release.chosen!r} makes no synthetic records: take adaptive")


def sampled_blocks(release: Release, count: int, generator: Generator) -> Iterator[UInt8]:
    """Yield ``count`` records in blocks of at most `BLOCK_CELLS` cells: uint8 ``(r, bits)``.

    They keep the rules of the schema. A model is rounded to each block; records of a release are
    taken equally often, but for a random remainder, in random order. `BadInputError` if ``count``
    is negative, or the release has nothing to draw from.
    """
    if count < 0:
        raise BadInputError(f"cannot draw {count} records; ask for 0 or more")
    source_of_records(release)
    rules = rules_of(release.schema)
    free = unasked_bits(release.workload, release) if rules.boxes else None
    step = max(1, BLOCK_CELLS // release.schema.domain.bits)
    for first in range(0, max(count, 1), step):
        size = min(step, count - first)
        if release.model is not None:
            records = release.model.sample(size, generator)
        elif release.records is not None:
            records = resampled(release.records, size, generator)
        yield repaired(records, rules, generator, free)


def sampled_rows(release: Release, count: int, seed: int | None) -> pl.DataFrame:
    """Return new rows in the user's columns; raises as `Release.sample`."""
    check_memory(
        2 * max(count, 0) * release.schema.domain.bits,
        f"{count:,} records of {release.schema.domain.bits:,} bits",
        "draw fewer, or write them to a file: dualquery sample",
    )
    generator, schema = np.random.default_rng(seed), release.read_by
    blocks = sampled_blocks(release, count, generator)
    return pl.concat([schema.decode(block, generator) for block in blocks])


def finished_records(
    outcome: Outcome, wanted: int | None, n: int, seed: int | None
) -> tuple[UInt8 | None, tuple[str, ...]]:
    """Return the records of a release, and remarks on their number.

    ``wanted`` are asked for, None for the mechanism's own; ``n`` is the public number of rows.
    """
    records, model = outcome.records, outcome.model
    if records is None:
        return None, () if wanted is None else ("no synthetic records were made, though asked for",)
    count, bits = records.shape
    if wanted is not None and wanted != count:
        generator = np.random.default_rng(seed)
        if model is not None:
            return model.sample(wanted, generator), ()
        return resampled(records, wanted, generator), (
            f"the {wanted:,} synthetic records repeat the {count:,} that the mechanism made",
        )
    if wanted is None and model is not None and count == default_records(n, model.domain) < n:
        return records, (
            f"{count:,} synthetic records, not one a row, because a release has at most "
            f"{MOST_RECORDS:,}, and fewer of {bits:,} bits, unless --records asks for more",
        )
    return records, ()


def resampled(records: UInt8, count: int, generator: Generator) -> UInt8:
    """Return ``count`` records in random order, each taken equally often but for a remainder."""
    whole = np.repeat(np.arange(len(records)), count // len(records))
    rest = generator.choice(len(records), size=count % len(records), replace=False)
    return np.take(records, generator.permutation(np.concatenate([whole, rest])), axis=0)


def unasked_bits(asked: Queries, known: Outcome | Release) -> NDArray[np.bool_]:
    """Return which bits no query can have been about, and nothing measured: bool ``(bits,)``."""
    domain, conjunctions = asked.domain, conjunctions_of(asked)
    found = np.full(domain.bits, conjunctions is None)
    if conjunctions is not None:
        found[conjunctions.literals[conjunctions.literals >= 0] >> 1] = True
    elif offers(asked, "products") and len((made := products_of(asked)).sizes) == domain.columns:
        found[:] = np.isin(domain.column_of_bit, made.columns)  # not one column of all cells
    if known.measurements is not None:
        found[factors_of(known.measurements.factors, domain)[0]] = True
    return ~found


def unasked(schema: Schema, asked: Queries, known: Outcome | Release) -> list[str]:
    """Return the columns all of whose bits are `unasked_bits`, in their order."""
    none = np.logical_and.reduceat(unasked_bits(asked, known), schema.domain.offsets[:-1])
    return [name for name, own in zip(schema.column_names, none.tolist(), strict=True) if own]


def unasked_note(schema: Schema, asked: Queries, known: Outcome | Release) -> list[str]:
    """Return a sentence on them, if there are any and records have values there."""
    names = [] if known.records is None else unasked(schema, asked, known)
    said = f"No query asks about {some(names)}: what the records have there is made up."
    return [said] if names else []
