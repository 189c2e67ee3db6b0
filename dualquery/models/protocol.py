"""What a release keeps of a fit: a public distribution over the records of a domain.

A model is post-processing of private draws, so to ask it or to draw records from it costs nothing,
however often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.literals import LiteralRows


class Model(Protocol):
    """A distribution over legal records."""

    kind: ClassVar[str]
    """By which a stored model is read again (`dualquery.models.stored`)."""

    @property
    def domain(self) -> Domain:
        """The columns of the records."""
        ...

    def answers(self, queries: LiteralRows) -> NDArray[np.float64]:
        """Return the chance of every conjunction: float64, shape ``(m,)``, in [0, 1]."""
        ...

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
        """Return legal records in random order, uint8, shape ``(count, bits)``.

        They are the model rounded, as evenly as it can be, and not draws on their own.
        """
        ...

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return what the model consists of, as arrays of numbers."""
        ...
