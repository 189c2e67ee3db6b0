"""One release's charge in a budget file, and the claim of the one attempt that may draw for it.

The page of this folder has the states of a release. Each transaction compares the claim's nonce
first. A nonce is random, and stands in the checkpoint before the file has it: whatever stops an
attempt, the next one from the same checkpoint knows the file's nonce. A copy that was made before
does not. A draw stands in the checkpoint before it is counted here, and is counted before it is
made: a checkpoint with fewer draws than the file was restored or shortened, and one whose last draw
was not counted did not make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dualquery.budgets.account import CHARGE, FINISH, RESUME, Account, Claim, Entry, new_token, now
from dualquery.budgets.budget_file import BudgetFile
from dualquery.privacy.composition import Cost
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError

_NOTHING = Cost(0.0, 0.0, 0.0)
_Written = Sequence[Entry | Claim]


@dataclass
class Charge:
    """A release as its budget file knows it, and one attempt to make it."""

    file: BudgetFile
    release: str = field(default_factory=new_token)
    """The release's id, random; it is public and stands in ``release.json``."""
    nonce: str = field(default_factory=new_token)
    """Of this attempt: random, never used before."""
    earlier: tuple[str, ...] = ()
    """Nonces of earlier attempts, from the checkpoint that this one goes on from."""
    begun: str = field(default_factory=now, compare=False)
    """UTC time, for people: of all entries, so that none tells how long a private pass took."""

    def check(self, neighbours: Neighbours, unit: str) -> None:
        """Refuse a file that protects something else, or that this user may not charge."""
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

    def known(self) -> bool:
        """Return whether the release is charged already."""
        return self.release in self.file.read().releases

    def pay(self, cost: Cost, *, mechanism: str, mark: str = "", foreseen: Cost = _NOTHING) -> None:
        """Charge what the release costs in all, as far as it is not charged yet, and claim it.

        On the disk when this returns; to be called before the draw. ``cost`` is that of everything
        that this release has drawn and is about to draw, ``foreseen`` what it will cost in the end
        at least: refused if there is no room for that. ``mechanism`` and ``mark``: see `Entry`.

        Raises
        ------
        BadInputError
            If the file has no room: nothing is charged then. If another attempt has claimed the
            release, or it is finished.
        """

        def decide(account: Account) -> _Written:
            known = account.releases.get(self.release)
            before = _NOTHING if known is None else known.cost
            if known is not None:
                self._claim_of(account)
                if known.finished:
                    raise self._refused("is finished")
                if before.covers(cost):
                    return ()
            if not cost.covers(before):
                raise RuntimeError(f"{cost} is less than {before}, which is charged already")
            for wanted in (cost, foreseen):
                if not account.allows(self.release, wanted):
                    raise BadInputError(_refusal(self.file, account, wanted))
            attempt = 0 if known is None else known.attempt
            entry = self._entry(CHARGE, attempt, cost, mechanism, mark)
            return (entry, Claim(self.release, self.nonce)) if known is None else (entry,)

        self.file.write(decide)

    def go_on(self, draws: int, *, open_draw: bool, needed: bool = False) -> int | None:
        """Take the release over from an earlier attempt.

        Parameters
        ----------
        draws
            Number of draws that the checkpoint has, in all attempts.
        open_draw, needed
            Whether the last of them has no result; whether the run cannot do without it: then
            nothing is taken over if it was made.

        Returns
        -------
        Number of draws that were counted: ``draws``, or one less if the open draw was never made.
        None if the release is not charged yet: nothing was drawn, and `pay` claims it.

        Raises
        ------
        BadInputError
            If another attempt has claimed it, or the file has other draws; nothing is changed then.
        """
        counted: list[int] = []

        def decide(account: Account) -> _Written:
            known = account.releases.get(self.release)
            if known is None and draws == 0:
                return ()
            claim = self._claim_of(account, *self.earlier)
            assert known is not None
            if claim.begun > draws:
                raise self._refused(
                    f"has begun {claim.begun} draws, and this checkpoint has {draws}: it is an "
                    "older copy or was shortened, and no draw is made twice; go on with the newest"
                )
            if claim.begun < draws - open_draw:
                raise self._refused(
                    f"has begun {claim.begun} draws and its checkpoint has {draws}: the budget "
                    "file is an older copy. Go on with the newest one"
                )
            counted.append(claim.begun)
            if open_draw and needed and claim.begun == draws:
                return ()
            stage = FINISH if known.finished else RESUME
            entry = self._entry(stage, known.attempt + 1)
            return entry, replace(claim, nonce=self.nonce)

        self.file.write(decide)
        return counted[0] if counted else None

    def draw(self, number: int) -> None:
        """Count a draw that is about to be made, the ``number``-th; refuse if it must not be."""
        if not self.file.count_draw(Claim(self.release, self.nonce, number)):
            self._claim_of(self.file.read())
            raise self._refused(f"was not at draw {number}: the budget file is an older copy")

    def hold(self, nonce: str) -> None:
        """Go on under another nonce, which no copy that was made before has."""
        self.file.write(lambda account: (replace(self._claim_of(account), nonce=nonce),))
        self.nonce = nonce

    def finish(self, nonce: str | None = None) -> None:
        """Note that the release is given out now; under another nonce, if copies may know this one.

        Raises `BadInputError` if another attempt has claimed it: this one must not be given out.
        """

        def decide(account: Account) -> _Written:
            last = replace(self._claim_of(account), nonce=nonce or self.nonce)
            known = account.releases[self.release]
            return (last,) if known.finished else (self._entry(FINISH, known.attempt), last)

        self.file.write(decide)

    def _claim_of(self, account: Account, *earlier: str) -> Claim:
        """Return the claim of the release; raise unless it has this attempt's nonce, or another."""
        claim = account.claims.get(self.release)
        if self.release not in account.releases:
            raise self._refused("was never charged to it")
        if claim is None:
            raise self._refused("was charged by an older version, which did not count its draws")
        if claim.nonce not in (self.nonce, *earlier):
            raise self._refused("goes on from another copy of its checkpoint, or went on from one")
        return claim

    def _refused(self, reason: str) -> BadInputError:
        return BadInputError(f"{self.file.path}: release {self.release} {reason}")

    def _entry(
        self, kind: str, attempt: int, cost: Cost = _NOTHING, mechanism: str = "", mark: str = ""
    ) -> Entry:
        return Entry(kind, self.release, attempt, cost, mechanism, mark, self.begun)


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
