"""Exactly-one groups of attributes, stored as one flat array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Groups:
    """Disjoint sets of attributes; in a legal record exactly one attribute of each set is 1."""

    indptr: NDArray[np.int64]  # group ``g`` is ``members[indptr[g]:indptr[g + 1]]``
    members: NDArray[np.int32]  # no attribute twice

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, group: int) -> NDArray[np.int32]:
        return self.members[self.indptr[group] : self.indptr[group + 1]]

    def group_of(self, attributes: int) -> NDArray[np.int32]:
        """Return the group of each of ``attributes`` attributes, -1 for those in none."""
        found = np.full(attributes, -1, np.int32)
        found[self.members] = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.indptr))
        return found

    @staticmethod
    def none() -> Groups:
        """Return the empty set of groups."""
        return Groups(np.zeros(1, np.int64), np.zeros(0, np.int32))
