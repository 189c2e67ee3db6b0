"""The user's options of DualQuery, and their validation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from dualquery.mechanisms.options import check_choice, check_number, check_whole
from dualquery.room.weights import MOST_ROUNDS
from dualquery.runtime.errors import BadInputError
from solvers import SolverError, get_solver

FreePolicy = Literal["zeros", "coins", "hint"]
Shares = Literal["fitted", "equal"]


@dataclass(frozen=True, kw_only=True)
class GameOptions:
    """Parameters of Algorithm 1. Those left out are chosen for the budget."""

    aliases: ClassVar[Mapping[str, str]] = {"memory": "remembered_rounds"}

    rounds: int | None = None
    """T: rounds of the game; each plays one record."""

    samples: int | None = None
    """s: queries drawn in each round."""

    eta: float | None = None
    """Learning rate of the query player."""

    effort: float = 1.0
    """Work that the policy takes, 1 being about a minute on two cores for what the paper runs: the
    step falls with it, and rounds and the draws that best responses look at grow."""

    alpha: float | None = None
    """Target error of Theorem 4.2, 0.01 or more; sets rounds, samples, eta as Algorithm 1 does."""

    beta: float = 0.05
    """Failure probability that goes with ``alpha``."""

    solver: str = "auto"
    """Solver of best responses, for example ``scip`` or ``cpsat:aggregated``; ``auto`` means
    ``auto:brief``, or ``auto:fast`` if remembered_rounds is 1."""

    solver_timeout: float = 20.0
    """Seconds a best response may take; after them the best record found so far is played."""

    free: FreePolicy = "zeros"
    """Values of attributes that no sampled query mentions: ``zeros``, fair ``coins``, or the values
    of the round before (``hint``)."""

    remembered_rounds: int | None = None
    """Rounds whose draws a best response looks at, the present one included. 1 in the paper; None
    for a number that suits the budget."""

    mixture: Shares = "fitted"
    """The records' shares of the synthetic data: ``fitted`` to all draws, or ``equal`` as in the
    paper."""

    burn_in: float = 0.0
    """Share of the rounds, from the first on, whose records are left out; 0 in the paper."""

    def __post_init__(self) -> None:
        check_whole(self, "rounds", "samples", "remembered_rounds")
        needed = f"a number from 2, as the first round looks at no data, to {MOST_ROUNDS:,}"
        check_number(self, needed, lambda x: 2 <= x <= MOST_ROUNDS, "rounds")
        positive = "eta", "solver_timeout", "effort"
        check_number(self, "a finite number above 0", lambda x: x > 0, *positive)
        check_number(self, "a number between 0 and 1", lambda x: 0 < x < 1, "beta")
        check_number(self, "a number from 0.01 to below 1", lambda x: 0.01 <= x < 1, "alpha")
        check_number(self, "a share of at least 0 and below 1", lambda x: 0 <= x < 1, "burn_in")
        check_choice(self, "free", known="known policies")
        check_choice(self, "mixture")
        try:
            get_solver(str(self.solver))  # an unknown one must fail before any data are read
        except SolverError as error:
            raise BadInputError(f"--solver: {error}") from error
        if self.alpha is not None and (self.rounds or self.samples or self.eta):
            raise BadInputError("alpha sets rounds, samples and eta: give alpha or these, not both")
