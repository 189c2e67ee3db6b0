"""The counts of a workload as a statistic of rows, refused beforehand if they cannot fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.counting.passes import CountingPass
from dualquery.rows.protocol import BlockRows
from dualquery.runtime.resources import check_memory


@dataclass(frozen=True, eq=False)
class ConjunctionCounts:
    """The statistic of how many rows satisfy each conjunction (see `RowSum`).

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``: literal codes ``2 * bit + negated``, each row sorted, at least one
        literal a row, padded on the right with -1.
    """

    literals: NDArray[np.int32]

    def of_literals(self, literals: NDArray[np.int32], /) -> ConjunctionCounts:
        """Return the counts of other conjunctions."""
        return ConjunctionCounts(literals)

    def __call__(self, rows: BlockRows, threads: int, /) -> NDArray[np.int64]:
        """Count in some rows: int64, shape ``(m,)``.

        Raises `BadInputError` if they cannot be read to the end, or the pass needs too much memory.
        """
        check_memory(
            self._pass.memory(threads),
            f"counting {len(self.literals):,} queries about {len(self._pass.attributes):,} bits",
            "take fewer threads, queries or columns",
        )
        return self._pass.run(rows, threads)

    @cached_property
    def _pass(self) -> CountingPass:
        return CountingPass(self.literals)
