"""``fimi``: one row a line, its item ids separated by blanks; an empty line is an empty row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dualquery.data.opening import CHUNK_BYTES, FilePath, line_chunks
from dualquery.data.readers.integers import parse_integers
from dualquery.data.readers.source import ItemRows


@dataclass(frozen=True)
class FimiSource:
    """A file of the format of the FIMI repository; ids need be neither contiguous nor sorted."""

    path: FilePath
    label: str
    chunk_bytes: int = CHUNK_BYTES

    def width(self) -> int | None:
        """Return None: the format does not say which items there are."""
        return None

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows of one chunk of the file after another."""
        for first_line, chunk in line_chunks(self.path, self.label, self.chunk_bytes):
            lines = parse_integers(np.frombuffer(chunk, np.uint8), self.label, first_line)
            yield ItemRows(lines.indptr, lines.values)
