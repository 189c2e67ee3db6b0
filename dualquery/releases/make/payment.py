"""How a release is paid for before anything is drawn, and what shows that a run goes on with it."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.budgets.account import ROW, Account, new_token
from dualquery.budgets.budget_file import BudgetFile
from dualquery.budgets.charge import Charge
from dualquery.budgets.sqlite_files import Seen
from dualquery.checkpoints.checkpoint import Checkpoint
from dualquery.data.opening import reading_errors
from dualquery.data.readers.formats import source_of
from dualquery.privacy.composition import Cost
from dualquery.privacy.events import Event
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.journal import Journal
from dualquery.room.ledger import prepare
from dualquery.rows.engines import files_of
from dualquery.runtime.errors import BadInputError, privacy_log
from dualquery.runtime.resources import versions

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.privacy.guarantee import PrivacyStatement
    from dualquery.queries.family import Queries
    from dualquery.requests import ReleaseSpec

ADD_UP = (
    "It was not charged to a budget file: with other releases about the same rows the epsilons and "
    "deltas add up."
)
"""Said by a release without a budget file (Dwork and Roth 2014, Theorem 3.16)."""

NO_WORD = (
    "this release charges no budget file, so nothing tells whether another copy of its checkpoint "
    "was resumed: both would draw, and together cost more than is stated. If no other copy ran or "
    "ever will, say so with --no-other-copy"
)

UNKNOWN_TABLE = (
    "nothing tells whether this is the same table: it is in no file, or no key can be kept for it"
)

NOT_PRIVATE = (
    "--budget: a budget file holds what private releases cost, and this release is not private "
    "({reason}); leave --budget out, or {remedy}"
)


@dataclass(frozen=True)
class Payment:
    """What a release pays with."""

    charge: Charge | None = None  # in a budget file; None for a release without one
    mechanism: str = ""  # its name, for those who read the file
    mark: str = ""  # keyed hash of the table, or ""
    checkpoint: Checkpoint | None = None  # keeps the nonces of the claim

    @staticmethod
    def begin(
        budget: str | Path | BudgetFile | None,
        table: object,
        neighbours: Neighbours,
        mechanism: str,
        seed: int | None,
        checkpoint: Checkpoint | None = None,
    ) -> Payment:
        """Look at the budget file before the rows are read; nothing is charged yet.

        The operator's log warns if the file knows other tables only. A release that goes on from a
        checkpoint is refused if another attempt has claimed it, or nothing tells whether one did;
        any release, if the file cannot be charged, protects something else, or a seed is given.
        """
        if checkpoint is not None:
            checkpoint.same("budget", {"file": budget is not None})
            if checkpoint.resumed and checkpoint.facts.get("table") == {"keyed hash": ""}:
                privacy_log.warning(UNKNOWN_TABLE)
        if budget is None:
            if checkpoint is not None:
                checkpoint.settle()
                if checkpoint.resumed and not checkpoint.no_other_copy:
                    raise BadInputError(NO_WORD)
            return NO_PAYMENT
        if seed is not None:
            raise BadInputError(NOT_PRIVATE.format(reason="it has a seed", remedy="--seed"))
        file = BudgetFile.of(budget)
        charge = Charge(file)
        charge.check(neighbours, protected_by(neighbours))
        if checkpoint is not None:
            charge = claimed(charge, checkpoint)
        mark = mark_of(table)
        if is_new(mark, file.read()):
            privacy_log.warning(
                "this table is none of those that %s was charged for. That is right if the data "
                "set has grown or been corrected, or this is its next part; another data set needs "
                "a budget file of its own",
                file.path,
            )
        return Payment(charge, mechanism, mark, checkpoint)

    @property
    def epsilon(self) -> float:
        """The epsilon of all releases of the budget file together; 0 without a file."""
        return 0.0 if self.charge is None else self.charge.file.read().terms.filter.epsilon

    def require_declared(self, declared: bool) -> None:
        """Refuse an undeclared schema with a budget file: there is no guarantee to charge."""
        if self.charge is not None and not declared:
            raise BadInputError(
                NOT_PRIVATE.format(reason="its schema is not declared", remedy="declare a --schema")
            )

    def pay_first(self, events: tuple[Event, ...], own: tuple[float, float], whole: Cost) -> None:
        """Pay for all events so far, which are drawn before the rest is planned.

        ``own`` are their epsilon and delta. There must be room for about the ``whole``, too.
        """
        self._pay(events, Cost.of(events, *own), whole)

    def pay(self, events: tuple[Event, ...], privacy: PrivacyStatement) -> None:
        """Pay for all events; refused if there is no room, or the release is not private."""
        if self.charge is None:
            return
        if privacy.epsilon is None or privacy.delta is None:
            reasons = "; ".join(privacy.reasons_not_private)
            raise BadInputError(NOT_PRIVATE.format(reason=reasons, remedy="mend that"))
        self._pay(events, Cost.of(events, privacy.epsilon, privacy.delta))

    def _pay(self, events: tuple[Event, ...], cost: Cost, foreseen: Cost | None = None) -> None:
        """Pay, when all that draws is loaded: a checkpoint that is complete has paid."""
        if self.charge is None or (self.checkpoint is not None and self.checkpoint.complete):
            return
        prepare(events)
        if self.checkpoint is not None and self.charge.nonce not in self.checkpoint.claims:
            self.checkpoint.claim(self.charge.nonce)
        try:
            most = foreseen or cost
            self.charge.pay(cost, mechanism=self.mechanism, mark=self.mark, foreseen=most)
        except BadInputError:
            if self.checkpoint is not None and not self.charge.known():
                self.checkpoint.unclaim()
            raise

    def finish(self) -> None:
        """Note in the file that the release is given out: now, or when it gets its name."""
        charge, checkpoint = self.charge, self.checkpoint
        if charge is None:
            return
        if checkpoint is None:
            self._finish_named()  # what was paid for is given out, noted or not
        elif not checkpoint.placed:
            charge.finish(checkpoint.claim())
        else:
            checkpoint.before_name = lambda out: charge.hold(checkpoint.claim(out=out))
            checkpoint.after_name = self._finish_named

    def _finish_named(self) -> None:
        """Note that the release has its name, under a nonce that no checkpoint has."""
        assert self.charge is not None
        try:
            self.charge.finish(new_token())
        except BadInputError as error:
            privacy_log.warning("charged and made, which may not be noted: %s", error)

    def record(self) -> dict[str, Any]:
        """Return what ``release.json`` says of the charge."""
        if self.charge is None:
            return {"charged": False}
        return {"charged": True, "release": self.charge.release}

    def together(self) -> str:
        """Return the sentence about this release and others of the same rows."""
        if self.charge is None:
            return ADD_UP
        chosen = self.charge.file.read().terms.filter
        limits = f"({chosen.epsilon:.15g}, {chosen.delta:.15g})"
        return (
            f"It was charged to a budget file, as release {self.charge.release}: all releases that "
            f"are charged to that file are {limits}-differentially private together (composition "
            f"{chosen.composition.value}), under all that one of them is conditional on."
        )


def protected_by(neighbours: Neighbours) -> str:
    """Return what a budget file calls the unit of a relation: `ROW`, or a column."""
    if neighbours.unit is None:
        return ROW
    if neighbours.unit.column == ROW:
        raise BadInputError(
            f"--unit {ROW}: in a budget file {ROW!r} is one row of the table; rename the column"
        )
    return neighbours.unit.column


NO_PAYMENT = Payment()  # of a release without a budget file


def claimed(new: Charge, checkpoint: Checkpoint) -> Charge:
    """Return the charge that a checkpoint goes on with, claimed if it is charged already.

    ``new`` is the charge of a release that begins. Refused if another attempt has claimed the
    release, the checkpoint has fewer draws than the file, or a draw is lost that is needed.
    """
    checkpoint.same("charge", checkpoint.facts.get("charge", {"release": new.release}))
    charge = replace(new, release=checkpoint.facts["charge"]["release"], earlier=checkpoint.claims)
    counted = None
    if (elsewhere := checkpoint.elsewhere()) is not None:
        raise BadInputError(
            f"this is a copy of a checkpoint whose release is in {elsewhere}, or was about to get "
            "its name: one charge is for one release. If that folder is another one, move it away"
        )
    if checkpoint.claims or checkpoint.draws:
        charge.nonce = checkpoint.claim()
        counted = charge.go_on(
            checkpoint.draws, open_draw=checkpoint.open_draw, needed=checkpoint.needs_open_draw
        )
    checkpoint.settle(counted)
    checkpoint.count = charge.draw
    return charge


def mark_of(table: object) -> str:
    """Return the mark of a table: the name of a secret key, a colon, and a keyed hash.

    Without the key (`dualquery.budgets.sqlite_files`) nobody can test a guess of the table against
    it. It is "" for a table that is not in files. `BadInputError` if table or key is not read.
    """
    source = source_of(table)
    if not (files := files_of(source)):
        return ""
    with Seen.opened() as seen:
        key = seen.key
    content = hmac.new(key, b"table", hashlib.sha256)
    for file in files:
        with reading_errors(source.label), file.open("rb") as stream:
            own = hmac.new(key, b"file", hashlib.sha256)
            while piece := stream.read(1 << 20):
                own.update(piece)
        content.update(own.digest())
    return f"{hmac.new(key, b'name', hashlib.sha256).hexdigest()[:16]}:{content.hexdigest()}"


def is_new(mark: str, account: Account) -> bool:
    """Return whether a budget file has marks of the same key, but not this one: a warning."""
    name, _, _ = mark.partition(":")
    known = {entry.mark for entry in account.entries if entry.mark.startswith(f"{name}:")}
    return bool(mark) and bool(known) and mark not in known


def keep_request(spec: ReleaseSpec, journal: Journal) -> None:
    """Keep versions, options and which table it is, if in files: a run that goes on shares them."""
    mechanism, workload = spec.configured, spec.workload.described
    options: dict[str, Any] = asdict(mechanism)  # type: ignore[call-overload]  # a dataclass
    journal.same("program", versions())
    journal.same("mechanism", {"name": mechanism.name, **options})
    journal.same("budget request", asdict(spec.budget))
    journal.same("workload request", asdict(workload))
    shown = spec.run.show_private_errors
    journal.same("request", {"records": spec.records.number, "show_private_errors": shown})
    try:
        mark = mark_of(spec.table.source)
    except BadInputError:  # there is no folder to keep a key in
        mark = ""
    journal.same("table", {"keyed hash": mark})


def keep_questions(journal: Journal, schema: Schema, queries: Queries) -> None:
    """Keep the schema and the queries, by their digests."""
    import polars as pl

    described = json.dumps(schema.to_dict(), sort_keys=True).encode()
    journal.same("schema", {"sha256": hashlib.sha256(described).hexdigest()})
    digest, columns = hashlib.sha256(), queries.to_columns()
    if columns:  # a family of the user's own may have none
        # The same from run to run of one version of Polars, and versions are compared.
        digest.update(pl.DataFrame(columns).hash_rows().to_numpy().tobytes())
    journal.same("workload", {"queries": len(queries), "sha256": digest.hexdigest()})
