"""Ranges: records whose columns lie in intervals of their values, in the domain's order.

A box is a product of intervals ``first <= x_c <= last`` over a few columns. A binary column has the
values 0 and 1, a one-hot column the positions of its bits.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import QueryFamily, require_bits
from dualquery.queries.literals import read_padded, refuse_rows, write_padded
from dualquery.queries.products import Products
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import check_memory

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.any_schema import Schema
    from dualquery.rows.row_sums import Rows

Interval = tuple[int, int]  # first and last value, both inside

Ints: TypeAlias = NDArray[np.int32]


class RangeQueries(QueryFamily):
    """Boxes: products of intervals over one or more columns.

    Parameters
    ----------
    domain
        The columns.
    boxes
        A mapping from columns (positions) to intervals for each query.

    Raises
    ------
    BadInputError
        If there are no boxes, one has no columns, or an interval leaves its column.

    Examples
    --------
    >>> grid = Domain(np.array([0, 10, 15]))  # columns of 10 and of 5 values
    >>> len(RangeQueries(grid, [{0: (2, 5)}, {0: (0, 4), 1: (1, 3)}]))
    2
    """

    low = 0.0
    high = 1.0
    step = 1.0
    spread = 1

    def __init__(self, domain: Domain, boxes: Sequence[Mapping[int, Interval]]) -> None:
        way = max((len(box) for box in boxes), default=0)
        columns, first, last = (np.full((len(boxes), way), -1, np.int64) for _ in range(3))
        for number, box in enumerate(boxes):
            for place, column in enumerate(sorted(box)):
                columns[number, place] = operator.index(column)
                first[number, place], last[number, place] = map(operator.index, box[column])
        self._set(domain, columns, first, last)

    def _set(self, domain: Domain, columns: Any, first: Any, last: Any) -> None:
        """Take arrays of integers of shape ``(m, k)``, increasing columns, all padded with -1."""
        if 0 in columns.shape:
            raise BadInputError("ranges need at least one box of at least one column")
        sizes, used = axis_sizes(domain), columns >= 0
        unknown = (columns >= domain.columns) | (columns < -1)
        repeated = used[:, 1:] & (columns[:, 1:] <= columns[:, :-1])
        for wrong, complaint in (
            (unknown, "has no such column"),
            (~used[:, :1], "has no columns"),
            (repeated, "has columns that do not increase"),
        ):
            refuse_rows(wrong, complaint, lambda box: columns[box].tolist(), "box")
        outside = used & ((first < 0) | (last >= sizes[columns]) | (first > last))
        ends = np.stack((first, last), -1)
        complaint = "has an interval outside its column"
        refuse_rows(outside, complaint, lambda box: ends[box].tolist(), "box")
        self.domain = domain
        self.columns, self.first, self.last = np.stack((columns, first, last)).astype(np.int32)
        self.description: Mapping[str, Any] = {"kind": "ranges", "way": self.way}

    @classmethod
    def of_arrays(cls, domain: Domain, columns: Any, first: Any, last: Any) -> RangeQueries:
        """Return boxes from integers of shape ``(m, k)``, padded with -1 (see the class)."""
        made = RangeQueries.__new__(RangeQueries)
        made._set(domain, columns, first, last)
        return made

    @classmethod
    def all_products(cls, domain: Domain, way: int, intervals: str = "prefix") -> RangeQueries:
        """Return all products of intervals over all sets of ``way`` columns.

        ``intervals`` is ``prefix`` for ``0 .. b`` with b below the last value, ``all`` for every
        ``a .. b`` but the whole column. `BadInputError` if it is neither, or ``way`` is not 1 to
        the number of columns.
        """
        if not 1 <= way <= domain.columns:
            raise BadInputError(f"way is {way}; 1 to {domain.columns} columns can be in a box")
        ends = [_intervals(int(size), intervals) for size in axis_sizes(domain)]
        lengths = [len(one) for one in ends]
        sets = list(combinations(range(domain.columns), way))
        total = sum(int(np.prod([lengths[c] for c in chosen])) for chosen in sets)
        check_memory(24 * way * total, f"{total:,} boxes", "take a smaller way or prefixes")
        columns, first, last = [], [], []
        for chosen in sets:
            grid = np.indices([lengths[c] for c in chosen]).reshape(way, -1)
            picked = np.stack([ends[c][at] for c, at in zip(chosen, grid, strict=True)], axis=1)
            columns.append(np.broadcast_to(np.array(chosen, np.int32), picked.shape[:2]))
            first.append(picked[..., 0])
            last.append(picked[..., 1])
        return cls.of_arrays(domain, *(np.concatenate(each) for each in (columns, first, last)))

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def way(self) -> int:
        """Most columns of a box."""
        return int(self.columns.shape[1])

    def counts(self, records: Rows, threads: int) -> NDArray[np.int64]:
        """Return how many records lie in each box, exactly: int64, ``(m,)``.

        The cells of every set of columns are counted once; a box is then a signed sum of at most
        2^k entries of their cumulative table.
        """
        from dualquery.queries.counting import ConjunctionCounts

        require_bits(records, self.domain)
        scopes, scope_of = np.unique(self.columns, axis=0, return_inverse=True)
        scope_of = scope_of.ravel()
        shapes = [tuple(axis_sizes(self.domain)[s[s >= 0]].tolist()) for s in scopes]
        cells = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
        check_memory(
            int(cells[-1]) * (8 * self.way + 80),
            f"counting the {cells[-1]:,} cells of {len(scopes):,} sets of columns",
            "take boxes over fewer columns",
        )
        whole = np.where(scopes >= 0, axis_sizes(self.domain)[scopes] - 1, -1)
        literals, _ = _cells_of_boxes(self.domain, scopes, np.minimum(scopes, 0), whole)
        counted = records.total(ConjunctionCounts(literals), threads).astype(np.int64)
        counts = np.empty(len(self), dtype=np.int64)
        for number, shape in enumerate(shapes):
            table = np.pad(
                counted[cells[number] : cells[number + 1]].reshape(shape), [(1, 0)] * len(shape)
            )
            for axis in range(len(shape)):
                table = table.cumsum(axis=axis)
            inside = np.flatnonzero(scope_of == number)
            below = self.first[inside, : len(shape)].T
            above = self.last[inside, : len(shape)].T + 1
            total = np.zeros(len(inside), dtype=np.int64)
            for corner in product((False, True), repeat=len(shape)):
                lower = np.array(corner)[:, None]
                total += (-1) ** sum(corner) * table[tuple(np.where(lower, below, above))]
            counts[inside] = total
        return counts

    def products(self) -> Products:
        """Return the boxes as products of intervals, each one or two terms ``[x >= v]``."""
        sizes, used = axis_sizes(self.domain), self.columns >= 0
        keys = np.stack((self.columns[used], self.first[used], self.last[used]), axis=1)
        intervals, number = np.unique(keys, axis=0, return_inverse=True)
        factors = np.full(self.columns.shape, -1, dtype=np.int32)
        factors[used] = number.ravel()
        column, first, last = intervals.T
        ends = last + 1 < sizes[column]
        index = np.stack((first, last + 1), axis=1)
        coefficient = np.broadcast_to([1.0, -1.0], index.shape)
        kept = np.stack((np.ones(len(ends), dtype=np.bool_), ends), axis=1)
        cumulative = np.zeros(len(sizes), dtype=np.bool_)
        cumulative[column] = True
        return Products(
            sizes=sizes,
            columns=self.columns,
            factors=factors,
            factor_column=np.ascontiguousarray(column, dtype=np.int32),
            indptr=np.concatenate(([0], np.cumsum(kept.sum(axis=1)))).astype(np.int64),
            index=index[kept].astype(np.int32),
            coefficient=coefficient[kept],
            cumulative=cumulative,
            scale=np.ones(len(self)),
        )

    def disjunctions(self) -> Disjunctions:
        """Return each box as the sum of its cells; `BadInputError` if these are too many."""
        widths = np.where(self.columns >= 0, self.last - self.first + 1, 1).astype(np.float64)
        total = float(widths.prod(axis=1).sum())
        check_memory(
            int(min(total, 1e15)) * (8 * self.way + 80),
            f"posing boxes of {total:,.0f} cells as conjunctions",
            "use the mechanism mwem, or smaller boxes",
        )
        literals, owner = _cells_of_boxes(self.domain, self.columns, self.first, self.last)
        return Disjunctions.of_terms(literals, owner, self.domain)

    def text(self, schema: Schema) -> pl.Series:
        """Return each box as ``age in 3..5 & sex in 0..0``: positions of values, both inside."""
        import polars as pl

        names = schema.column_names
        boxes = np.stack((self.columns, self.first, self.last), axis=-1).tolist()
        parts = ([f"{names[c]} in {a}..{b}" for c, a, b in box if c >= 0] for box in boxes)
        return pl.Series("query", list(map(" & ".join, parts)))

    def to_columns(self) -> dict[str, pl.Series]:
        """Return Int32 columns ``column_1`` .., ``first_1`` .., ``last_1`` .., null for padding."""
        return {
            **write_padded("column", self.columns),
            **write_padded("first", self.first),
            **write_padded("last", self.last),
        }

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, pl.Series], domain: Domain, description: Mapping[str, Any]
    ) -> RangeQueries:
        """Return the boxes that `to_columns` wrote (see `queries_of_table`)."""
        arrays = (read_padded(name, columns) for name in ("column", "first", "last"))
        made = cls.of_arrays(domain, *arrays)
        made.description = description
        return made


class SeriesRangeQueries(RangeQueries):
    """Intervals of one column of N ordered values.

    Parameters
    ----------
    values
        N, at least 2.
    intervals
        ``all``: every ``a .. b``; ``prefix``: every ``0 .. b`` (what the Julia package means);
        or a list of ``(a, b)``, both inside. The whole column is the constant 1 and is left out of
        the first two.

    Raises
    ------
    BadInputError
        If N is below 2, or the intervals are none of these.
    """

    def __init__(self, values: int, intervals: str | Sequence[Interval] = "all") -> None:
        if values < 2:
            raise BadInputError(f"a series of {values} values; at least 2 are needed")
        ends = np.asarray(
            _intervals(values, intervals) if isinstance(intervals, str) else intervals
        )
        if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
            raise BadInputError(f"intervals need pairs of whole numbers, not {intervals!r}")
        first, last = (np.ascontiguousarray(end[:, None], np.int64) for end in ends.T)
        domain = Domain(np.array([0, values], dtype=np.int64))
        self._set(domain, np.zeros(first.shape, np.int32), first, last)


def _intervals(size: int, kind: str) -> NDArray[np.int64]:
    """Return first and last values, int64 ``(r, 2)``, of all but the whole of a column."""
    if kind == "prefix":
        last = np.arange(size - 1)
        return np.stack((np.zeros_like(last), last), axis=1)
    if kind != "all":
        raise BadInputError(f"intervals are {kind!r}; known: all, prefix, or a list of pairs")
    check_memory(16 * size * size, f"all intervals of {size:,} values", "take prefix")
    first, last = np.triu_indices(size)
    kept = (first > 0) | (last < size - 1)
    return np.stack((first[kept], last[kept]), axis=1)


def _cells_of_boxes(
    domain: Domain, columns: Ints, first: Ints, last: NDArray[np.int64] | Ints
) -> tuple[Ints, NDArray[np.int64]]:
    """Return all cells of all boxes as conjunctions, and the box of each."""
    used = columns >= 0
    widths = np.where(used, last - first + 1, 1).astype(np.int64)
    cells = widths.prod(axis=1)
    owner = np.repeat(np.arange(len(columns)), cells)
    left = np.arange(len(owner)) - np.repeat(np.cumsum(cells) - cells, cells)
    literals = np.full((len(owner), columns.shape[1]), -1, dtype=np.int32)
    for place in range(columns.shape[1] - 1, -1, -1):
        value = first[owner, place] + left % widths[owner, place]
        left //= widths[owner, place]
        column = columns[owner, place]
        offset = domain.offsets[column]
        binary = domain.sizes[column] == 1
        literal = np.where(binary, 2 * offset + (1 - value), 2 * (offset + value))
        literals[:, place] = np.where(used[owner, place], literal, -1)
    return literals, owner
