"""The columns that a workload asks about, as values instead of bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.mechanisms.baselines.independent import to_distributions
from dualquery.queries.conjunctions import Workload
from dualquery.runtime.errors import BadInputError

_LEAST_SHARE = 0.1  # standard deviations of the noise that every value of a column gets at least

MOST_VALUES = 1 << 16
"""Values of a column that a population can hold."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the bits of the mentioned columns are among the columns' values.

    A binary column has the values 0 and 1, a one-hot column the positions of its 1. Columns that no
    query mentions are left out: nothing is measured, and nothing known, about them.

    Parameters
    ----------
    domain
        All columns.
    columns
        int64, increasing: the numbers of the columns that are held.
    column
        int32, shape ``(bits,)``: place of each bit's column among those held, -1 if it is not.
    value
        uint16, shape ``(bits,)``: the value of its column for which the bit is 1.
    starts
        int64, shape ``(len(columns) + 1,)``: pointers to the columns' values, laid end to end.
    """

    domain: Domain
    columns: NDArray[np.int64]
    column: NDArray[np.int32]
    value: NDArray[np.uint16]
    starts: NDArray[np.int64]

    @staticmethod
    def of(workload: Workload) -> Layout:
        """Return the layout of the columns that a workload mentions.

        Raises
        ------
        BadInputError
            If a column has more than `MOST_VALUES` values.
        """
        domain, literals = workload.domain, workload.literals
        columns = np.unique(domain.column_of_bit[literals[literals >= 0] >> 1]).astype(np.int64)
        sizes = axis_sizes(domain)[columns]
        if sizes.max() > MOST_VALUES:
            raise BadInputError(
                f"column {int(columns[sizes.argmax()])} (from 0) has {sizes.max():,} values; "
                f"at most {MOST_VALUES:,} can be measured: use wider buckets or dualquery"
            )
        place = np.full(domain.columns, -1, np.int32)
        place[columns] = np.arange(len(columns))
        position = np.arange(domain.bits) - np.repeat(domain.offsets[:-1], domain.sizes)
        binary = domain.sizes[domain.column_of_bit] == 1
        return Layout(
            domain=domain,
            columns=columns,
            column=place[domain.column_of_bit],
            value=np.where(binary, 1, position).astype(np.uint16),
            starts=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        )

    @property
    def bits(self) -> NDArray[np.int32]:
        """The bits of the columns held, int32, increasing."""
        return np.flatnonzero(self.column >= 0).astype(np.int32)

    def values_of(self, column: int) -> slice:
        """Return where the values of a column held lie among all, laid end to end."""
        return slice(int(self.starts[column]), int(self.starts[column + 1]))

    def base(self, shares: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
        """Return the distribution of every column from noisy shares of its bits.

        ``shares``, float64 of shape ``(len(bits),)``, are those of the rows in which each bit is 1;
        the result, of shape ``(starts[-1],)``, those of the values, laid end to end. No value gets
        less than a part of the noise's standard deviation, before the values of a column are made
        to add up to 1 again: what noise cannot tell from zero is not impossible.
        """
        sizes = self.domain.sizes[self.columns]
        held = Domain(np.concatenate(([0], np.cumsum(sizes))))
        base = np.zeros(self.starts[-1])
        base[self.starts[self.column[self.bits]] + self.value[self.bits]] = to_distributions(
            held, shares
        )
        zeros = self.starts[:-1][sizes == 1]
        base[zeros] = 1.0 - base[zeros + 1]
        base = np.maximum(base, _LEAST_SHARE * deviation)
        totals = np.add.reduceat(base, self.starts[:-1])
        return np.asarray(base / np.repeat(totals, np.diff(self.starts)))

    def draw(
        self, base: NDArray[np.float64], count: int, generator: np.random.Generator
    ) -> NDArray[np.uint16]:
        """Return records with independent columns: uint16, shape ``(count, columns held)``."""
        population = np.empty((count, len(self.columns)), np.uint16)
        for column in range(len(self.columns)):
            shares = base[self.values_of(column)]
            population[:, column] = generator.choice(len(shares), count, p=shares)
        return population

    def to_rows(
        self, population: NDArray[np.uint16], generator: np.random.Generator
    ) -> NDArray[np.uint8]:
        """Return legal records, uint8 of shape ``(r, bits)``.

        Columns that no query mentions are 0 if binary, and uniform if one-hot.
        """
        rows = np.zeros((len(population), self.domain.bits), np.uint8)
        rows[:, self.bits] = population[:, self.column[self.bits]] == self.value[self.bits]
        held = np.isin(np.arange(self.domain.columns), self.columns)
        for column in np.flatnonzero(~held & (self.domain.sizes > 1)):
            value = generator.integers(self.domain.sizes[column], size=len(rows))
            rows[np.arange(len(rows)), self.domain.offsets[column] + value] = 1
        return rows


@dataclass(frozen=True, eq=False)
class WithSingleBits:
    """A workload, then the single bits of its columns that it does not ask about itself.

    Parameters
    ----------
    held
        All of these.
    places
        int64: where each bit of `Layout.bits` stands among them.
    """

    held: Workload
    places: NDArray[np.int64]

    @staticmethod
    def of(workload: Workload) -> WithSingleBits:
        """Add the single bits of all columns that some query mentions."""
        bits, literals = Layout.of(workload).bits, workload.literals
        asked = np.flatnonzero(((literals >= 0).sum(axis=1) == 1) & (literals[:, 0] & 1 == 0))
        place = np.full(workload.domain.bits, -1, np.int64)
        place[literals[asked, 0] >> 1] = asked
        missing = bits[place[bits] < 0]
        place[missing] = len(workload) + np.arange(len(missing))
        padded = np.full((len(missing), workload.way), -1, np.int32)
        padded[:, 0] = 2 * missing
        held = Workload(
            np.concatenate((literals, padded)),
            workload.domain,
            {"kind": "with single bits", "of": dict(workload.description)},
            repeats=workload.repeats,
        )
        return WithSingleBits(held, place[bits])

    @property
    def single(self) -> Workload:
        """The single bits."""
        return Workload(self.held.literals[self.places, :1], self.held.domain, {"kind": "one-way"})
