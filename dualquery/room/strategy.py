"""How features are measured: what noise of given scales costs, proven from public quantities.

Feature j gets independent Gaussian noise of standard deviation ``s_j``. With ``v_j(x)`` its value
on a record x, replacing x by x' costs what sensitivity 1 and noise of scale 1 would cost where

    max over x, x' of  sum_j ((v_j(x) - v_j(x')) / s_j)^2                              (1)

is 1: the Renyi divergences of independent noises add up (Canonne, Kamath and Steinke 2020,
Theorem 14). Where x is added or removed, what x contributes takes the place of the difference:

    max over x of  sum_j (v_j(x) / s_j)^2                                              (2)

**Lemma, replace one.** `Strategy.sensitivity` bounds (1):

- features of contrasts only (signs are contrasts) add what `sensitivity.contrasts` proves; their
  blocks are whole (`features.Features`) and of one scale;
- a feature of indicators is 0 or 1, and ``(a - b)^2 <= a^2 + b^2`` for these;
- one of indicators and signs is 0, 1 or -1, and ``(a - b)^2 <= 2 a^2 + 2 b^2``: two records that
  both meet the indicators may differ in the sign, by 2;
- so all features with indicators add at most the loads of x and of x', with weights
  ``1 / s^2`` and ``2 / s^2``: at most twice the largest load.

The *load* of a record is the sum of the weights of the features with indicators whose indicators
all hold on it. What can be proved in seconds of the largest load may be several times the truth. So
a limit may be set: rows whose load exceeds it are left out by the room. That makes any limit safe,
and one at the largest load that a search finds leaves out nobody in practice.

**Lemma, add or remove.** The square of a feature with indicators is 1 on a record that meets them
all, whatever the signs, and else 0. So (2) *is* the largest load, with weights ``1 / s^2`` for
features of indicators and for mixed ones alike, plus the squared lengths of the blocks of
contrasts, which are the same on every record. A mixed feature costs half as much here as in (1):
there is no other record whose sign could be the opposite one. Of the features with the same columns
a record meets the indicators of one at most, so each set of columns adds its largest weight once
(`Loads.proven`).

**Lemma, units.** Between neighbours by a unit of at most K rows (`dualquery.privacy.neighbours`)
the length is at most K times that of one step. Where a unit is replaced, steps of both kinds occur,
and the larger bound counts; loads have the weights of replacing a row, which are those of adding
one or larger.

A row whose load, with the weights of the relation, is above the limit has 0 for every feature with
indicators, and keeps its features of contrasts only. What a row adds to the sums is so a function
of this row alone, neighbours differ in what one row adds, and the bounds above hold for rows of
either kind: the load of one that is left out is 0.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numba import float64, int32, int64, uint64, void
from numpy.typing import NDArray

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.counting import ConjunctionCounts
from dualquery.room.features import Features, Monomials
from dualquery.room.sensitivity.contrasts import largest_distance, squared_lengths
from dualquery.rows.repeats import first_occurrences
from dualquery.rows.row_sums import Block, BlockRows, Rows
from dualquery.runtime.array_types import kernel, read_only

_STREAK = 25
"""Climbs from a disturbed record before the search starts again from a random one."""

_KICK = 3
"""Columns that are disturbed."""

_HEAVY_ROWS = (
    "a row that adds more than a public limit to what is measured counts as missing in columns of "
    "three or more values; a search of all possible records found none that would"
)


@dataclass(frozen=True, eq=False)
class Loads:
    """Weighted features, as far as their indicators go; weights are float64 ``(f,)``, >= 0."""

    features: Features
    weights: NDArray[np.float64]

    @cached_property
    def _chosen(self) -> NDArray[np.int64]:
        """Features with indicators."""
        return np.flatnonzero(self.features.kinds[:, 0] > 0)

    @cached_property
    def attributes(self) -> NDArray[np.int32]:
        """The bits that they ask about, increasing."""
        return np.unique(self.features.indicators[self.features.indicators >= 0])

    @cached_property
    def by_weight(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        """Their indicators, increasing in weight; first of each weight, and one more; weights."""
        order = np.argsort(self.weights[self._chosen], kind="stable")
        weights, first = np.unique(self.weights[self._chosen][order], return_index=True)
        starts = np.append(first, len(order)).astype(np.int64)
        return self.features.indicators[order], starts, weights

    def proven(self) -> float:
        """Return a bound on the load of every legal record.

        Of the features with the same columns (and signs), at most one has all its indicators hold:
        a record has one value a column. So the largest weight of each set of columns is added.
        """
        heaviest_first = self._chosen[np.argsort(-self.weights[self._chosen], kind="stable")]
        columns = self.features.columns[heaviest_first].astype(np.int32)
        leaders = np.unique(first_occurrences(columns, self.features.domain.columns))
        return float(self.weights[heaviest_first][leaders].sum())

    def largest_found(self, climbs: int) -> float:
        """Return the largest load of a legal record that a number of climbs find; deterministic."""
        return max(self._climbs(climbs, _STREAK)[0], default=0.0)

    def shares_held(self, climbs: int) -> NDArray[np.float64]:
        """Return how often each feature holds on records at which climbs end: float64, ``(f,)``.

        Every climb starts from a random record; deterministic.
        """
        held = np.zeros(len(self.features))
        held[self._chosen] = self._climbs(climbs, 1)[1] / climbs
        return held

    def _climbs(self, climbs: int, streak: int) -> tuple[list[float], NDArray[np.int64]]:
        """Climb; return the loads at ends, and at how many each feature with indicators holds."""
        # From random records, or from disturbed ones for a streak.
        loads = list[float]()
        met = np.zeros(len(self._chosen), np.int64)
        if not len(self._chosen):
            return loads, met
        sizes, *laid_out = _laid_out(self.features)
        weights, offsets = self.weights[self._chosen], laid_out[-1]
        generator, local = np.random.default_rng(0), 0.0
        record = held = np.zeros(len(sizes), np.int32)
        for number in range(climbs):
            drawn = (offsets[:-1] + generator.integers(sizes)).astype(np.int32)
            if number % streak == 0:
                record, local = drawn, 0.0
            else:
                record = held.copy()
                kicked = generator.integers(len(sizes), size=_KICK)
                record[kicked] = drawn[kicked]
            loads.append(climb(record, weights, *laid_out, met))
            if loads[-1] >= local:
                held, local = record, loads[-1]
        return loads, met


@lru_cache(maxsize=1)  # a search for scales climbs the same features again and again
def _laid_out(features: Features) -> tuple[NDArray[Any], ...]:
    """Return the numbers of values of the columns, and what `climb` takes of the features."""
    domain, members = features.domain, features.indicators
    columns = np.unique(domain.column_of_bit[members[members >= 0]])
    sizes = domain.sizes[columns]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    members = _numbered(members, np.flatnonzero(np.isin(domain.column_of_bit, columns)))
    feature, place = np.nonzero(members >= 0)
    members[members < 0] = offsets[-1]  # which every record holds
    own, others = members[feature, place], members[feature]
    others[np.arange(len(feature)), place] = offsets[-1]
    others.sort(axis=1)
    order = np.lexsort((others[:, 0], own))  # what is met or not in one go stands together
    touching, others, own = feature[order].astype(np.int32), others[order], own[order]
    changes = (np.diff(own) != 0) | (np.diff(others[:, 0]) != 0)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1, [len(own)]))
    indptr = np.searchsorted(own[starts[:-1]], np.arange(offsets[-1] + 1))
    return sizes, members, touching, others, starts, indptr, offsets


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
        members, *classes = loads.by_weight
        add_loads(words, _numbered(members, loads.attributes), *classes, totals)
        return np.packbits(totals > self.limit, bitorder="little").view("<u8").astype(np.uint64)

    def pack(self, attributes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return the packed bits of increasing ``attributes``."""
        words = self.block.pack(attributes)
        words[np.isin(attributes, self.loads.attributes)] &= ~self._heavy
        return words

    def unpack(self, first_row: int, out: NDArray[np.uint8]) -> None:
        """Write the rows from ``first_row`` of the block on into ``out``."""
        self.block.unpack(first_row, out)
        heavy = np.unpackbits(self._heavy.astype("<u8").view(np.uint8), bitorder="little")
        rows = np.flatnonzero(heavy[first_row : first_row + len(out)])
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
        int32[::1], read_only(float64), read_only(int32, 2), read_only(int32), read_only(int32, 2),
        read_only(int64), read_only(int64), read_only(int64), int64[::1],
    ),
)  # fmt: skip
def climb(
    record: Array, weights: Array, members: Array, touching: Array, others: Array, starts: Array,
    indptr: Array, offsets: Array, met: Array,
) -> float:  # fmt: skip
    """Change one column at a time while that makes a record's load larger; return the load.

    ``record`` has the value of each column, numbered through all columns. ``members`` are the
    values that each feature asks for, padded with ``offsets[-1]``; ``touching`` the features that
    ask for each value, and ``others`` what else these ask for, padded likewise. Those with the same
    first of these stand together, from ``starts`` on, and those of each value from ``indptr`` on in
    ``starts``. ``offsets`` are the first value of each column, and one more. ``met`` counts the
    features that hold in the end.
    """
    columns = len(record)
    held = np.zeros(offsets[-1] + 1, np.bool_)
    held[record] = held[-1] = True
    gain = np.empty(offsets[-1])
    c = unchanged = 0
    while unchanged < columns:
        for v in range(offsets[c], offsets[c + 1]):
            gain[v] = 0.0
            for s in range(indptr[v], indptr[v + 1]):
                if not held[others[starts[s], 0]]:
                    continue
                for t in range(starts[s], starts[s + 1]):
                    holds = True
                    for i in range(1, others.shape[1]):
                        holds &= held[others[t, i]]
                    gain[v] += weights[touching[t]] * holds
        best = record[c]
        for v in range(offsets[c], offsets[c + 1]):
            if gain[v] > gain[best] * (1.0 + 1e-12):
                best = v
        unchanged = unchanged + 1 if best == record[c] else 0
        held[record[c]] = False
        held[best] = True
        record[c] = best
        c = (c + 1) % columns
    total = 0.0
    for f in range(len(members)):
        holds = True
        for i in range(members.shape[1]):
            holds &= held[members[f, i]]
        total += weights[f] * holds
        met[f] += holds
    return total


Int64 = NDArray[np.int64]

_LEAST_SCALE, _LARGEST_SCALE = 1e-100, 1e100
"""Within these, no weight and no sum of weights that matters leaves double precision."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """How the features are measured."""

    features: Features
    scales: NDArray[np.float64]  # (f,): deviations of their noise, up to a factor; 1e-100 .. 1e100
    neighbours: Neighbours  # what neighbouring tables differ in
    limit: float | None = None  # rows whose load is above it are left out; None if that cannot be

    def __post_init__(self) -> None:
        scales = self.scales
        if (
            scales.dtype != np.float64
            or scales.shape != (len(self.features),)
            or not ((scales >= _LEAST_SCALE) & (scales <= _LARGEST_SCALE)).all()
        ):
            # A weight 1 / s^2 that is 0 would cost nothing, an infinite one hide all others.
            raise ValueError("every feature needs a scale from 1e-100 to 1e100")
        blocks = self.features.blocks
        if not np.array_equal(self._block_scales[blocks.of], scales[blocks.features]):
            raise ValueError("the features of a block have one scale")
        if self.limit is not None and not (math.isfinite(self.limit) and self.limit >= 0):
            raise ValueError(f"the limit on loads is {self.limit}")

    @staticmethod
    def uniform(features: Features, neighbours: Neighbours) -> "Strategy":
        """Return how features are measured with the same noise each, no row left out."""
        return Strategy(features, np.ones(len(features)), neighbours)

    @property
    def note(self) -> str:
        """What a reader must know of the rows that are left out; empty if all are measured."""
        return "" if self.limit is None else _HEAVY_ROWS

    def sums(self, rows: Rows, threads: int) -> Int64:
        """Return the exact sums of the features over private rows, heavy ones left out."""
        sums = np.zeros(len(self.features), np.int64)
        parts = np.flatnonzero(self.features.kinds[:, 0] > 0), self.features.blocks.features
        light, every = (Monomials.of(self.features.part(part)) for part in parts)
        wanted = LightCounts(self.loads, self.limit, light.literals, every.literals)
        counts = np.split(rows.total(wanted, threads), [len(light.literals)])
        for part, monomials, counted in zip(parts, (light, every), counts, strict=True):
            sums[part] = monomials.combine(counted, rows.n, len(part))
        return sums

    @cached_property
    def loads(self) -> Loads:
        """The features with indicators, weighted by what they cost."""
        mixed = self.features.kinds[:, 1] > 0
        twice = mixed & self.neighbours.replaces
        return Loads(self.features, np.where(twice, 2.0, 1.0) / self.scales**2)

    @cached_property
    def sensitivity(self) -> float:
        """L2 sensitivity of the features over their scales, above 0 (see the module)."""
        blocks, domain = self.features.blocks, self.features.domain
        weights = 1.0 / self._block_scales**2
        squared = []
        if self.neighbours.replaces:
            apart = largest_distance(domain, blocks.columns, weights)
            squared.append(2.0 * self._largest_load + apart)
        if not self.neighbours.rows_public:
            lengths = weights * squared_lengths(domain, blocks.columns)
            squared.append(self._largest_load + float(lengths.sum()))
        return self.neighbours.steps * math.sqrt(max(squared) * rounding_room(self.features))

    @cached_property
    def _block_scales(self) -> NDArray[np.float64]:
        """The scale of each block."""
        blocks = self.features.blocks
        scales = np.empty(len(blocks.columns))
        scales[blocks.of] = self.scales[blocks.features]
        return scales

    @property
    def _largest_load(self) -> float:
        proven = self.loads.proven()
        # A limit of lower precision must not lower the precision of the charge.
        return proven if self.limit is None else min(proven, float(self.limit))


def rounding_room(features: Features) -> float:
    """Return more than the rounding of two sums of as many positive terms, relatively, and 1."""
    return 1.0 + 2.0**-51 * (len(features) + 1000)
