"""One release's charge in a budget file: before its first draw, and once for each attempt.

The order in which a release uses it:

1. `Charge.check`, before the table is read: the file protects what the release protects.
2. `Charge.pay`, before the first draw, with the cost of all that is about to be drawn. Where the
   number of rows is bought, it is paid first, and the rest once it is known.
3. `Charge.finish`, when nothing more will be drawn and before the release is given out.

A release that was interrupted may go on from a checkpoint on the same charge, with `Charge.resume`.
An attempt that another one has taken over can neither pay nor finish: of two runs that draw for
one charge at most one gives out a release.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dualquery.budgets.account import (
    CHARGE,
    FINISH,
    RESUME,
    Account,
    Charged,
    Entry,
    new_token,
    now,
)
from dualquery.budgets.budget_file import BudgetFile
from dualquery.privacy.composition import Cost
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError

_NOTHING = Cost(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Charge:
    """A release as its budget file knows it.

    Parameters
    ----------
    file
        The budget file.
    release
        The release's id, random; it is public and stands in ``release.json``. By default a new one.
    attempt
        Number of this attempt to make the release: 0, and one more each time it is resumed.
    begun
        UTC time, ISO 8601, for people: of all entries of the attempt, so that none of them tells
        how long a pass over private rows took.
    """

    file: BudgetFile
    release: str = field(default_factory=new_token)
    attempt: int = 0
    begun: str = field(default_factory=now, compare=False)

    def check(self, neighbours: Neighbours, unit: str) -> None:
        """Refuse a file that protects something else, or that this user may not charge.

        Raises
        ------
        BadInputError
            If it does, or the file cannot be read.
        """
        terms = self.file.read().terms
        if terms.neighbours.value != neighbours.value:
            raise BadInputError(
                f"{self.file.path} is the budget of releases with --neighbours "
                f"{terms.neighbours.value}, and this release has {neighbours.value}; one file has "
                "one relation of neighbours"
            )
        if terms.unit != unit:
            raise BadInputError(
                f"{self.file.path} is the budget of releases that protect one {terms.unit!r}, and "
                f"this release protects one {unit!r}; one file has one unit"
            )
        problem = self.file.problem()
        if problem is not None:
            raise BadInputError(problem)

    def pay(self, cost: Cost, *, mechanism: str, mark: str = "", foreseen: Cost = _NOTHING) -> None:
        """Charge what the release costs in all, as far as it is not charged yet.

        On the disk when this returns; to be called before the draw. A cost that is charged already,
        by this attempt or one before it, is not charged again.

        Parameters
        ----------
        cost
            Of everything that this release has drawn and is about to draw.
        mechanism
            Its name, for people.
        mark
            Keyed hash of the table (`dualquery.budgets.marks`), or "".
        foreseen
            What it will cost in the end at least; refused if there is no room for that.

        Raises
        ------
        BadInputError
            If the file has no room for the cost: then nothing is charged, and the message says what
            is left. If another attempt has taken the release over, or it is finished.
        """

        def decide(account: Account) -> Entry | None:
            known = account.releases.get(self.release)
            before = _NOTHING
            if known is not None:
                self._require_current(known)
                before = known.cost
            if known is not None and before.covers(cost):
                return None
            if not cost.covers(before):
                raise RuntimeError(f"{cost} is less than {before}, which is charged already")
            for wanted in (cost, foreseen):
                if not account.allows(self.release, wanted):
                    raise BadInputError(_refusal(self.file, account, wanted))
            return self._entry(CHARGE, cost, mechanism, mark)

        self.file.write(decide)

    def resume(self) -> Charge:
        """Claim the right to go on with the release from what this attempt left behind.

        Atomic: of all processes that claim the same attempt one succeeds, once and for ever.

        Returns
        -------
        Charge
            The next attempt, which may draw what the release is charged for and has not drawn yet.

        Raises
        ------
        BadInputError
            If the file does not know the release, it was finished, or the attempt was resumed
            before: the copy of the checkpoint that was then used goes on, this one must not.
        """

        def decide(account: Account) -> Entry:
            self._require_current(account.releases.get(self.release))
            return replace(self._entry(RESUME), attempt=self.attempt + 1)

        self.file.write(decide)
        return Charge(self.file, self.release, self.attempt + 1)

    def finish(self) -> None:
        """Note that nothing more will be drawn; to be called before the release is given out.

        Raises
        ------
        BadInputError
            If another attempt has taken the release over: its result counts, this one must not be
            given out.
        """

        def decide(account: Account) -> Entry:
            self._require_current(account.releases.get(self.release))
            return self._entry(FINISH)

        self.file.write(decide)

    def _require_current(self, known: Charged | None) -> None:
        """Raise unless this attempt is the one that may draw."""
        if known is None:
            reason = "was never charged to it"
        elif known.finished:
            reason = "is finished"
        elif known.attempt > self.attempt:
            reason = f"was resumed from attempt {self.attempt} before, and goes on from there"
        elif known.attempt < self.attempt:
            reason = f"has had {known.attempt + 1} attempts only: this file is older than they are"
        else:
            return
        raise BadInputError(f"{self.file.path}: release {self.release} {reason}")

    def _entry(
        self, kind: str, cost: Cost = _NOTHING, mechanism: str = "", mark: str = ""
    ) -> Entry:
        return Entry(kind, self.release, self.attempt, cost, mechanism, mark, self.begun)


def _refusal(file: BudgetFile, account: Account, wanted: Cost) -> str:
    """Say why a cost is refused, and what is left."""
    chosen = account.terms.filter
    known = account.costs
    those = "1 release leaves" if len(known) == 1 else f"{len(known)} releases leave"
    return (
        f"the budget file {file.path} has no room for a release of epsilon {wanted.epsilon:g} and "
        f"delta {wanted.delta:g} (rho {wanted.rho:.4g}): of epsilon {chosen.epsilon:g} and delta "
        f"{chosen.delta:g} (composition {chosen.composition.value}) {those} "
        f"{chosen.left(known)}. Ask for less; nothing was charged for this"
    )
