"""One release's charge in a budget file, and the claim of the one attempt that may draw for it.

The page of this folder has the states of a release. Each transaction compares the claim's nonce
first, which is random and stands in the checkpoint before the file has it: the next attempt from
the same checkpoint knows it, a copy that was made before does not. A draw stands in the checkpoint
before it is counted here, and is counted before it is made: a checkpoint with fewer draws than the
file was restored or shortened, and one whose last draw was not counted did not make it.
"""

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
    nonce: str = field(default_factory=new_token)  # of this attempt
    earlier: tuple[str, ...] = ()  # nonces of earlier attempts, from the checkpoint
    begun: str = field(default_factory=now, compare=False)
    """UTC time of all entries, for people: none tells how long a private pass took."""

    def check(self, neighbours: Neighbours, unit: str) -> None:
        """Refuse a file that protects something else, or that this user may not charge."""
        terms = self.file.read().terms
        relations = (terms.neighbours.value, neighbours.value)
        for option, (held, own) in {"neighbours": relations, "unit": (terms.unit, unit)}.items():
            if held != own:
                raise BadInputError(
                    f"{self.file.path} is the budget of releases with --{option} {held}, and this "
                    f"release has {own}; one file has one"
                )
        if problem := self.file.problem():
            raise BadInputError(problem)

    def known(self) -> bool:
        """Return whether the release is charged already."""
        return self.release in self.file.read().releases

    def pay(self, cost: Cost, *, mechanism: str, mark: str = "", foreseen: Cost = _NOTHING) -> None:
        """Charge what the release costs in all, as far as it is not charged yet, and claim it.

        On the disk when this returns; to be called before the draw. ``cost`` is that of everything
        that this release has drawn and is about to draw, ``foreseen`` about what it will cost in
        the end. ``mechanism`` and ``mark``: see `Entry`. `BadInputError`, with nothing charged, if
        the file has no room for either, another attempt has claimed the release, or it is finished.
        """

        def decide(account: Account) -> _Written:
            known = account.releases.get(self.release)
            if known is not None:
                self._claim_of(account)
                if known.finished:
                    raise self._refused("is finished")
                if known.cost.covers(cost):
                    return ()
                if not cost.covers(known.cost):
                    raise RuntimeError(f"{cost} is less than {known.cost}, charged already")
            for wanted in (cost, foreseen):
                if not account.allows(self.release, wanted):
                    raise BadInputError(_refusal(self.file, account, wanted))
            attempt = 0 if known is None else known.attempt
            entry = self._entry(CHARGE, attempt, cost, mechanism, mark)
            return (entry, Claim(self.release, self.nonce)) if known is None else (entry,)

        self.file.write(decide)

    def go_on(self, draws: int, *, open_draw: bool, needed: bool = False) -> int | None:
        """Take the release over from an earlier attempt; return the draws that were counted.

        The checkpoint has ``draws``, in all attempts, the last of them without a result if
        ``open_draw``: one less is counted if that was never made. If it was, and the run cannot do
        without it (``needed``), nothing is taken over. None if the release is not charged yet:
        nothing was drawn, and `pay` claims it. `BadInputError`, with nothing changed, if another
        attempt has claimed it, or the file has other draws.
        """
        counted: list[int] = []

        def decide(account: Account) -> _Written:
            known = account.releases.get(self.release)
            if known is None and draws == 0:
                return ()
            claim = self._claim_of(account, *self.earlier)
            assert known is not None
            if not draws - open_draw <= claim.begun <= draws:
                older = "this checkpoint" if claim.begun > draws else "the budget file"
                raise self._refused(
                    f"has begun {claim.begun} draws, and this checkpoint has {draws}: {older} is "
                    "an older copy or was shortened, and no draw is made twice; go on with the "
                    "newest"
                )
            counted.append(claim.begun)
            if open_draw and needed and claim.begun == draws:
                return ()
            entry = self._entry(FINISH if known.finished else RESUME, known.attempt + 1)
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

        `BadInputError` if another attempt has claimed it.
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
    """Say why a cost is refused, and what the file has left."""
    chosen, known = account.terms.filter, account.costs
    return (
        f"the budget file {file.path} has no room for a release of epsilon {wanted.epsilon:.15g} "
        f"and delta {wanted.delta:g} (rho {wanted.rho:.4g}): of epsilon {chosen.epsilon:g} and "
        f"delta {chosen.delta:g} (composition {chosen.composition.value}) the releases charged so "
        f"far, {len(known)}, leave {chosen.left(known)}. Ask for less; nothing was charged for this"
    )
