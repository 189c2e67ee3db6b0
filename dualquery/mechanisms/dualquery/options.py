"""The user's options of DualQuery, and their validation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from dualquery.runtime.errors import BadInputError
from solvers import SolverError, get_solver

FreePolicy = Literal["zeros", "coins", "hint"]
Mixture = Literal["fitted", "equal"]


@dataclass(frozen=True, kw_only=True)
class GameOptions:
    """Parameters of Algorithm 1; what is left out is chosen for the budget."""

    rounds: int | None = None
    """T: rounds of the game; each plays one record."""

    samples: int | None = None
    """s: queries drawn a round."""

    eta: float | None = None
    """Learning rate of the query player."""

    alpha: float | None = None
    """Target error of Theorem 4.2; sets rounds, samples and eta as Algorithm 1 does."""

    beta: float = 0.05
    """Failure probability that goes with ``alpha``."""

    solver: str = "auto"
    """Back-end for the best response, for example ``scip`` or ``cpsat:aggregated``; ``auto`` is
    ``auto:brief`` unless memory is 1."""

    solver_timeout: float = 20.0
    """Seconds a best response may take; the incumbent is used then."""

    free: FreePolicy = "zeros"
    """Attributes that no sampled query mentions: ``zeros``, ``coins`` or the round's ``hint``."""

    memory: int | None = None
    """Rounds whose draws a best response looks at; 1 in the paper, by default chosen."""

    mixture: Mixture = "fitted"
    """Shares of the records: ``fitted`` to all draws, or ``equal`` as in the paper."""

    burn_in: float = 0.0
    """Share of first rounds, not settled yet, whose records are left out; 0 in the paper."""

    def __post_init__(self) -> None:
        for name in ("rounds", "samples", "memory"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise BadInputError(f"{name} is {value!r}; a whole number of at least 1 is needed")
        if self.rounds == 1:
            raise BadInputError("rounds is 1; the first round looks at no data, so take at least 2")
        for name in ("eta", "alpha", "solver_timeout"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise BadInputError(f"{name} is {value!r}; a finite number above 0 is needed")
        if not 0 < self.beta < 1:
            raise BadInputError(f"beta is {self.beta!r}; a number between 0 and 1 is needed")
        if not 0 <= self.burn_in < 1:
            raise BadInputError(f"burn_in is {self.burn_in!r}; a share of at least 0, below 1")
        if self.free not in get_args(FreePolicy):
            known = ", ".join(get_args(FreePolicy))
            raise BadInputError(f"free is {self.free!r}; known policies: {known}")
        if self.mixture not in get_args(Mixture):
            known = ", ".join(get_args(Mixture))
            raise BadInputError(f"mixture is {self.mixture!r}; known: {known}")
        try:
            get_solver(self.solver)  # an unknown one must fail before any data are read
        except SolverError as error:
            raise BadInputError(f"--solver: {error}") from error
        if self.alpha is not None and (self.rounds or self.samples or self.eta):
            raise BadInputError("alpha sets rounds, samples and eta: give alpha or these, not both")
