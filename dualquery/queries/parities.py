"""Parities: the sign of how many bits of a set are 1 (the Fourier basis of marginals).

``q_S(x) = (-1)^(sum of x_i, i in S)``: +1 when an even number of the bits of S is 1, else -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import QueryFamily, require_bits
from dualquery.queries.generate.workloads import chosen_columns, count_choices, list_choices
from dualquery.queries.literals import read_padded, refuse_rows, write_padded
from dualquery.queries.products import Products
from dualquery.rows.repeats import first_occurrences, pad_right, side_by_side
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import check_memory

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.any_schema import Schema
    from dualquery.rows.row_sums import Rows

MOST_WAY = 12
"""Largest set: a parity of k bits takes 2^k counts of the data and 2^(k - 1) conjunctions."""


class Parities(QueryFamily):
    """Parities of all non-empty sets of at most ``way`` bits, or of given sets.

    The parity of the empty set is the constant 1 and is left out: n is public. The Julia package
    has `Parities` for an explicit histogram and `FactorParities` for a factored one; here the
    queries are the same, and the mechanism chooses how it holds its distribution.

    Parameters
    ----------
    domain
        The bits, or how many binary ones there are (d). Bits of one column are not combined:
        at most one of them is 1 anyway.
    way
        k: most bits of a set, at least 1; not with ``sets``.
    sets
        int, shape ``(m, k)``: bits of each set, padded with -1.

    Raises
    ------
    BadInputError
        If sets are empty, repeated, too large, outside the domain, or combine bits of a column.

    Examples
    --------
    >>> len(Parities(27, 3))
    3303
    """

    low = -1.0
    high = 1.0
    step = 1.0
    spread = 2

    def __init__(
        self,
        domain: Domain | int,
        way: int | None = None,
        *,
        sets: NDArray[np.integer[Any]] | None = None,
    ) -> None:
        if not isinstance(domain, Domain) and domain < 1:
            raise BadInputError(f"parities of {domain} bits: at least 1 is needed")
        self.domain = domain if isinstance(domain, Domain) else Domain.binary(int(domain))
        if (way is None) == (sets is None):
            raise BadInputError("parities need either way, the most bits of a set, or the sets")
        rows = _all_sets(self.domain, way) if way is not None else np.asarray(sets)
        self.sets = _checked(rows, self.domain)
        self.description: Mapping[str, Any] = {"kind": "parities", "way": self.way}

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def way(self) -> int:
        """Most bits of a set."""
        return int(self.sets.shape[1])

    def counts(self, records: Rows, threads: int) -> NDArray[np.int64]:
        """Return ``n q(D)``: rows of an even number of 1s less the others; int64, ``(m,)``.

        They follow from counts of conjunctions: the product of ``1 - 2 x_i`` over S is the sum of
        ``(-2)^|T| prod(x_i, i in T)`` over the subsets T.
        """
        from dualquery.queries.counting import ConjunctionCounts

        require_bits(records, self.domain)
        check_memory(
            len(self) * 2**self.way * (4 * self.way + 32),
            f"counting {len(self):,} parities of up to {self.way} bits",
            "take fewer or smaller sets",
        )
        subsets, owner = _subsets(self.sets)
        first = first_occurrences(subsets, self.domain.bits)
        different = np.flatnonzero(first == np.arange(len(first)))
        monomials = np.where(subsets >= 0, 2 * subsets, -1)[different].astype(np.int32)
        found = records.total(ConjunctionCounts(monomials), threads).astype(np.int64)
        coefficients = (-2) ** (subsets >= 0).sum(axis=1, dtype=np.int64)
        counts = np.full(len(self), records.n, dtype=np.int64)
        np.add.at(counts, owner, coefficients * found[np.searchsorted(different, first)])
        return counts

    def products(self) -> Products:
        """Return the parities as products of signs, one a column."""
        used = np.unique(self.sets[self.sets >= 0])
        column_of_bit = self.domain.column_of_bit
        columns = column_of_bit[used]
        sizes = axis_sizes(self.domain)
        values = []
        for bit, column in zip(used.tolist(), columns.tolist(), strict=True):
            signs = np.ones(sizes[column])
            binary = self.domain.sizes[column] == 1
            signs[1 if binary else bit - int(self.domain.offsets[column])] = -1.0
            values.append(signs)
        present = self.sets >= 0
        scopes = np.where(present, column_of_bit[self.sets], -1)
        factors = np.where(present, np.searchsorted(used, self.sets), -1)
        return Products.of_factors(sizes, scopes, factors, columns, values)

    def disjunctions(self) -> Disjunctions:
        """Return ``(1 + q) / 2``: the 2^(k-1) ways in which an even number of k bits is 1."""
        rows, owners = [], []
        for size in range(1, self.way + 1):
            chosen = np.flatnonzero((self.sets >= 0).sum(axis=1) == size)
            zeros = 1 - (np.arange(2**size)[:, None] >> np.arange(size) & 1)
            even = zeros[(size - zeros.sum(axis=1)) % 2 == 0]
            literals = 2 * self.sets[chosen, None, :size] + even
            padded = np.full((len(chosen) * len(even), self.way), -1, dtype=np.int32)
            padded[:, :size] = literals.reshape(-1, size)
            rows.append(padded)
            owners.append(np.repeat(chosen, len(even)))
        return Disjunctions.of_terms(np.concatenate(rows), np.concatenate(owners), self.domain)

    def text(self, schema: Schema) -> pl.Series:
        """Return each parity as ``parity(a, b=2)``: the bits by their names."""
        import polars as pl

        labels = schema.bit_labels()
        names = [
            labels.gather(pl.Series(column).replace(-1, None)).alias(str(place))
            for place, column in enumerate(self.sets.T)
        ]
        inside = pl.concat_str(pl.all(), separator=", ", ignore_nulls=True)
        return pl.DataFrame(names).select(query=pl.format("parity({})", inside)).to_series()

    def to_columns(self) -> dict[str, pl.Series]:
        """Return columns ``bit_1`` .. ``bit_k``: Int32, null for padding."""
        return write_padded("bit", self.sets)

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, pl.Series], domain: Domain, description: Mapping[str, Any]
    ) -> Parities:
        """Return the parities that `to_columns` wrote (see `queries_of_table`)."""
        made = cls(domain, sets=read_padded("bit", columns))
        made.description = description
        return made


FactorParities = Parities
"""The Julia package's name for parities on a factored histogram (here: ``representation``)."""


def _all_sets(domain: Domain, way: int) -> NDArray[np.int32]:
    """Return all sets of 1 to ``way`` bits of different columns, padded with -1."""
    chosen_columns(domain, None, way)
    _require_way(way)
    total = sum(count_choices(domain.sizes, size) for size in range(1, way + 1))
    check_memory(12 * way * total, f"{total:,} parities", "take a smaller way or fewer bits")
    bits = np.arange(domain.bits, dtype=np.int32)
    return side_by_side(*(list_choices(domain.offsets, bits, size) for size in range(1, way + 1)))


def _require_way(way: int) -> None:
    if way > MOST_WAY:
        raise BadInputError(f"a parity of {way} bits; at most {MOST_WAY} can be counted")


def _checked(rows: NDArray[np.integer[Any]], domain: Domain) -> NDArray[np.int32]:
    """Return sets with increasing bits and padding to the right, or say what is wrong."""
    if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "iu":
        raise BadInputError(
            "parities need an integer array of one or more sets by one or more bits, not "
            f"{rows.dtype} of shape {rows.shape}"
        )
    outside = ((rows < -1) | (rows >= domain.bits)).any(axis=1)
    _refuse(outside, rows, f"has a bit outside -1..{domain.bits - 1}")
    sets = pad_right(rows.astype(np.int32))
    sets = np.ascontiguousarray(sets[:, : max(1, int((sets >= 0).sum(axis=1).max()))])
    _require_way(sets.shape[1])
    _refuse((sets < 0).all(axis=1), sets, "is empty, so its parity is the constant 1")
    columns = np.where(sets >= 0, domain.column_of_bit[sets], -1)
    again = ((columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)).any(axis=1)
    _refuse(again, sets, "has two bits of one column")
    _refuse(first_occurrences(sets, domain.bits) != np.arange(len(sets)), sets, "is repeated")
    return sets


def _refuse(wrong: Any, sets: NDArray[Any], complaint: str) -> None:
    """Raise for the first set that is wrong."""
    refuse_rows(wrong, complaint, lambda number: sets[number][sets[number] >= 0].tolist(), "set")


def _subsets(sets: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return all non-empty subsets of all sets, padded with -1, and whose they are."""
    way = sets.shape[1]
    rows, owners = [], []
    for mask in range(1, 2**way):
        places = [place for place in range(way) if mask >> place & 1]
        owner = np.flatnonzero(sets[:, places[-1]] >= 0)
        subset = np.full((len(owner), way), -1, dtype=np.int32)
        subset[:, : len(places)] = sets[owner][:, places]
        rows.append(subset)
        owners.append(owner)
    return np.concatenate(rows), np.concatenate(owners)
