"""Loads: how much of a weighted list of features one record can hold.

The *load* of a record is the sum of the weights of the features with indicators whose indicators
all hold on it. A proven bound on the load of every legal record is a bound on the sensitivity of
noisy features (`strategy`), but what can be proved in seconds may be several times the truth. So a
limit may be set: rows whose load exceeds it are left out by the room. That makes any limit
safe, and one at the largest load that a search finds leaves out nobody in practice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import float64, int32, int64, uint64, void
from numpy.typing import NDArray

from dualquery.queries.counting import ConjunctionCounts
from dualquery.room.features import Features
from dualquery.rows.protocol import Block, BlockRows
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.array_types import kernel, read_only

_STREAK = 25
"""Climbs from a disturbed record before the search starts again from a random one."""

_KICK = 3
"""Columns that are disturbed."""


@dataclass(frozen=True, eq=False)
class Loads:
    """Weighted features, as far as their indicators go; weights are float64 ``(f,)``, >= 0."""

    features: Features
    weights: NDArray[np.float64]

    @cached_property
    def _chosen(self) -> NDArray[np.int64]:
        """Features with indicators, those of one weight together."""
        loaded = np.flatnonzero((self.features.kinds[:, 0] > 0) & (self.weights > 0))
        return loaded[np.argsort(self.weights[loaded], kind="stable")]

    @cached_property
    def members(self) -> NDArray[np.int32]:
        """Bits of the indicators of these features, padded on the right with -1."""
        bits, signs = self.features.bits[self._chosen], self.features.contrasts[self._chosen]
        rows = np.sort(np.where(signs, np.int32(-1), bits).view(np.uint32), axis=1).view(np.int32)
        return np.ascontiguousarray(rows[:, (rows >= 0).any(axis=0)])

    @cached_property
    def attributes(self) -> NDArray[np.int32]:
        """The bits that they ask about, increasing."""
        return np.unique(self.members[self.members >= 0]).astype(np.int32)

    @cached_property
    def classes(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """First feature of each weight, and one more; the weights."""
        weights, first = np.unique(self.weights[self._chosen], return_index=True)
        return np.append(first, len(self._chosen)).astype(np.int64), weights

    def proven(self) -> float:
        """Return a bound on the load of every legal record.

        Of the features with the same columns (and signs), at most one has all its indicators hold:
        a record has one value a column. So the largest weight of each set of columns is added.
        """
        columns = self.features.columns[self._chosen].astype(np.int32)
        # The heaviest come last; reversed, each set of columns first occurs with its largest.
        first = first_occurrences(columns[::-1], self.features.domain.columns)
        leaders = np.unique(first)
        return float(self.weights[self._chosen][::-1][leaders].sum())

    def largest_found(self, climbs: int) -> float:
        """Return the largest load of a legal record that a number of climbs find; deterministic."""
        return max((load for load, _ in self._climbs(climbs, _STREAK)), default=0.0)

    def shares_held(self, climbs: int) -> NDArray[np.float64]:
        """Return how often each feature holds on records at which climbs end: float64, ``(f,)``.

        Every climb starts from a random record; deterministic.
        """
        held = np.zeros(len(self.features))
        for _, record in self._climbs(climbs, 1):
            met = np.isin(self.members, record) | (self.members < 0)
            held[self._chosen] += met.all(axis=1)
        return held / climbs

    def _climbs(self, climbs: int, streak: int) -> Iterator[tuple[float, NDArray[np.int64]]]:
        """Climb from random records, or from disturbed ones for a streak: loads, and bits met."""
        if not len(self._chosen):
            return
        domain = self.features.domain
        columns = np.unique(domain.column_of_bit[self.attributes])
        sizes = domain.sizes[columns]
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        bits = np.flatnonzero(np.isin(domain.column_of_bit, columns))
        members = _numbered(self.members, bits)
        column_of_value = np.repeat(np.arange(len(columns), dtype=np.int32), sizes)
        feature, place = np.nonzero(members >= 0)
        column = column_of_value[members[feature, place]]
        order = np.argsort(column, kind="stable")
        touching = feature[order].astype(np.int32)
        indptr = np.searchsorted(column[order], np.arange(len(columns) + 1)).astype(np.int64)
        weights = np.ascontiguousarray(self.weights[self._chosen])
        generator = np.random.default_rng(0)
        local = 0.0
        record = held = np.zeros(len(columns), np.int32)
        for number in range(climbs):
            drawn = (offsets[:-1] + generator.integers(sizes)).astype(np.int32)
            if number % streak == 0:
                record, local = drawn, 0.0
            else:
                record = held.copy()
                kicked = generator.integers(len(columns), size=_KICK)
                record[kicked] = drawn[kicked]
            given = members, weights, column_of_value, indptr, touching, offsets
            load = climb(record, *given)
            if load >= local:
                held, local = record, load
            yield local, bits[record]


def _numbered(members: NDArray[np.int32], bits: NDArray[Any]) -> NDArray[np.int32]:
    """Return the places of members, padded with -1, among increasing bits."""
    return np.where(members >= 0, np.searchsorted(bits, members), -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class LightCounts:
    """The statistic of two lists of conjunctions over rows, of the first with heavy rows left out.

    Rows of a load above the limit have none of their indicators counted; None counts all rows.
    """

    loads: Loads
    limit: float | None
    light: NDArray[np.int32]
    every: NDArray[np.int32]

    def __call__(self, rows: BlockRows, threads: int, /) -> NDArray[np.int64]:
        """Count in some rows: int64, one a conjunction."""
        light = rows if self.limit is None else LightRows(rows, self.loads, self.limit)
        counts = [np.zeros(0, np.int64)]
        for literals, counted in ((self.light, light), (self.every, rows)):
            if len(literals):
                counts.append(ConjunctionCounts(literals)(counted, threads))
        return np.concatenate(counts)


@dataclass(frozen=True, eq=False)
class LightRows:
    """Rows in which those above a limit have 0 for every bit that loads ask about."""

    rows: BlockRows
    loads: Loads
    limit: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        return self.rows.bits

    def stream(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        for block in self.rows.stream():
            yield LightBlock(block, self.loads, self.limit)


@dataclass(frozen=True, eq=False)
class LightBlock:
    """A block of `LightRows`."""

    block: Block
    loads: Loads
    limit: float

    @property
    def nbytes(self) -> int:
        """Memory of the block in bytes."""
        return self.block.nbytes

    @cached_property
    def _heavy(self) -> NDArray[np.uint64]:
        """Rows above the limit, a bit each: uint64, shape ``(64,)``."""
        loads = self.loads
        words = self.block.pack(loads.attributes)
        totals = np.zeros(64 * words.shape[1])
        members = _numbered(loads.members, loads.attributes)
        add_loads(words, members, *loads.classes, totals)
        heavy = np.packbits(totals > self.limit, bitorder="little")
        return heavy.view("<u8").astype(np.uint64)

    def pack(self, attributes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return the packed bits of increasing ``attributes``."""
        words = self.block.pack(attributes)
        words[np.isin(attributes, self.loads.attributes)] &= ~self._heavy
        return words

    def unpack(self, first_row: int, out: NDArray[np.uint8]) -> None:
        """Write the rows from ``first_row`` of the block on into ``out``."""
        self.block.unpack(first_row, out)
        last = first_row + len(out)
        heavy = np.unpackbits(self._heavy.astype("<u8").view(np.uint8), bitorder="little")
        rows = np.flatnonzero(heavy[first_row:last])
        out[np.ix_(rows, self.loads.attributes)] = 0

    def add_ones(self, counts: NDArray[np.int64]) -> None:
        """Add the number of 1s of each bit to ``counts``."""
        every = np.arange(len(counts), dtype=np.int32)
        counts += np.bitwise_count(self.pack(every)).sum(axis=1, dtype=np.int64)


Array = NDArray[Any]

_LOADS = float64[::1]
_PLANES = 31
"""Binary digits of a count of features."""


@kernel(
    void(read_only(uint64, 2), read_only(int32, 2), read_only(int64), read_only(float64), _LOADS)
)
def add_loads(words: Array, members: Array, starts: Array, weights: Array, loads: Array) -> None:
    """Add to ``loads`` the weights of the features whose indicators each row of a block meets.

    The features of one weight are counted for 64 rows at a time, in binary digits: digit ``j`` of
    all 64 counts is one word. ``words`` are the packed bits, ``(attributes, 64)``; ``members`` the
    rows of these that each feature asks about, one at least, padded on the right with -1; features
    ``starts[c] .. starts[c + 1] - 1`` have the weight ``weights[c]``.
    """
    planes = np.empty((_PLANES, words.shape[1]), np.uint64)
    carry = np.empty(words.shape[1], np.uint64)
    for c in range(len(weights)):
        planes[:] = 0
        used = 0
        for f in range(starts[c], starts[c + 1]):
            for w in range(len(carry)):
                carry[w] = words[members[f, 0], w]
            for i in range(1, members.shape[1]):
                if members[f, i] >= 0:
                    for w in range(len(carry)):
                        carry[w] &= words[members[f, i], w]
            for digit in range(_PLANES):
                left = np.uint64(0)
                for w in range(len(carry)):
                    both = planes[digit, w] & carry[w]
                    planes[digit, w] ^= carry[w]
                    carry[w] = both
                    left |= both
                used = max(used, digit + 1)
                if left == 0:
                    break
        for row in range(len(loads)):
            count = 0
            for digit in range(used - 1, -1, -1):
                word = planes[digit, row >> 6] >> np.uint64(row & 63)
                count = 2 * count + int(word & np.uint64(1))
            loads[row] += weights[c] * count


@kernel(
    float64(
        int32[::1], read_only(int32, 2), read_only(float64), read_only(int32), read_only(int64),
        read_only(int32), read_only(int64),
    ),
)  # fmt: skip
def climb(
    record: Array, members: Array, weights: Array, column_of_value: Array, indptr: Array,
    touching: Array, offsets: Array,
) -> float:  # fmt: skip
    """Change one column at a time while that makes a record's load larger; return the load.

    ``record`` has the value of each column, numbered through all columns. ``members`` are the
    values that each feature asks for, padded on the right with -1; ``indptr`` and ``touching`` the
    features that ask about each column; ``offsets`` the first value of each column, and one more.
    """
    columns = len(record)
    widest = 0
    for c in range(columns):
        widest = max(widest, offsets[c + 1] - offsets[c])
    gain = np.empty(widest)
    unchanged = 0
    c = 0
    while unchanged < columns:
        start = offsets[c]
        gain[:] = 0.0
        for t in range(indptr[c], indptr[c + 1]):
            f = touching[t]
            own = -1
            holds = True
            for i in range(members.shape[1]):
                value = members[f, i]
                if value < 0:
                    break
                if column_of_value[value] == c:
                    own = value - start
                elif record[column_of_value[value]] != value:
                    holds = False
                    break
            if holds and own >= 0:
                gain[own] += weights[f]
        best = record[c] - start
        for v in range(offsets[c + 1] - start):
            if gain[v] > gain[best] * (1.0 + 1e-12):
                best = v
        if best == record[c] - start:
            unchanged += 1
        else:
            record[c] = best + start
            unchanged = 0
        c = (c + 1) % columns
    total = 0.0
    for f in range(len(members)):
        holds = True
        for i in range(members.shape[1]):
            value = members[f, i]
            if value < 0:
                break
            if record[column_of_value[value]] != value:
                holds = False
                break
        if holds:
            total += weights[f]
    return total
