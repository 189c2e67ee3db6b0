"""Random records for studies of scale, public, made bit by bit when they are asked for.

What is stored is a seed: a block of any columns is computed from (seed, column, block). A table of
6.4 GB is evaluated in as much memory as one block of the columns that the queries mention.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.rows.generated import kernels as generate_kernels
from dualquery.rows.packed import Records, count_words, unpack_rows, zero_words
from dualquery.rows.row_sums import BLOCK_ROWS
from dualquery.runtime.errors import BadInputError

_UNPACKED_COLUMNS = 1 << 14


class Generator(Protocol):
    """Makes the packed bits of a table that is nowhere stored."""

    @property
    def n(self) -> int:
        """Number of records."""
        ...

    @property
    def bits(self) -> int:
        """Number of bits of a record."""
        ...

    def fill(self, block: int, columns: NDArray[np.int32], out: NDArray[np.uint64]) -> None:
        """Write increasing ``columns`` of a block of `BLOCK_ROWS` records.

        ``out`` is uint64, shape ``(len(columns), BLOCK_WORDS)``, zeroed. What is written beyond the
        last record does not matter.
        """
        ...


@dataclass(frozen=True, eq=False)
class Biased:
    """Independent bits, each with a bias of its own, uniform on [0, 1].

    This is the data of DualQuery's scaling study (Section 6). A bias is a multiple of 2^-16.
    Raises `BadInputError` if a number is out of its range.
    """

    n: int  # number of records, at least 1
    bits: int  # number of bits of a record, at least 1
    seed: int = 0  # 0 .. 2^64 - 1; the same seed gives the same records

    def __post_init__(self) -> None:
        check_shape(self.n, self.bits, self.seed)

    def fill(self, block: int, columns: NDArray[np.int32], out: NDArray[np.uint64]) -> None:
        """Write some bits of a block (see `Generator`)."""
        generate_kernels.fill_biased(np.uint64(self.seed), block, columns, out)


@dataclass(frozen=True, eq=False)
class GeneratedBlock:
    """A block of records that are made when asked for (see `dualquery.rows.row_sums.Block`)."""

    generator: Generator  # makes the bits
    number: int  # of the block
    columns: NDArray[np.int32]  # increasing: which column of the generator each bit is

    @property
    def nbytes(self) -> int:
        """Nothing is stored."""
        return 0

    def pack(self, attributes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return the packed bits of increasing ``attributes``."""
        words = zero_words(len(attributes))
        self.generator.fill(self.number, self.columns[attributes], words)
        rows = self.generator.n - self.number * BLOCK_ROWS
        if rows < BLOCK_ROWS:
            full, rest = divmod(rows, 64)
            words[:, full] &= np.uint64((1 << rest) - 1)
            words[:, full + 1 :] = 0
        return words

    def unpack(self, first_row: int, out: NDArray[np.uint8]) -> None:
        """Write the rows from ``first_row`` of the block on into ``out`` as 0/1."""
        for attributes in self._pieces():
            words = self.pack(attributes)
            piece = np.empty((len(out), len(attributes)), np.uint8)
            unpack_rows(words, first_row, piece)
            out[:, attributes[0] : attributes[-1] + 1] = piece

    def add_ones(self, counts: NDArray[np.int64]) -> None:
        """Add the number of 1s of each bit to ``counts``."""
        for attributes in self._pieces():
            count_words(self.pack(attributes), counts[attributes[0] : attributes[-1] + 1])

    def _pieces(self) -> list[NDArray[np.int32]]:
        """Return all bits, computed a few at a time so that little memory is needed."""
        return [
            np.arange(start, min(start + _UNPACKED_COLUMNS, len(self.columns)), dtype=np.int32)
            for start in range(0, len(self.columns), _UNPACKED_COLUMNS)
        ]


def generated_records(generator: Generator, columns: NDArray[np.int64] | None = None) -> Records:
    """Return a generator's table, or some increasing columns of it, computed, not stored."""
    chosen = (np.arange(generator.bits) if columns is None else columns).astype(np.int32)
    blocks = -(-generator.n // BLOCK_ROWS)
    stored = tuple(GeneratedBlock(generator, number, chosen) for number in range(blocks))
    return Records(generator.n, len(chosen), stored)


def biased(n: int, d: int, seed: int) -> Records:
    """Return ``n`` records of ``d`` independent bits, each with its own bias (see `Biased`)."""
    return generated_records(Biased(n, d, seed))


def check_shape(n: int, bits: int, seed: int) -> None:
    """Raise `BadInputError` if a parameter that all generators have is out of its range."""
    if n < 1 or bits < 1:
        raise BadInputError(f"generator: n and d must be at least 1, found n = {n} and d = {bits}")
    if bits >= 2**30:
        raise BadInputError(f"generator: d must be below 2^30, found {bits}")
    if not 0 <= seed < 2**64:
        raise BadInputError(f"generator: the seed must be 0 .. 2^64 - 1, found {seed}")
