"""``biased`` and ``netflix-like``: tables that are computed, not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.readers.source import ItemRows, ItemSource
from dualquery.data.schema.column_choice import MAX_ITEMS
from dualquery.data.schema.items import ItemSchema
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.rows.generated.biased import Generator
    from dualquery.rows.packed import Records

_PIECE = 1 << 12
"""Columns whose bits are unpacked at a time."""


@dataclass(frozen=True, eq=False)
class GeneratedSource(ItemSource):
    """A generator's table, as rows or, without making any, as records."""

    generator: Generator  # makes the bits
    items: ItemSchema  # the id of each bit's item
    label: str  # what messages call the source

    @property
    def schema(self) -> ItemSchema:  # type: ignore[override]
        """The items: the table is about no real person, so they are public."""
        return self.items

    def records(self, schema: ItemSchema) -> Records:
        """Return records whose bits are made when they are asked for."""
        from dualquery.rows.generated.biased import generated_records

        columns = np.searchsorted(self.items.items, schema.items)
        known = self.items.items[np.minimum(columns, len(self.items.items) - 1)] == schema.items
        if not known.all():
            raise BadInputError(
                f"{self.label}: there is no item {schema.items[np.argmin(known)]}; there are "
                f"{self.items.items[0]} to {self.items.items[-1]}"
            )
        if len(schema.items) < len(self.items.items) and schema.outside == "error":
            raise BadInputError(
                f"{self.label}: the schema {schema.name!r} has only {len(schema.items):,} of the "
                f"{len(self.items.items):,} items; set outside to drop"
            )
        return generated_records(self.generator, columns)

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block."""
        from dualquery.rows.generated.biased import generated_records

        records = generated_records(self.generator)
        columns = np.arange(records.bits, dtype=np.int32)
        pieces = np.split(columns, range(_PIECE, records.bits, _PIECE))
        for block in range(records.blocks):
            found = [
                np.nonzero(_flags(records.block(block, piece))) + np.array([[piece[0]], [0]])
                for piece in pieces
            ]
            bits, rows = np.concatenate(found, axis=1)
            lengths = np.bincount(rows, minlength=records.rows_in_block(block))
            in_order = bits[np.argsort(rows, kind="stable")]
            yield ItemRows(np.append(0, np.cumsum(lengths)), self.items.items[in_order])


def _flags(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")


def open_biased(parameters: str, label: str) -> GeneratedSource:
    """Return the source ``biased:N,D[,SEED]``."""
    from dualquery.rows.generated.biased import Biased

    n, d, seed = _numbers(parameters, label, "N,D[,SEED]", (None, None, 0))
    return GeneratedSource(Biased(n, d, seed), ItemSchema.numbered(d, "biased"), label)


def open_netflix_like(parameters: str, label: str) -> GeneratedSource:
    """Return the source ``netflix-like[:N[,D[,SEED]]]``; items are numbered from 1, as movies."""
    from dualquery.rows.generated.netflix_like import MOVIES, USERS, NetflixLike

    n, d, seed = _numbers(parameters, label, "N,D,SEED", (USERS, MOVIES, 0))
    generator = NetflixLike(n, d, seed)  # refuses what is too large
    movies = ItemSchema(np.arange(1, d + 1, dtype=np.int64), "netflix-like", declared=True)
    return GeneratedSource(generator, movies, label)


def _numbers(
    text: str, label: str, form: str, defaults: Sequence[int | None]
) -> tuple[int, int, int]:
    """Return whole numbers separated by commas; the last ones have defaults."""
    tokens = [token.strip() for token in text.split(",")] if text.strip() else []
    missing = None in defaults[len(tokens) :]
    whole = all(token.isascii() and token.isdigit() and len(token) <= 20 for token in tokens)
    if missing or not whole or len(tokens) > len(defaults):
        raise BadInputError(f"{label}: {text!r} found where {form} is expected, whole numbers")
    n, d, seed = (*map(int, tokens), *(value or 0 for value in defaults[len(tokens) :]))
    if d > MAX_ITEMS:
        raise BadInputError(f"{label}: {d:,} items; at most {MAX_ITEMS:,} are possible")
    return n, d, seed
