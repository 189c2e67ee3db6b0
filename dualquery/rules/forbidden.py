"""The form that all rules come to: boxes of values that no record may have at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.questions.disjoint_boxes import Box
from dualquery.rules.search_kernels import Boxes, Columns, broken_boxes, record_values

_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Forbidden:
    """Rules over the records of a domain.

    Values of a column that no box tells apart are a *class*; searches go over classes.
    """

    domain: Domain
    texts: tuple[str, ...]  # the rules in words
    # For each box the values that it says of some columns, as the bits of a whole number: value 0
    # or 1 of a binary column, the position of the 1 of any other. None is empty.
    boxes: tuple[Box, ...]
    rule_of: tuple[int, ...]  # the rule of each box, not decreasing
    buckets: NDArray[np.int64]  # (columns,): how many of its first values have an order

    @staticmethod
    def none(domain: Domain) -> Forbidden:
        """Return no rules."""
        return Forbidden(domain, (), (), (), np.zeros(domain.columns, np.int64))

    def __len__(self) -> int:
        return len(self.texts)

    def said(self) -> list[tuple[str, int]]:
        """Return each rule in words, and how many boxes it forbids."""
        return [(text, self.rule_of.count(rule)) for rule, text in enumerate(self.texts)]

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """The columns that boxes name, int64, shape ``(c,)``, increasing."""
        return np.array(sorted({column for box in self.boxes for column in box}), np.int64)

    @cached_property
    def _members(self) -> list[dict[int, NDArray[np.int64]]]:
        """The values that each box says, by the place of the column."""
        sizes = axis_sizes(self.domain)
        place = {int(c): p for p, c in enumerate(self.columns)}
        return [
            {place[column]: values_in(mask, int(sizes[column])) for column, mask in box.items()}
            for box in self.boxes
        ]

    @cached_property
    def axes(self) -> Columns:
        """The bits, values and classes of `columns`."""
        sizes = axis_sizes(self.domain)[self.columns]
        starts = _starts(sizes.tolist())
        class_of = np.zeros(int(starts[-1]), np.int32)
        members: list[NDArray[np.int64]] = []
        for place, size in enumerate(sizes.tolist()):
            found = _classes(size, [box[place] for box in self._members if place in box])
            class_of[starts[place] : starts[place + 1]] = found
            members.append(np.bincount(found))
        place_of_bit = np.full(self.domain.bits, -1, np.int32)
        for place, column in enumerate(self.columns.tolist()):
            place_of_bit[slice(*self.domain.offsets[column : column + 2])] = place
        return Columns(
            first=self.domain.offsets[self.columns],
            bits=self.domain.sizes[self.columns],
            starts=starts,
            class_of=class_of,
            classes=_starts(list(map(len, members))),
            sizes=np.concatenate([*members, np.zeros(0, np.int64)]),
            place_of_bit=place_of_bit,
        )

    @cached_property
    def compiled(self) -> Boxes:
        """The boxes over classes."""
        axes, sizes = self.axes, np.diff(self.axes.classes)
        entries, column, listed = [0], list[int](), list[int]()
        lists: list[NDArray[np.int64]] = []
        anchors: list[list[int]] = [[] for _ in range(int(axes.classes[-1]))]
        for number, box in enumerate(self._members):
            fewest: tuple[int, NDArray[np.int64]] | None = None
            for place, values in sorted(box.items()):
                inside = np.unique(axes.class_of[axes.starts[place] + values]).astype(np.int64)
                few = 2 * len(inside) <= sizes[place]
                column.append(place)
                listed.append(int(few))
                lists.append(inside if few else np.setdiff1d(np.arange(sizes[place]), inside))
                if fewest is None or len(inside) < len(fewest[1]):
                    fewest = place, inside
            entries.append(len(column))
            if fewest is not None:
                for each in (axes.classes[fewest[0]] + fewest[1]).tolist():
                    anchors[each].append(number)
        return Boxes(
            classes=axes.classes,
            anchored_at=_starts(list(map(len, anchors))),
            anchored=np.array([box for each in anchors for box in each], np.int32),
            entries=np.array(entries, np.int64),
            column=np.array(column, np.int32),
            listed=np.array(listed, np.uint8),
            list_at=_starts(list(map(len, lists))),
            list_class=np.concatenate([*lists, np.zeros(0, np.int64)]).astype(np.int32),
        )

    def classes(self, records: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return the classes of the values of `columns` in legal records: int32, ``(r, c)``."""
        return self.axes.class_of[self.axes.starts[:-1] + self.values(records)]

    def values(self, records: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return the values of `columns`, as `classes`."""
        found = np.empty((len(records), len(self.columns)), np.int32)
        record_values(np.ascontiguousarray(records), self.axes.first, self.axes.bits, found)
        return found

    def broken(self, records: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return a box that each record lies in, -1 for none: int32, shape ``(r,)``."""
        found, counts = np.full((2, len(records)), -1, np.int32)
        if self.boxes:
            for first in range(0, len(records), _BLOCK_ROWS):
                rows = slice(first, first + _BLOCK_ROWS)
                broken_boxes(self.compiled, self.classes(records[rows]), found[rows], counts[rows])
        return found

    def allowed(self, values: Mapping[int, NDArray[np.bool_]]) -> NDArray[np.uint8]:
        """Return which classes hold one of the allowed values of some columns: uint8, flat."""
        axes = self.axes
        found = np.ones(int(axes.classes[-1]), np.uint8)
        for place, column in enumerate(self.columns.tolist()):
            if column in values:
                first, stop = axes.classes[place : place + 2]
                there = axes.class_of[axes.starts[place] : axes.starts[place + 1]]
                found[first:stop] = 0
                found[first + there[values[column]]] = 1
        return found


def values_in(mask: int, size: int) -> NDArray[np.int64]:
    """Return the places of the 1s of a whole number below ``2^size``: int64, increasing."""
    raw = np.frombuffer(mask.to_bytes(-(-size // 8), "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little")[:size])


def mask_of(values: NDArray[np.bool_]) -> int:
    """Return the whole number whose 1s are at the given places: the inverse of `values_in`."""
    return int.from_bytes(np.packbits(values, bitorder="little").tobytes(), "little")


def _starts(sizes: list[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _classes(size: int, sets: Sequence[NDArray[np.int64]]) -> NDArray[np.int32]:
    """Return a number for each value: the same for those that no set tells apart, from 0 on."""
    found, sizes = np.zeros(size, np.int64), [size]
    for members in sets:
        if 2 * len(members) > size:  # the others say the same, and are fewer
            outside = np.ones(size, bool)
            outside[members] = False
            members = np.flatnonzero(outside)
        old, which, count = np.unique(found[members], return_inverse=True, return_counts=True)
        renamed = old.copy()
        for at, (number, inside) in enumerate(zip(old.tolist(), count.tolist(), strict=True)):
            if inside < sizes[number]:
                renamed[at] = len(sizes)
                sizes[number] -= inside
                sizes.append(inside)
        found[members] = renamed[which]
    return found.astype(np.int32)
