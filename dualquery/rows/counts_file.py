"""Exact counts that the operator keeps in a file, so that a longer workload counts only new ones.

The file holds private answers without any noise. It is never part of a release, is readable by its
owner only (where the system knows that), and is bound to one table and schema by their digest.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.opening import FilePath
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.rows.repeats import first_occurrences, side_by_side
from dualquery.runtime.array_files import read_arrays
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.explaining import explain_log
from dualquery.runtime.versions import __version__

_log = logging.getLogger(__name__)

FORMAT_VERSION = 1
_READ_BYTES = 1 << 20

LARGEST = 1 << 34
"""Bytes of a file's arrays: those of more than 500 million 3-way conjunctions."""


def digest(files: Iterable[FilePath], schema: TableSchema | ItemSchema, *read_as: object) -> str:
    """Return what identifies a table: SHA-256 of all that decides what its rows are as bits.

    Counts of rows that were read otherwise would be of another table, and move otherwise than what
    is charged for: by another dialect a row may count in two cells of a marginal at once, and the
    digits of another column's numbers may go beyond this column's range.

    Parameters
    ----------
    files
        Their content counts.
    schema
        With the numbers that rows carry.
    read_as
        What else decides it: the format and its dialect, units, weights. Their ``repr`` counts.
    """
    total = hashlib.sha256(json.dumps(schema.to_dict(), sort_keys=True).encode())
    total.update(repr((__version__, schema.grids, read_as)).encode())
    for file in files:
        content = hashlib.sha256()
        with file.open("rb") as stream:
            while piece := stream.read(_READ_BYTES):
                content.update(piece)
        total.update(content.digest())
    return total.hexdigest()


@dataclass(frozen=True, eq=False)
class CountsFile:
    """Counts of conjunctions in a file, which need not exist yet.

    Parameters
    ----------
    path
        The file.
    key
        Digest of the table and the schema.

    Raises
    ------
    BadInputError
        If the file is no such file, or holds counts of another table.
    """

    path: Path
    key: str

    def __post_init__(self) -> None:
        _log.warning("%s holds exact private answers: keep it from everyone else", self.path)
        self._load()  # what is wrong with the file must be known before the rows are read

    def complete(
        self,
        literals: NDArray[np.int32],
        codes: int,
        count: Callable[[NDArray[np.int32]], NDArray[np.int64]],
    ) -> NDArray[np.int64]:
        """Return the counts of conjunctions; count those that are new, and add them to the file.

        Parameters
        ----------
        literals
            int32, shape ``(m, k)``: literal codes, each row sorted and padded with -1.
        codes
            Number of different literal codes.
        count
            Counts conjunctions in all rows.

        Returns
        -------
        int64, shape ``(m,)``.

        Raises
        ------
        BadInputError
            If the file cannot be read or written.
        """
        known, counts = self._load()
        if known.size and not -1 <= known.min() <= known.max() < codes:
            raise BadInputError(
                f"--answers-cache {self.path}: damaged, its conjunctions have literals that the "
                "table has not; name another file, or delete this one"
            )
        both = side_by_side(known, literals)
        first = first_occurrences(both, codes)
        wanted = np.arange(len(known), len(both))
        new = wanted[first[wanted] == wanted]
        if len(new):
            both_counts = np.zeros(len(both), np.int64)
            both_counts[: len(known)] = counts
            both_counts[new] = count(literals[new - len(known)])
            kept = np.concatenate((np.arange(len(known)), new))
            self._store(both[kept], both_counts[kept])
            counts = both_counts
        known_before = f"{len(literals) - len(new):,} answers were known"
        explain_log.info(f"{self.path}: {known_before}, {len(new):,} were counted and kept")
        return np.asarray(counts[first[wanted]])

    def _load(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the stored conjunctions, int32 ``(m, k)``, and their counts."""
        if not self.path.exists():
            return np.empty((0, 1), np.int32), np.empty(0, np.int64)
        try:
            with self.path.open("rb") as stream:
                stored = read_arrays(stream, LARGEST)
            version, key = int(stored["format_version"]), str(stored["key"])
            literals, counts = _checked(stored["literals"], stored["counts"])
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise BadInputError(
                f"--answers-cache {self.path}: not a file of answers ({type(fault).__name__}: "
                f"{fault}); name another"
            ) from None
        if version != FORMAT_VERSION:
            raise BadInputError(
                f"--answers-cache {self.path}: format {version} with {len(counts)} answers to "
                f"{len(literals)} queries, where format {FORMAT_VERSION} is known; name another"
            )
        if key != self.key:
            raise BadInputError(
                f"--answers-cache {self.path}: holds answers of another table or schema, or the "
                "table has changed; name another file, or delete this one"
            )
        return literals, counts

    def _store(self, literals: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
        """Replace the file at once, so that it is whole or as before."""
        draft: Path | None = None
        try:
            # Made with mode 0600.
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
            draft = Path(name)
            with os.fdopen(handle, "wb") as stream:
                np.savez(
                    stream,
                    format_version=np.array(FORMAT_VERSION),
                    key=np.array(self.key),
                    literals=literals,
                    counts=counts,
                )
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self.path)
        except OSError as fault:
            if draft is not None:
                draft.unlink(missing_ok=True)
            raise BadInputError(
                f"--answers-cache {self.path}: cannot be written ({fault.strerror or fault}); the "
                "answers were not kept, and nothing was released"
            ) from None


def _checked(
    literals: NDArray[Any], counts: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the stored arrays; raise `ValueError` if they are not conjunctions and counts."""
    if (
        literals.dtype != np.int32
        or counts.dtype != np.int64
        or (literals.ndim, counts.ndim) != (2, 1)
        or len(literals) != len(counts)
        or np.any(counts < 0)
    ):
        raise ValueError(
            f"{literals.dtype} of shape {literals.shape} and {counts.dtype} of shape {counts.shape}"
        )
    return literals, counts
