"""The ways of accounting side by side: each turns a public schedule into (epsilon, delta).

========== ==================================================== =======================
name       bound                                                supports
========== ==================================================== =======================
paper      Theorem 4.1 of the DualQuery paper, as printed       constant DualQuery only
advanced   basic or heterogeneous advanced composition          no Gaussian noise
zcdp       zero-concentrated differential privacy               all events, delta > 0
exact      optimal adaptive composition, rounded upwards        all events, delta > 0
========== ==================================================== =======================

All are valid where they support a schedule, so the smallest may be taken as long as the choice
looks at public quantities only: that is `best`.
"""

from typing import Protocol

from dualquery.privacy.accountants.exact import ExactAccountant
from dualquery.privacy.accountants.formulas import (
    AdvancedAccountant,
    PaperAccountant,
    ZcdpAccountant,
)
from dualquery.privacy.events import Schedule
from dualquery.runtime.errors import BadInputError, did_you_mean


class Accountant(Protocol):
    """A proven bound on the privacy of a schedule of adaptively chosen releases."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    @property
    def assumptions(self) -> str:
        """One sentence for the printed guarantee: the theorems it rests on."""
        ...

    def supports(self, schedule: Schedule, delta: float) -> str | None:
        """Return None if the bound is proven for ``schedule`` at ``delta``, else why not."""
        ...

    def epsilon(self, schedule: Schedule, delta: float) -> float:
        """Return an epsilon >= 0 for which ``schedule`` is (epsilon, ``delta``)-private."""
        ...

    def delta(self, schedule: Schedule, epsilon: float) -> float:
        """Return a delta in [0, 1] for which ``schedule`` is (``epsilon``, delta)-private."""
        ...


ACCOUNTANTS: tuple[Accountant, ...] = (
    PaperAccountant(),
    AdvancedAccountant(),
    ZcdpAccountant(),
    ExactAccountant(),
)
"""Every accountant, from the loosest to the tightest as a rule."""

AUTO = "auto"
"""The name that stands for the smallest of the valid accountants."""


def choices(name: str) -> tuple[Accountant, ...]:
    """Return the accountants that ``name`` stands for: all of them for ``"auto"``, else one.

    Raises
    ------
    BadInputError
        If no accountant has this name.
    """
    chosen = tuple(a for a in ACCOUNTANTS if name in (a.name, AUTO))
    if not chosen:
        known = [AUTO, *(a.name for a in ACCOUNTANTS)]
        raise BadInputError(
            f"--accountant: {name!r} is unknown{did_you_mean(name, known)} "
            f"(known: {', '.join(known)})"
        )
    return chosen


def best(schedule: Schedule, delta: float, name: str = AUTO) -> tuple[Accountant, float]:
    """Return the accountant with the smallest epsilon at ``delta`` among those ``name`` stands for.

    ``schedule`` is what the run will release, and public; ``name`` is ``"auto"`` or that of one
    accountant. `BadInputError` if it is unknown, or none of them supports the schedule.
    """
    reasons = []
    found: list[tuple[Accountant, float]] = []
    for accountant in choices(name):
        reason = accountant.supports(schedule, delta)
        if reason is None:
            found.append((accountant, accountant.epsilon(schedule, delta)))
        else:
            reasons.append(f"{accountant.name}: {reason}")
    if not found:
        more = "" if delta else ", or a positive --delta (laplace and smalldb spend none)"
        raise BadInputError(
            f"No valid accounting of this run at delta = {delta:g} ({'; '.join(reasons)}). "
            f"Use --accountant auto{more}."
        )
    return min(found, key=lambda pair: pair[1])
