"""The journal of a run in a file: what it is of, what it has drawn, and its public values.

Every attempt to make the release appends to the same file. Exact numbers and the state of a
generator are never in it. The file has JSON lines, each with a digest of all before it. A line that
was cut off by a loss of power is dropped when the file is opened again: it was not synced, so
nothing depends on it. The digests show every other change, unless all are computed anew: the file
belongs to the operator.
"""

import base64
import hashlib
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dualquery.budgets.account import new_token
from dualquery.privacy.events import Event, RandomizedReport
from dualquery.room.ground import Ground
from dualquery.room.journal import Journal, Public, Recorded
from dualquery.runtime.errors import BadInputError

LARGEST_ARRAYS = 1 << 32
"""Bytes of all arrays of a file that is read, at most: 2^29 noisy numbers."""
_BEGINNING = hashlib.sha256(b"dualquery checkpoint").hexdigest()
_DIGITS = 32
_DTYPES = ("uint8", "int64", "float64")

Entry = dict[str, Any]


class CheckpointLines:
    """The open file; ``entries`` is what it held when it was opened.

    ``on_full`` is called when the disk is full, and returns whether it made room.
    """

    def __init__(self, path: Path, on_full: Callable[[], bool] = lambda: False) -> None:
        self._path, self._on_full, self._digest = path, on_full, _BEGINNING
        self.entries: list[Entry] = []
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            self._file = os.fdopen(handle, "r+b", buffering=0)
        except OSError as error:
            raise BadInputError(f"{path}: {error.strerror}") from error
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def append(self, entry: Entry, *, sync: bool) -> None:
        """Write an entry; with ``sync`` it and all before it are on the disk when this returns."""
        text = json.dumps(_written(entry), separators=(",", ":"))
        digest = _next(self._digest, text)
        line = memoryview(f"{digest} {text}\n".encode("ascii"))
        while True:
            try:
                while line:
                    line = line[self._file.write(line) :]
                if sync:
                    os.fsync(self._file.fileno())
                break
            except OSError as error:
                if not self._on_full():
                    raise BadInputError(
                        f"cannot write the checkpoint {self._path}: {error.strerror or error}"
                    ) from error
        self._digest = digest

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> None:
        whole, left = 0, [LARGEST_ARRAYS]
        for number, line in enumerate(self._file.readlines(), 1):
            digest, _, text = line[:-1].decode("ascii", "backslashreplace").partition(" ")
            sound, ends = digest == _next(self._digest, text), line.endswith(b"\n")
            if not sound and not ends:  # it was cut off as it was written
                break
            try:
                if not (sound and ends):
                    raise ValueError("its digest is of another content")
                self.entries.append(_value(json.loads(text), left))
            except (ValueError, RecursionError, MemoryError) as error:
                raise BadInputError(
                    f"the checkpoint {self._path} is damaged: line {number}: {error}"
                ) from error
            self._digest = digest
            whole += len(line)
        self._file.truncate(whole)
        self._file.seek(whole)


def _next(digest: str, text: str) -> str:
    return hashlib.sha256(f"{digest} {text}".encode("ascii", "replace")).hexdigest()[:_DIGITS]


def _written(value: Any) -> Any:
    """Return a value with its arrays as texts."""
    if isinstance(value, np.ndarray):
        packed = base64.b85encode(zlib.compress(value.tobytes(), 1)).decode("ascii")
        return {"array": value.dtype.name, "shape": list(value.shape), "data": packed}
    if isinstance(value, dict):
        return {key: _written(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _value(written: Any, left: list[int]) -> Any:
    """Return a value with its texts as arrays, which take the bytes that are ``left``."""
    if isinstance(written, list):
        return [_value(each, left) for each in written]
    if not isinstance(written, dict):
        return written
    if written.keys() == {"array", "shape", "data"}:
        return _array(written["array"], written["shape"], written["data"], left)
    return {key: _value(each, left) for key, each in written.items()}


def _array(dtype: object, shape: object, data: object, left: list[int]) -> NDArray[Any]:
    lengths = shape if isinstance(shape, list) else [-1]
    if dtype not in _DTYPES or not isinstance(data, str):
        raise ValueError(f"an array of {dtype!r}")
    if not all(type(length) is int and 0 <= length <= left[0] for length in lengths):
        raise ValueError(f"an array of shape {shape!r}")
    expected = math.prod(lengths) * np.dtype(str(dtype)).itemsize
    if expected > left[0]:
        raise ValueError(f"an array of {expected:,} bytes, and {left[0]:,} may be left")
    left[0] -= expected
    try:
        content = zlib.decompressobj().decompress(base64.b85decode(data), expected + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(content) != expected:
        raise ValueError(f"an array of {len(content):,} bytes where {expected:,} are expected")
    return np.frombuffer(content, str(dtype)).reshape(lengths).copy()


FORMAT = 2  # with claims instead of numbered attempts

_KINDS: dict[str, Any] = {each.__name__: each for each in (*get_args(Event), RandomizedReport)}
_MOST_EVENTS = 1 << 24  # of all draws in a file
_MOST_DEATHS = 2  # attempts that may die while they compute one public value

STUCK = (
    "the run was stopped in the middle of a private draw that it cannot do without, and no draw is "
    "made twice, so it cannot go on"
)


class Checkpoint(Journal):
    """A journal (`dualquery.room.journal`) in a file of its own, for one run.

    Another attempt opens the file anew: what this one draws is in the file only. `BadInputError` if
    the file is damaged, of a newer version, or cannot be read or made.

    Parameters
    ----------
    path
        The file; a new one, or that of earlier attempts.
    on_full, hold
        Called when the disk is full, returns whether it made room; takes bytes of it, until the
        release is written.
    no_other_copy, placed
        The operator's word that it is resumed here and nowhere else; whether the release is written
        beside it: it is given out then, and not before.

    Attributes
    ----------
    claims, named, facts
        Nonces of all attempts on a budget file (`dualquery.budgets.charge`); where the release was
        made, and the name it was about to get, when an earlier attempt ended; what `same` kept.
    complete, fresh, advanced
        Whether all was drawn; draws that began in this attempt; whether it charged or drew.
    count, before_name, after_name
        Called with a draw's number before it is made, and prevents it by what it raises; called
        before the release's folder gets its name, and when it has it.
    """

    def __init__(
        self,
        path: Path,
        *,
        on_full: Callable[[], bool] = lambda: False,
        hold: Callable[[int], None] = lambda _: None,
        no_other_copy: bool = False,
        placed: bool = False,
    ) -> None:
        self._path, self._hold = path, hold
        self.no_other_copy, self.placed = no_other_copy, placed
        self.count: Callable[[int], None] = lambda _: None
        self.before_name: Callable[[Path], None] = lambda _: None
        self.after_name: Callable[[], None] = lambda: None
        self.claims: tuple[str, ...] = ()
        self.named: tuple[Path, ...] = ()
        self.complete = self.advanced = self._started = self._settled = False
        self.fresh = self._events = self._taken = 0
        self.facts: dict[str, Public] = {}
        self._draws: list[Recorded] = []
        self._needed: list[bool] = []
        self._in_needed_draw = False
        self._public: dict[str, Public] = {}
        self._deaths: Counter[str] = Counter()
        self._lines = CheckpointLines(path, on_full)
        if not self._lines.entries:
            self._lines.append({"checkpoint": FORMAT}, sync=True)
        try:
            for number, entry in enumerate(self._lines.entries):
                self._take_in(number, entry)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            self.close()
            raise BadInputError(f"the checkpoint {path}: {error}") from error
        self._lines.entries.clear()

    @property
    def draws(self) -> int:
        """Number of private draws that began, in all attempts."""
        return len(self._draws) + self.fresh

    @property
    def lost(self) -> int:
        """Number of draws of earlier attempts without a result."""
        return sum(each.result is None for each in self._draws)

    @property
    def open_draw(self) -> bool:
        """Whether the last draw of earlier attempts has no result."""
        return bool(self._draws) and self._draws[-1].result is None

    @property
    def needs_open_draw(self) -> bool:
        """Whether that is a draw that the run cannot do without."""
        return self.open_draw and self._needed[-1]

    @property
    def stuck(self) -> bool:
        """Whether a draw was begun and lost that the run cannot do without: none can go on.

        Of the last draw only the budget file tells, if there is one: see `settle`.
        """
        lost = [each.result is None for each in self._draws]
        if self.claims and not self._settled:
            lost[-1:] = [False] * bool(lost)
        return self._in_needed_draw or any(map(all, zip(lost, self._needed, strict=True)))

    def stays(self) -> str:
        """Return, as a clause, how many draws were begun, and that charges stay."""
        return f"private draws begun: {self.draws:,}; what was charged stays charged"

    @property
    def resumed(self) -> bool:
        """Whether an earlier attempt drew, and this one is to draw more."""
        return bool(self._draws) and not self.complete

    def start(self) -> None:
        """Begin the run; refuse if one began with this object before, or none can go on."""
        self._require_draws()
        if self._started:
            raise BadInputError(
                f"the checkpoint {self._path} was given to a run before; open the file anew to go "
                "on with that one, or make another for a new release"
            )
        self._started = True

    def claim(self, nonce: str | None = None, out: Path | None = None) -> str:
        """Keep a nonce, by default a new one, before a budget file has it, and return it.

        ``out`` is the release's folder, if it is about to get its name.
        """
        nonce = nonce or new_token()
        names = [] if out is None else [str(each.absolute()) for each in (self._path.parent, out)]
        self._lines.append({"claim": nonce, "named": names}, sync=True)
        self.claims, self.advanced = (*self.claims, nonce), True
        return nonce

    def elsewhere(self) -> Path | None:
        """Return the folder, other than its own, that has or will have the release as it is."""
        own = self._path.parent
        there = filter(Path.exists, (*self.named, *(own.parent / each.name for each in self.named)))
        return next((each for each in there if not each.samefile(own)), None)

    def unclaim(self) -> None:
        """Keep that the budget file refused the release: nothing was charged."""
        self._lines.append({"claim": None}, sync=False)
        self.claims = ()

    def settle(self, counted: int | None = None) -> None:
        """Decide whether an open draw was made; refuse if the run cannot do without it.

        It was not if the budget file ``counted`` one draw less than there are here; with None, no
        file, it may have been.
        """
        if counted is not None and counted < self.draws:
            self._lines.append({"void": self.draws}, sync=True)
            self._void()
        self._settled = True
        self._require_draws()

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def make_room(self, size: int) -> None:
        """Hold ``size`` bytes of the disk for the release; refuse if they are not free."""
        try:
            self._hold(size)
        except OSError as error:
            raise BadInputError(
                f"the release, of about {max(size >> 20, 1):,} MiB, cannot be written beside "
                f"{self._path.parent}: {error.strerror}; make room, or name another --out"
            ) from error

    def finish(self) -> None:
        """Keep that all was drawn; on the disk when this returns."""
        if not self.complete:
            self._lines.append({"complete": True}, sync=True)
            self.complete = True

    def recorded(self) -> Recorded | None:
        """Return the next draw of an earlier attempt; None if there is none."""
        return self._draws[self._taken] if self._taken < len(self._draws) else None

    def take(self) -> None:
        """Pass the draw that `recorded` returned."""
        self._taken += 1

    def begin(self, events: tuple[Event, ...], ground: Ground, *, spare: bool) -> None:
        """Keep that a draw is about to be made, and count it; on the disk when this returns."""
        if self.complete:
            raise BadInputError(f"the checkpoint {self._path} is complete: nothing may be drawn")
        event = {"kind": type(events[0]).__name__, **asdict(events[0])}
        described = {"begin": event, "times": len(events), "ground": asdict(ground), "spare": spare}
        self._lines.append(described, sync=True)
        self.count(self.draws + 1)
        self.fresh += 1
        self.advanced, self._in_needed_draw = True, not spare

    def end(self, result: NDArray[Any]) -> None:
        """Keep what came of the draw that began last; on the disk when this returns."""
        self._lines.append({"end": result}, sync=True)
        self._in_needed_draw = False

    def recall(
        self, name: str, compute: Callable[[], Public], instead: Callable[[], Public]
    ) -> Public:
        """Return a public value, kept or new (see `Journal`), on the disk with the next draw."""
        if name in self._public:
            return self._public.pop(name)
        if self._deaths[name] >= _MOST_DEATHS:
            value = instead()
        else:
            self._lines.append({"computing": name}, sync=False)
            try:
                value = compute()
            except KeyboardInterrupt:  # the operator's wish, no fault of the computation
                self._lines.append({"left": name}, sync=False)
                raise
        self._lines.append({"public": name, "value": dict(value)}, sync=False)
        return value

    def same(self, what: str, value: Public) -> None:
        """Keep a fact about the run; refuse to go on if an earlier attempt had another."""
        value = json.loads(json.dumps(dict(value), default=str))
        if (known := self.facts.get(what)) is None:
            self._lines.append({"fact": what, "value": value}, sync=False)
            self.facts[what] = value
            return
        pairs = [(name, known.get(name), value.get(name)) for name in sorted({*known, *value})]
        if off := [f"{name} was {old!r} and is {new!r}" for name, old, new in pairs if old != new]:
            raise BadInputError(
                f"the checkpoint {self._path} is of another {what}: {'; '.join(off)}; go on with "
                "what it was made with, or make a new release"
            )

    def _require_draws(self) -> None:
        if self.stuck:
            raise BadInputError(f"{self.stays()}; {STUCK}: delete {self._path}, make a new release")

    def _void(self) -> None:
        """Take back the last draw, which was not made."""
        if not self.open_draw:
            raise ValueError("no open draw to take back")
        self._events -= len(self._draws.pop().events)
        self._needed.pop()

    def _take_in(self, number: int, entry: Entry) -> None:
        """Read an entry of an earlier attempt."""
        if number == 0:
            if entry["checkpoint"] > FORMAT:
                raise ValueError(f"its format is newer than {FORMAT}: upgrade dualquery")
        elif "begin" in entry:
            times, fields = entry["times"], dict(entry["begin"])
            if type(times) is not int or not 1 <= times <= _MOST_EVENTS - self._events:
                raise ValueError(f"a draw of {times!r} events")
            self._events += times
            events = (_KINDS[fields.pop("kind")](**fields),) * times
            self._draws.append(Recorded(events, Ground(**entry["ground"]), None))
            self._needed.append(entry.get("spare") is not True)
        elif "end" in entry:
            begun = self._draws[-1]
            if begun.result is not None or not isinstance(entry["end"], np.ndarray):
                raise ValueError("a result of no draw")
            self._draws[-1] = Recorded(begun.events, begun.ground, entry["end"])
        elif "computing" in entry:
            self._deaths[entry["computing"]] += 1
        elif "left" in entry:
            self._deaths[entry["left"]] -= 1
        elif "public" in entry:
            self._public[entry["public"]] = entry["value"]
        elif "fact" in entry:
            self.facts[entry["fact"]] = entry["value"]
        elif "complete" in entry:
            self.complete = True
        elif "claim" in entry:
            nonce = entry["claim"]
            if not isinstance(nonce, str | None):
                raise ValueError(f"a claim of {nonce!r}")
            self.claims = () if nonce is None else (*self.claims, nonce)
            self.named = tuple(map(Path, entry.get("named", ())))
        elif "void" in entry:
            self._void()
        else:
            raise ValueError("an entry of an unknown kind")
