"""The user's options of MWEM, and their validation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from dualquery.mechanisms.options import check_choice, check_number, check_whole
from dualquery.runtime.errors import BadInputError
from mwem.representations import Name
from mwem.spending import Selection, Shares

Start = Literal["uniform", "independent"]


@dataclass(frozen=True, kw_only=True)
class MwemOptions:
    """Parameters under the names of PrivateMultiplicativeWeights.jl, and a few more.

    There ``epsilon`` is what *each* iteration spends. Here it is the budget's, for the whole run:
    ten iterations at epsilon 1 there cost epsilon 10, and are ten iterations at epsilon 10 here.
    """

    aliases: ClassVar[Mapping[str, str]] = {"rounds": "iterations"}

    iterations: int | None = None
    """T: queries that are selected and measured; None for 10, or all if there are fewer."""

    repetitions: int = 10
    """Passes of updates in each iteration: the first over the new measurement, the others over all
    measurements so far. 1 is Figure 1 as printed. They cost no privacy."""

    start: Start = "uniform"
    """A_0: ``uniform``, as published, or ``independent`` columns with noisy shares, which answer
    conjunctions far better."""

    noisy_init: bool = False
    """Start from a noisy count of every cell instead."""

    init_budget: float = 0.05
    """Share of the budget for a start that is measured, if there is one."""

    noisy_max_budget: float = 0.5
    """Share of an iteration's budget that selects the query; the rest measures it."""

    select: Selection = "exponential"
    """How a query is selected: by the ``exponential`` mechanism, or by report ``noisy-max``."""

    cuboids: bool = False
    """Select and measure whole marginals instead of single queries (section 3.3)."""

    average: bool = False
    """Release the average of the distributions before each update (Theorem 2.2), not the last."""

    representation: Name = "auto"
    """How the distribution is held: ``auto`` is the cheapest. All hold the same distribution."""

    memory_gib: float = 2.0
    """Most RAM that the distribution may take, in GiB; a query that would exceed it is left out."""

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        check_whole(self, "iterations", "repetitions", "records")
        shares = "init_budget", "noisy_max_budget"
        needed = "a share above 0 and below 1, by a billionth or more,"
        check_number(self, needed, lambda x: 1e-9 <= x <= 1 - 1e-9, *shares)
        check_number(self, "a number above 0, below 2^30", lambda x: 0 < x < 2**30, "memory_gib")
        check_choice(self, "select", "representation", "start")
        if self.noisy_init and self.start != "uniform":
            raise BadInputError(
                f"noisy_init counts every cell, and start={self.start} counts columns; take one"
            )

    @property
    def memory(self) -> int:
        """Memory limit in bytes."""
        return int(self.memory_gib * 2**30)

    def shares(self, iterations: int) -> Shares:
        """Return how the budget is shared out."""
        start = self.init_budget if self.noisy_init or self.start == "independent" else 0.0
        return Shares(iterations, self.noisy_max_budget, start, selection=self.select)
