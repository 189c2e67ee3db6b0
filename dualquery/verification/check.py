"""Whether a release's guarantee follows from its proof record, and its folder is whole.

This file shares no code with the program that makes releases, and is run alone by ``python -m
dualquery.verification.check FOLDER``. **Confirmed** means that every file has the digest that
``release.json`` states, there is no other file, and the events are proven here (`bounds`) to be
(e, delta)-private for an e that is, with what the number of rows has cost, at most the epsilon that
the release states: without any tolerance. **Not checked** are the proofs of sensitivities, whether
the program did what it says, and who wrote the folder: only a signature shows that.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow.parquet as parquet

from dualquery.verification.bounds import Event, bound, events_of

FORMAT = 2
FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)

_COPIES = 1023  # of a row, by its weight, at most
NOT_KEPT = ("ColumnSums", "EveryCell", "RowTotal", "ShapeCounts", "ValueCounts", "ItemCounts")
"""What is measured and not in ``measurements.parquet``: means, totals, every cell, a schema."""

LEMMAS = {
    "gaussian": ("noise.gaussian", "learning"),
    "thresholded": ("learning",),
    "pure": ("noise.laplace", "draws.noisy_max"),
    "draws": ("draws.exponential", "draws.databases", "weights"),
    "report": ("draws.randomized",),
    "game": ("weights",),
}
"""Which modules of dualquery.room prove an event of each kind."""


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


def verify(folder: str | Path) -> Report:
    """Check a folder, which may hold anything: a `Report` without ``faults`` confirms it."""
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
        refuted = [*_misstated(stored, events, own, spent), *_overlearned(stored["schema"])]
        entries = [event for run in proof["schedule"] for event in run["events"]]
        refuted += [*_statements(stored, entries), *_tables(stored, entries, folder)]
        refuted += [*_means(stored), *_measurements(stored, folder)]
        refuted += [it for each in entries for it in (*_uncovered(each), *_game(each, stored))]
        return Report(damaged, (*refuted,), privacy["epsilon"], privacy["delta"], own + spent)
    except FAULTS as fault:
        return Report(damaged, (f"a part cannot be read ({type(fault).__name__}: {fault})",))


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


def _statements(stored: dict[str, Any], events: list[dict[str, Any]]) -> Iterator[str]:
    """Compare the statement of privacy with the options and the proof."""
    names = ("privacy", "options", "proof", "schema")
    privacy, options, proof, schema = (stored[name] for name in names)
    rows, bought, relation = proof["rows"]["number"], proof["rows"]["bought"], proof["neighbours"]
    named, unit, weight = proof["accountant"], proof.get("unit"), proof.get("weight")
    one, public, total, number = "one record", "n public", "the number of rows", f"{rows:,}"
    stated, most, replaces = options["rows"] or rows, _steps(proof), relation == "replace-one"
    columns = [column["name"] for column in schema.get("columns", [])]  # of items there are none
    if unit is not None:
        public, kept = "the number of units public", unit["max_rows"]
        one = f"one unit of column {unit['column']!r} with at most {kept:,} row{'s' * (kept > 1)}"
        own = {key: unit[key] for key in ("column", "max_rows")}
        yield from _unequal(
            ("the unit", own, options["unit"]),
            ("a public number of units", replaces, unit["units"] is not None),
            ("columns of units", False, unit["column"] in columns),
        )
    if weight is not None:
        largest = weight["max"]
        one += f", weighted by column {weight['column']!r} up to {largest:g}"
        copy = largest / weight["copies"]
        total, number = "the total weight", f"{rows * copy:.6g}"
        stated = max(2, round(options["rows"] / copy)) if options["rows"] else rows
        # Whole weights are exact: a row of the largest counts as a multiple of it.
        whole = largest == math.floor(largest) and 1 <= largest <= _COPIES
        copies = _COPIES // int(largest) * int(largest) if whole else _COPIES
        own = {key: weight[key] for key in ("column", "max")}
        yield from _unequal(
            ("the weight", own, options["weight"]),
            ("the copies of a row", copies, weight["copies"]),
            ("columns of weights", False, weight["column"] in columns),
        )
    grounds = [event["ground"] for event in events if event["ground"]]
    measured = next((each for each in grounds if each["statistic"] == "RowTotal"), None)
    noise = measured or bought
    scale = float(noise["scale"]) if noise else 0.0
    shown = stored.get("total", {"scale": scale})  # older releases have none
    words = f"replace {one}, {public}" if replaces else f"add or remove {one}"
    if not replaces or unit is not None or weight is not None:
        words += f", {total} {'released with noise' if noise else f'assumed to be {number}'}"
    # Units of one row each that are replaced are as many as their rows, and these are public.
    buys = not (replaces and most == 1 and weight is None) and options["rows"] is None
    yield from _unequal(
        ("neighbours", words, privacy["neighbours"]),
        ("the relation", relation, options["neighbours"]),
        ("a noisy number of rows", buys, bought is not None),
        ("the number of rows", rows, stored["rows"]),
        ("the rows that were stated", rows if measured else stated, rows),
        ("noise in the number of rows", float(shown["scale"]), scale),
        ("the accountant", named["name"], privacy["accountant"]),
        ("the delta", named["delta"], options["delta"]),
        ("the condition", proof["condition"], privacy.get("condition")),
        ("a seed", None, options["seed"]),
        ("a declared schema", True, schema["declared"]),
        ("most 1s of a row", proof["limits"]["max_ones_per_row"], schema.get("max_ones_per_row")),
    )
    if bought and bought["sensitivity"] < most:
        yield f"the number of rows moves by {most:,}, and noise is for {bought['sensitivity']:g}"
    if bought and not bought["sensitivity"] / bought["scale"] <= bought["epsilon"]:
        yield "the noise in the number of rows is too small for its charge"
    asked = options["epsilon"] if events else bought["epsilon"] if bought else 0.0
    if not math.isclose(privacy["epsilon"], asked, rel_tol=1e-9):
        yield f"epsilon {privacy['epsilon']!r} is stated where {asked!r} was asked for"


def _steps(proof: dict[str, Any]) -> int:
    """Return how many rows, or copies of rows by their weights, neighbours differ in at most."""
    unit, weight = proof.get("unit"), proof.get("weight")
    return int((unit["max_rows"] if unit else 1) * (weight["copies"] if weight else 1))


def _unequal(*said: tuple[str, Any, Any]) -> Iterator[str]:
    for what, one, other in said:
        if type(one) is not type(other) or one != other:
            yield f"{what}: {one!r} in one place, {other!r} in another"


def _uncovered(event: dict[str, Any]) -> Iterator[str]:
    """Compare an event with what it was charged for."""
    kind, ground = event["kind"], event["ground"]
    if ground is None:
        return  # planned and priced, but not drawn
    if ground["lemma"] not in [f"dualquery.room.{each}" for each in LEMMAS[kind]]:
        yield f"{ground['lemma']!r} proves no event of kind {kind!r}"
    if (ground["statistic"] in ("ValueCounts", "ItemCounts")) != (kind == "thresholded"):
        yield f"{ground['statistic']!r} is no statistic of an event of kind {kind!r}"
    moved, scale = ground["sensitivity"], ground["scale"]
    if not 0 < moved < math.inf:
        yield f"a sensitivity of {moved!r}"
    elif kind in ("gaussian", "thresholded"):
        planned = Fraction(event["sensitivity"]) / Fraction(event["scale"])
        if Fraction(moved) / Fraction(scale) > planned:
            yield "Gaussian noise is too small for its charge"
    elif scale is not None:
        # Report noisy max compares two scores, which may move towards each other.
        moved *= 2 if ground["lemma"].endswith("noisy_max") else 1
        if not moved / scale <= event["epsilon"]:
            yield "Laplace noise is too small for its charge"


def _game(event: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
    """Compare a game with the parameters of the release."""
    if event["kind"] != "game":
        return
    shown, most = stored["parameters"], _steps(stored["proof"])
    yield from _unequal(
        ("rounds", event["rounds"], shown.get("rounds", event["rounds"])),
        ("samples", event["samples"], shown.get("samples", event["samples"])),
        ("the step", event["step"], shown.get("eta", event["step"])),
        ("the rows of the game", event["rows"], stored["rows"]),
        ("the neighbours of the game", event["neighbours"], stored["proof"]["neighbours"]),
        ("the rows of a unit in the game", event.get("rows_per_unit", 1), most),
    )
    if not 0 <= event["drawn"] < event["rounds"]:
        yield f"{event['drawn']} draws in {event['rounds']} rounds"


def _means(stored: dict[str, Any]) -> Iterator[str]:
    """Compare the means that were bought with the noise on their sums."""
    means = stored.get("means", [])
    # Each column has noise of its own, and a sum that an interruption lost is there twice.
    sums = [
        event
        for run in stored["proof"]["schedule"]
        for event in run["events"] * min(run["times"], len(means) + 1)
        if event["ground"] and event["ground"]["statistic"] == "ColumnSums"
    ]
    if bool(sums) != bool(means):
        yield f"{len(means)} means, and {len(sums)} measurements of sums"
        return
    left = iter(sums)
    for mean in means:
        width = mean["high"] - mean["low"]
        for event in left:
            kind = {"gaussian": "gaussian", "pure": "discrete laplace"}[event["kind"]]
            # Sums are of twice the steps from the middle, so a mean is half a width for each scale.
            scale = event["ground"]["scale"] * width / (2 * stored["rows"])
            if mean["noise"] == kind and math.isclose(mean["scale"], scale, rel_tol=1e-9):
                break
        else:
            yield f"the mean of {mean['column']!r} has other noise than its sum"
        edges = [c["edges"] for c in stored["schema"]["columns"] if c["name"] == mean["column"]]
        if not (edges and edges[0][0] <= mean["low"] < mean["high"] <= edges[0][-1]):
            yield f"the mean of {mean['column']!r} has a range that the schema does not have"


def _measurements(stored: dict[str, Any], folder: Path) -> Iterator[str]:
    """Compare the noise of the measured numbers, event by event, with what was drawn."""
    drawn = [e["ground"] for r in stored["proof"]["schedule"] for e in r["events"] * r["times"]]
    drawn = [each for each in drawn if each and each["statistic"] not in NOT_KEPT]
    if stored["measurements"] is None or any("numbers" not in each for each in drawn):
        return  # kept by no mechanism that needs none, and noted in no release before 0.2
    table = parquet.read_table(folder / "measurements.parquet")
    deviations = table["deviation"].to_numpy() * stored["rows"]
    numbers = sum(each["numbers"] for each in drawn)
    if not len(deviations) == numbers == stored["measurements"]["numbers"]:
        yield f"{len(deviations):,} measured numbers are kept, and {numbers:,} were drawn"
        return
    for each in drawn:
        squares, deviations = deviations[: each["numbers"]] ** 2, deviations[each["numbers"] :]
        for sums, said in ((squares, each["variances"]), (1 / squares, each["precisions"])):
            if not math.isclose(math.fsum(sums), said, rel_tol=1e-9):
                yield f"measured numbers have other noise than {each['statistic']} was drawn with"
                return


def _tables(stored: dict[str, Any], events: list[dict[str, Any]], folder: Path) -> Iterator[str]:
    """Compare the numbers of answers, records and intervals with the tables."""
    synthetic = folder / "synthetic.parquet"
    records = parquet.read_metadata(synthetic).num_rows if synthetic.exists() else 0
    table = parquet.read_table(folder / "answers.parquet")
    low, high = (table[f"interval_{end}"].to_numpy() for end in ("low", "high"))
    proof, intervals = stored["proof"], stored["intervals"]
    yield from _unequal(
        ("the number of answers", table.num_rows, stored["queries"]),
        ("the number of records", records, stored["synthetic_records"]),
        ("intervals", int(np.isfinite(low).sum()), intervals["answers"] if intervals else 0),
    )
    ground = events[0]["ground"] if len(events) == 1 else None
    cut = proof.get("unit") or proof.get("weight") or proof["neighbours"] != "replace-one"
    conjunctions = "literal_1" in table.column_names and not cut
    if intervals and ground and ground["statistic"] == "AllQueries" and conjunctions:
        # The half-width in counts is a quantile of the noise; conjunctions count in whole rows.
        half: float = math.ceil(-math.log(1 - intervals["level"]) * ground["scale"])
        if events[0]["kind"] == "gaussian":
            half = NormalDist().inv_cdf((1 + intervals["level"]) / 2) * ground["scale"]
        half /= stored["rows"]
        # Nearer to 0 or 1 they are shorter, and there by 9% at most (`estimates.bounded`).
        width = (high - low)[(low >= half) & (high <= 1 - half)] / (2 * half)
        if np.any((width < 0.91) | (width > 1.00001)):
            yield "the intervals have another width than the noise gives them"


if __name__ == "__main__":
    sys.exit("\n".join(verify(sys.argv[1]).faults) or 0)
