"""``npz``: a SciPy sparse matrix of 0s and 1s, as `scipy.sparse.save_npz` writes it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dualquery.data.opening import FilePath, open_bytes
from dualquery.data.readers.python_objects import SparseSource
from dualquery.data.readers.source import ItemRows
from dualquery.runtime.errors import BadInputError


@dataclass(frozen=True)
class NpzSource:
    """A file with one sparse matrix, rows by items. It is read whole."""

    path: FilePath
    label: str

    def width(self) -> int | None:
        """Return the number of columns of the matrix."""
        return self._matrix.width()

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block."""
        return self._matrix.item_rows()

    @cached_property
    def _matrix(self) -> SparseSource:
        import scipy.sparse

        with open_bytes(self.path, self.label) as stream:
            content = io.BytesIO(stream.read())
        try:
            matrix = scipy.sparse.load_npz(content)
        except (ValueError, KeyError, NotImplementedError, zipfile.BadZipFile, EOFError) as fault:
            raise BadInputError(
                f"{self.label}: not a matrix written by scipy.sparse.save_npz ({fault})"
            ) from None
        return SparseSource(matrix, self.label)
