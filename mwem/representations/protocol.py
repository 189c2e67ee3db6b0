"""What MWEM needs of a distribution over records."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Representation(Protocol):
    """A distribution that starts at A_0 and is multiplied by exponentials of measured queries.

    All representations hold the *same* distribution after the same updates, up to rounding: they
    differ in time and memory only. Nothing here is private: everything follows from measurements.
    """

    name: str

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
