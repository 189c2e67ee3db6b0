"""The single bits of a workload: what is counted of columns before anything is asked of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload
from mwem.layout import Layout


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
