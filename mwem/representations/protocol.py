"""What MWEM needs of a distribution over records, and all that one depends on."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Representation(Protocol):
    """A distribution that starts at A_0 and is multiplied by exponentials of measured queries.

    All representations hold the *same* distribution after the same updates, up to rounding: they
    differ in time and memory only. Nothing here is private: everything follows from measurements.
    """

    def answers(self) -> NDArray[np.float64]:
        """Return the answer of every query: float64, shape ``(m,)``, shares of the rows."""
        ...

    def admits(self, together: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which queries could be measured next within the memory limit: bool, ``(m,)``.

        ``together``, int64 of shape ``(m,)``, says how many queries about the same columns are
        measured as one question with each of them, itself included.
        """
        ...

    def update(self, queries: NDArray[np.int64], targets: NDArray[np.float64]) -> None:
        """Enter measurements and multiply by each once: ``exp(q(x) (target - q(A)) / 2)``.

        Parameters
        ----------
        queries
            Positions in the workload, of one scope.
        targets
            The noisy answers as shares of the rows (m / n in the paper).

        Raises
        ------
        BadInputError
            If the distribution would not fit the memory limit; nothing has been built then.
        """
        ...

    def repeat(self, passes: int) -> None:
        """Run passes of the same update over all measurements, oldest first."""
        ...

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[Any]:
        """Draw records as values of the columns: integers, shape ``(count, columns)``."""
        ...

    def describe(self) -> dict[str, object]:
        """Return ``components``, ``cells`` and ``largest``, the cells of the largest table."""
        ...


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
