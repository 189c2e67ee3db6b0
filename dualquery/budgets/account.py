"""What a budget file says: its terms, an entry for each event in order, and a claim a release.

Entries are only ever added, each with a digest of itself and of the entry before it: a changed
entry is found, and so are two copies of a file that were charged separately.
"""

import datetime
import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property

from dualquery.privacy.composition import Cost, PrivacyFilter
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError

CHARGE, RESUME, FINISH = KINDS = ("charge", "resume", "finish")

ROW = "row"
"""The unit of protection where nothing else is said: one row of the table."""

_TOKEN = re.compile(r"[0-9a-f]{32}")
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Terms:
    """What is fixed when a budget file is made."""

    id: str
    """32 random hexadecimal digits: a copy of the file has the same."""
    filter: PrivacyFilter
    """Epsilon, delta and how costs add up."""
    neighbours: Neighbours
    """The pairs of tables that every release must protect."""
    unit: str
    """What one neighbour differs in: `ROW`, or the name of a column."""
    created: str
    """UTC time, ISO 8601, for people: nothing is decided by it."""

    def __post_init__(self) -> None:
        _require(_TOKEN.fullmatch(self.id), "the id", self.id)
        _require_name("--unit", self.unit)
        _require_name("the time", self.created)

    @property
    def digest(self) -> str:
        """What the digest of the first entry begins with."""
        budget = float(self.filter.epsilon), float(self.filter.delta)
        composition, relation = self.filter.composition.value, self.neighbours.value
        return _digest(self.id, *budget, composition, relation, self.unit, self.created)


@dataclass(frozen=True)
class Entry:
    """One event in the life of a release."""

    kind: str
    """`CHARGE`: what the release costs, in all. `RESUME`: another attempt took it over. `FINISH`:
    it is given out, and nothing more will be drawn for it."""
    release: str
    """The release's id: 32 random hexadecimal digits."""
    attempt: int
    """Number of the attempt that wrote it, from 0 on."""
    cost: Cost
    """Of the whole release so far; nothing in other entries."""
    mechanism: str
    mark: str
    """Keyed hash of the table (see `dualquery.releases.make.payment`), or ""."""
    written: str

    def __post_init__(self) -> None:
        _require(self.kind in KINDS, "the kind of an entry", self.kind)
        _require(_TOKEN.fullmatch(self.release), "the id of a release", self.release)
        _require(0 <= self.attempt < 1 << 31, "the number of an attempt", self.attempt)
        parts = astuple(self.cost)
        _require(all(0.0 <= part < 1e300 for part in parts), "a cost", parts)
        for name in (self.mechanism, self.mark, self.written):
            _require_name("a text", name, shortest=0)

    def digest(self, before: str) -> str:
        """Return the digest of this entry, after another one's or that of the terms."""
        *costs, threshold = map(float, astuple(self.cost))  # files of version 1 have no threshold
        return _digest(
            before, self.kind, self.release, self.attempt, *costs, self.mechanism, self.mark,
            self.written, *([threshold] if threshold else []),
        )  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """Who may draw for a release: the attempt that has the nonce, 32 random hexadecimal digits."""

    release: str
    nonce: str
    begun: int = 0
    """Number of draws that were begun for it, in all attempts."""

    def __post_init__(self) -> None:
        for token in (self.release, self.nonce):
            _require(_TOKEN.fullmatch(token), "a claim", token)
        _require(0 <= self.begun < 1 << 31, "the number of draws", self.begun)

    def digest(self, file: str) -> str:
        """Return the digest of the claim, in a file of some id."""
        return _digest(file, self.release, self.nonce, self.begun)


@dataclass(frozen=True)
class Charged:
    """A release in a budget file: the entries about it, put together."""

    id: str
    cost: Cost
    mechanism: str
    written: str
    attempt: int  # number of times that it was taken over
    finished: bool


@dataclass(frozen=True)
class Account:
    """The whole content of a budget file."""

    terms: Terms
    entries: Sequence[Entry]
    claims: Mapping[str, Claim] = field(default_factory=dict)  # by release; of format 1 none

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """The digest of the terms, then one an entry."""
        found = [self.terms.digest]
        for entry in self.entries:
            found.append(entry.digest(found[-1]))
        return tuple(found)

    @cached_property
    def releases(self) -> dict[str, Charged]:
        """Every release by its id, the first first."""
        found: dict[str, Charged] = {}
        for entry in self.entries:
            known = found.get(entry.release)
            if known is None:
                _require(entry.kind == CHARGE, "the first entry of a release", entry.kind)
            last = entry if entry.kind == CHARGE or known is None else known
            begun = entry if known is None else known
            finished = entry.kind == FINISH
            found[entry.release] = Charged(
                entry.release, last.cost, last.mechanism, begun.written, entry.attempt, finished
            )
        return found

    @property
    def costs(self) -> list[Cost]:
        """What each release costs."""
        return [each.cost for each in self.releases.values()]

    @property
    def spent(self) -> tuple[float, float]:
        """An (epsilon, delta) that all releases have together."""
        return self.terms.filter.spent(self.costs)

    def allows(self, release: str, cost: Cost) -> bool:
        """Return whether one release may cost so much in all, beside what the others cost."""
        others = [each.cost for each in self.releases.values() if each.id != release]
        return self.terms.filter.allows([*others, cost])


def new_token() -> str:
    """Return the id of a new file or release."""
    return secrets.token_hex(16)


def now() -> str:
    """Return the time for an entry: UTC, ISO 8601, whole seconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _digest(*parts: str | int | float) -> str:
    """Return the SHA-256 of texts and numbers, in hexadecimal."""
    exact = [part.hex() if isinstance(part, float) else part for part in parts]
    return hashlib.sha256(json.dumps(exact).encode("ascii")).hexdigest()


def _require(holds: object, what: str, found: object) -> None:
    if not holds:
        raise BadInputError(f"{what} is {found!r}, which no budget file has")


def _require_name(what: str, text: str, shortest: int = 1) -> None:
    if not (shortest <= len(text) <= _LONGEST_NAME and text.isprintable()):
        raise BadInputError(
            f"{what} is {text[:_LONGEST_NAME]!r}; {shortest} to {_LONGEST_NAME} printable "
            "characters are needed"
        )
