"""The user's options of MWEM, and their validation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from dualquery.runtime.errors import BadInputError
from mwem.representations import Name

TooLarge = Literal["exclude", "stop"]
Selection = Literal["exponential", "noisy-max"]


@dataclass(frozen=True, kw_only=True)
class MwemOptions:
    """Parameters under the names of PrivateMultiplicativeWeights.jl, and a few more.

    There ``epsilon`` is what *each* iteration spends. Here it is the budget's, for the whole run:
    ten iterations at epsilon 1 there cost epsilon 10, and are ten iterations at epsilon 10 here.
    """

    aliases: ClassVar[Mapping[str, str]] = {"rounds": "iterations"}

    iterations: int = 10
    """T: queries that are selected and measured."""

    repetitions: int = 10
    """Updates of each iteration: one for the new measurement, then passes over all measurements so
    far, one fewer than this. 1 is Figure 1 as printed. No privacy is spent on them."""

    noisy_init: bool = False
    """Start from a noisy count of every cell instead of the uniform distribution."""

    init_budget: float = 0.05
    """Share of the budget that the noisy start takes, if there is one."""

    noisy_max_budget: float = 0.5
    """Share of an iteration's budget that selects the query; the rest measures it."""

    select: Selection = "exponential"
    """How a query is selected: by the ``exponential`` mechanism, or by report ``noisy-max``."""

    cuboids: bool = False
    """Select and measure whole marginals instead of single queries (section 3.3)."""

    average: bool = False
    """Release the average of the distributions before each update (Theorem 2.2), not the last."""

    representation: Name = "auto"
    """How the distribution is held; all ways give the same one. ``auto`` is the cheapest."""

    memory_gib: float = 2.0
    """Limit on the distribution's memory, in GiB."""

    too_large: TooLarge = "exclude"
    """A query that would exceed the limit: ``exclude`` it, or ``stop`` when it is selected."""

    records: int | None = None
    """Number of synthetic records; None for one a private row, 10,000 at most."""

    verbose: bool = False
    """Log the true errors of every iteration for the operator. They are not private."""

    def __post_init__(self) -> None:
        for name in ("iterations", "repetitions", "records"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise BadInputError(f"{name} is {value!r}; a whole number of at least 1 is needed")
        for name in ("init_budget", "noisy_max_budget"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise BadInputError(f"{name} is {value!r}; a share above 0 and below 1 is needed")
        if not (math.isfinite(self.memory_gib) and self.memory_gib > 0):
            raise BadInputError(f"memory_gib is {self.memory_gib!r}; a number above 0 is needed")
        for name, known in (
            ("select", get_args(Selection)),
            ("representation", get_args(Name)),
            ("too_large", get_args(TooLarge)),
        ):
            value = getattr(self, name)
            if value not in known:
                raise BadInputError(f"{name} is {value!r}; known: {', '.join(known)}")

    @property
    def memory(self) -> int:
        """Memory limit in bytes."""
        return int(self.memory_gib * 2**30)
