"""Whether a release's guarantee follows from its proof record, and its folder is whole.

This file shares no code with the program that makes releases: with `bounds` beside it, it can be
read and run alone (``python -m dualquery.verification.check FOLDER``), with NumPy and SciPy.

**Checked.** Every file has the digest that ``release.json`` states, there is no other file, and
``release.json`` has its own digest. (Epsilon, delta) is computed anew from the events (`bounds`).

**Confirmed** means that the events are proven here to be (e, delta)-private for an e that is, with
what the number of rows has cost, at most the epsilon that the release states: without any
tolerance. Where the first grid of the recursion is too coarse for that, finer ones are tried.

**Not checked**: the proofs of sensitivities, whether the program did what it says, and who wrote
the folder. Who edits a folder can compute its digests anew; a signature shows that.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualquery.verification.bounds import Event, bound, events_of

FORMAT = 2
FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)


@dataclass(frozen=True)
class Report:
    """What is ``damaged`` of the folder, why the guarantee is ``refuted``, what it costs by us."""

    damaged: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    epsilon: float | None = None
    delta: float | None = None
    recomputed: float | None = None

    @property
    def faults(self) -> tuple[str, ...]:
        """All that was found; nothing if the guarantee is confirmed."""
        return (*self.damaged, *self.refuted)


def check(folder: str | Path) -> Report:
    """Check a release folder; raises nothing for what is in it."""
    folder = Path(folder)
    try:
        text = (folder / "release.json").read_text(encoding="utf-8")
        stored = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        if stored["format_version"] != FORMAT:
            return Report((f"format {stored['format_version']}, not {FORMAT}: no proof record",))
        damaged = tuple(_damage(folder, stored))
    except (*FAULTS, RecursionError) as fault:
        return Report((f"not a release folder ({type(fault).__name__}: {fault})",))
    try:
        privacy, proof = stored["privacy"], stored["proof"]
        if privacy["private"] is not True:
            reasons = "; ".join(privacy["reasons_not_private"])
            return Report(damaged, (f"the release states no guarantee: {reasons}",))
        named, bought = proof["accountant"], proof["rows"]["bought"]
        events = list(events_of(proof["schedule"]))
        left = named["delta"] - _thresholds(proof["schedule"])
        own = bound(events, proof["schedule"], named["name"], left, named["epsilon"])
        spent = bought["epsilon"] if bought else 0.0
        refuted = (*_misstated(stored, events, own, spent), *_overlearned(stored["schema"]))
        return Report(damaged, refuted, privacy["epsilon"], privacy["delta"], own + spent)
    except FAULTS as fault:
        return Report(damaged, (f"no proof that can be read ({type(fault).__name__}: {fault})",))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _damage(folder: Path, stored: dict[str, Any]) -> Iterator[str]:
    """Compare the files with their digests, and ``release.json`` with its own."""
    files, there = stored["proof"]["files"], {path.name: path for path in folder.iterdir()}
    for name in sorted({*files, "release.json"} | {*there}):
        path = there.get(name)
        if path is None:
            yield f"{name!r} is missing"
        elif path.is_symlink() or not path.is_file():
            yield f"{name!r} is not a plain file"
        elif name not in {*files, "release.json"}:
            yield f"{name!r} is not part of the release"
        elif name in files and hashlib.sha256(path.read_bytes()).hexdigest() != files[name]:
            yield f"{name!r} was changed"
    proof = {key: value for key, value in stored["proof"].items() if key != "content"}
    text = json.dumps({**stored, "proof": proof}, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(text.encode("ascii")).hexdigest() != stored["proof"].get("content"):
        yield "'release.json' was changed"


def _misstated(
    stored: dict[str, Any], events: list[Event], own: float, spent: float
) -> Iterator[str]:
    """Compare the stated epsilon with the record's, and that with the one computed here."""
    privacy, named = stored["privacy"], stored["proof"]["accountant"]
    result, epsilon, name = named["epsilon"], privacy["epsilon"], named["name"]
    if not 0.97 * result <= own <= result:
        yield f"the events cost epsilon {own:.6g}, not {result:.6g}, by {name}"
    if not result + spent <= epsilon < math.inf:
        yield f"epsilon {epsilon:.6g} is stated, but {result + spent:.6g} was spent"
    if privacy["delta"] != (named["delta"] if events else 0.0):
        yield f"delta {privacy['delta']:.6g} is stated, not {named['delta']:.6g}"


def _thresholds(schedule: list[dict[str, Any]]) -> float:
    """Return what thresholds cost of delta: (e, d) of their noise is (e, d + this) of the whole."""
    events = [(run["times"], event) for run in schedule for event in run["events"]]
    return math.fsum(times * e["delta"] for times, e in events if e["kind"] == "thresholded")


def _overlearned(schema: dict[str, Any]) -> Iterator[str]:
    """Check what a schema says that it cost to learn it."""
    if (learned := schema.get("learned")) is None:
        return
    schedule = [{"times": 1, "events": learned["events"]}]
    left = learned["delta"] - _thresholds(schedule)
    own = bound(list(events_of(schedule)), schedule, "exact", left, learned["epsilon"])
    if not own <= learned["epsilon"]:
        yield f"learning the schema cost epsilon {own:.6g}, not {learned['epsilon']:.6g}"


if __name__ == "__main__":
    sys.exit("\n".join(map(str, check(sys.argv[1]).faults)))
