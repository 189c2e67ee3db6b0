"""What has been measured: everything that a distribution of multiplicative weights depends on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class History:
    """Measured queries, their noisy answers, and the exponents that they have gathered.

    MWEM's distribution is ``A(x) ~ A_0(x) exp(sum_j scale_j q_j(x))`` over the measured queries:
    the scales are the sums of ``(m_j - q_j(A)) / 2n`` over all updates (Hardt, Ligett and McSherry
    2012, section 4), so a representation can be rebuilt from them at any time.
    """

    def __init__(self) -> None:
        self.queries: list[int] = []
        self._targets: list[float] = []
        self.scales: NDArray[np.float64] = np.zeros(0)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def targets(self) -> NDArray[np.float64]:
        """Measured answers as shares of the rows, float64, shape ``(t,)``."""
        return np.array(self._targets)

    def add(self, query: int, target: float) -> None:
        """Enter a measurement: a query and its noisy answer as a share of the rows."""
        self.queries.append(query)
        self._targets.append(target)
        self.scales = np.append(self.scales, 0.0)
