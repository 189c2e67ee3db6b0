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

    def admits(self) -> NDArray[np.bool_]:
        """Return which queries could be measured next within the memory limit: bool, ``(m,)``."""
        ...

    def update(self, query: int, target: float) -> None:
        """Enter a measurement and multiply once by ``exp(q(x) (target - q(A)) / 2)``.

        Parameters
        ----------
        query
            Position in the workload.
        target
            The noisy answer as a share of the rows (m / n in the paper).

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
