"""Whether a release's guarantee follows from its proof record, and its folder is whole.

This file shares no code with the program that makes releases, and is run alone by ``python -m
dualquery.verification.check FOLDER``. **Confirmed** means that every file has the digest that
``release.json`` states, there is no other file, and the events are proven here (`bounds`) to cost,
with the number of rows, at most the (epsilon, delta) that the release states. **Not checked** are
the proofs of sensitivities, assumptions, what the program did, and who wrote it (`signature`).
"""

import hashlib
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from dualquery.verification.bounds import Event, bound, events_of

Stored = dict[str, Any]
FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
FORMAT, _COPIES = 2, 1023  # of a row, by its weight, at most
_QUERIES = ("AllQueries", "SomeQueries", "OneQuery", "OneCuboid", "QueryTable", "Parities")
_KEPT = (*_QUERIES, "FeatureSums", "EveryCell")  # in ``measurements.parquet``
_MEASURED = (*_KEPT, "ColumnSums", "RowTotal")
_SCORES, _BASES = ("WorstQuery", "WorstCuboid"), ("largest error of a database",)
_LEARNED, _ROUNDS = ("ValueCounts", "ItemCounts"), ("counts of the queries, once a round",)

STATISTICS: dict[str, dict[str, tuple[str, ...]]] = {  # what modules of the room prove
    "gaussian": {"noise.gaussian": _MEASURED, "learning": ("ShapeCounts",)},
    "thresholded": {"learning": _LEARNED},
    "pure": {"noise.laplace": _MEASURED, "draws.noisy_max": _SCORES},
    "draws": {"draws.exponential": _SCORES, "draws.databases": _BASES, "weights": _ROUNDS},
    "report": {"draws.randomized": ("one column of every record",)},
    "game": {"weights": _ROUNDS},
}


@dataclass(frozen=True)
class Report:
    """What is ``damaged`` of the folder, why the guarantee is ``refuted``, what it costs by us."""

    damaged: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()
    epsilon: float | None = None
    delta: float | None = None
    recomputed: float | None = None
    condition: str | None = None

    @property
    def faults(self) -> tuple[str, ...]:
        """All that was found; nothing if the guarantee is confirmed."""
        return (*self.damaged, *self.refuted)


def verify(folder: str | Path) -> Report:
    """Check a folder, which may hold anything: a `Report` without ``faults`` confirms it."""
    folder = Path(folder)
    try:
        text = (folder / "release.json").read_text("utf-8")
        stored = json.loads(text, object_pairs_hook=_unique, parse_constant=Fraction)
        if stored["format_version"] != FORMAT:
            return Report((f"format {stored['format_version']}; only {FORMAT} can be verified",))
        damaged = tuple(_damage(folder, stored))
    except (*FAULTS, RuntimeError) as fault:
        return Report((f"not a release folder ({type(fault).__name__}: {fault})",))
    try:
        privacy, proof = stored["privacy"], stored["proof"]
        if privacy["private"] is not True:
            reasons = "; ".join(privacy["reasons_not_private"])
            return Report(damaged, (f"the release states no guarantee: {reasons}",))
        named, bought = proof["accountant"], proof["rows"]["bought"]
        events = list(events_of(proof["schedule"]))
        left = _without_thresholds(named["delta"], proof["schedule"])
        own = bound(events, proof["schedule"], named["name"], left, named["epsilon"])
        spent = bought["epsilon"] if bought else 0.0
        entries = [event for run in proof["schedule"] for event in run["events"]]
        refuted = [*_misstated(stored, events, own, spent), *_game(stored, events, entries)]
        refuted += [*_statements(stored, entries), *_tables(stored, entries, folder)]
        refuted += [*_means(stored), *_measurements(stored, folder), *_overlearned(stored, entries)]
        refuted += [it for each in entries if each["ground"] for it in _uncovered(each)]
        stated = privacy["epsilon"], privacy["delta"], own + spent, privacy.get("condition")
        return Report(damaged, (*refuted,), *stated)
    except FAULTS as fault:
        return Report(damaged, (f"a part cannot be read ({type(fault).__name__}: {fault})",))


def _unique(pairs: list[tuple[str, Any]]) -> Stored:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _damage(folder: Path, stored: Stored) -> Iterator[str]:
    """Compare the files with their digests, and ``release.json`` with its own."""
    files, there = stored["proof"]["files"], {path.name: path for path in folder.iterdir()}
    for name in sorted({*files, "release.json"} | {*there}):
        if (path := there.get(name)) is None:
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


def _misstated(stored: Stored, events: list[Event], own: float, spent: float) -> Iterator[str]:
    """Compare the stated epsilon with the record's, and that with ours: others may be looser."""
    privacy, named = stored["privacy"], stored["proof"]["accountant"]
    result, epsilon, name = named["epsilon"], privacy["epsilon"], named["name"]
    if not 0.97 * result * (name in ("exact", "zcdp", "advanced", "paper")) <= own <= result:
        yield f"the events cost epsilon {own:.6g}, not {result:.6g}, by {name}"
    if not result + spent <= epsilon < math.inf:
        yield f"epsilon {epsilon:.6g} is stated, but {result + spent:.6g} was spent"
    if privacy["delta"] != (named["delta"] if events else 0.0):
        yield f"delta {privacy['delta']:.6g} is stated, not {named['delta']:.6g}"


def _without_thresholds(delta: float, schedule: list[Stored]) -> float:
    """Return the delta left to noise alone: (e, d) of it is (e, d + thresholds') of the whole."""
    events = [event for run in schedule for event in run["events"] * run["times"]]
    deltas = [event["delta"] for event in events if event["kind"] == "thresholded"]
    if not 0 <= delta < 1 or not all(0 < each < 1 for each in deltas):
        raise ValueError(f"delta {delta!r}, and {deltas!r} of it for thresholds")
    return delta - math.fsum(deltas)


def _overlearned(stored: Stored, entries: list[Stored]) -> Iterator[str]:
    """Check what a schema says that it cost to learn it."""
    if (learned := stored["schema"].get("learned")) is None:
        return
    schedule = [{"times": 1, "events": learned["events"]}]
    left = _without_thresholds(learned["delta"], schedule)
    own = bound(list(events_of(schedule)), schedule, "exact", left, learned["epsilon"])
    # What was drawn in this release is no condition; its own has what was paid for the rest.
    drawn = Counter(str({k: e[k] for k in e if k != "ground"}) for e in entries)
    before = sum((Counter(map(str, learned["events"])) - drawn).values())
    costs = [f"{x} {learned[x]}" for x in ("epsilon", "delta") if before == len(learned["events"])]
    if before and not all(x in str(stored["proof"]["condition"]) for x in ("(learned: ", *costs)):
        yield "that the schema was learned, and its cost, is no condition"
    if not own <= learned["epsilon"] or learned["events"][-1]["kind"] != "thresholded":
        yield f"learning the schema cost epsilon {own:.6g}, not {learned['epsilon']:.6g}, or more"


def _statements(stored: Stored, events: list[Stored]) -> Iterator[str]:
    """Compare the statement of privacy with the options and the proof."""
    privacy, options, proof, schema = (stored[x] for x in ("privacy", "options", "proof", "schema"))
    rows, bought, relation = proof["rows"]["number"], proof["rows"]["bought"], proof["neighbours"]
    named, unit, weight = proof["accountant"], proof.get("unit"), proof.get("weight")
    one, public, total, copy = "one record", "n public", "the number of rows", 1.0
    most, replaces, how = _steps(proof), relation == "replace-one", f"assumed to be {rows:,}"
    # Units of one row each that are replaced are as many as their rows, and these are public.
    exact = replaces and most == 1 and weight is None
    columns = [column["name"] for column in schema.get("columns", [])]  # of items there are none
    if unit is not None:
        public, kept = "the number of units public", unit["max_rows"]
        how = "that of units" if exact and unit["units"] == rows else how
        one = f"one unit of column {unit['column']!r} with at most {kept:,} row{'s' * (kept > 1)}"
        yield from _unequal(
            ("the unit", {"column": unit["column"], "max_rows": kept}, options["unit"]),
            ("a public number of units", replaces, unit["units"] is not None),
            ("columns of units", False, unit["column"] in columns),
        )
    if weight is not None:
        largest, copy = weight["max"], weight["max"] / weight["copies"]
        one += f", weighted by column {weight['column']!r} up to {largest:g}"
        total, how = "the total weight", f"assumed to be {rows * copy:.6g}"
        # Whole weights are exact: a row of the largest counts as a multiple of it.
        whole = largest == math.floor(largest) and 1 <= largest <= _COPIES
        copies = _COPIES // int(largest) * int(largest) if whole else _COPIES
        yield from _unequal(
            ("the weight", {"column": weight["column"], "max": largest}, options["weight"]),
            ("the copies of a row", copies, weight["copies"]),
            ("columns of weights", False, weight["column"] in columns),
            ("weights as a condition", True, repr(weight["column"]) in str(proof["condition"])),
        )
    for what, said in (("unit", unit), ("weight", weight)):
        yield from _unequal((f"that there is no {what}", said is None, options.get(what) is None))
    grounds = [event["ground"] for event in events if event["ground"]]
    noise = next((each for each in grounds if each["statistic"] == "RowTotal"), bought)
    scale = float(noise["scale"]) if noise else 0.0
    shown = stored.get("total", {"scale": scale})  # older releases have none
    words = f"replace {one}, {public}" if replaces else f"add or remove {one}"
    if not replaces or unit is not None or weight is not None:
        words += f", {total} {'released with noise' if noise else how}"
    yield from _unequal(
        ("neighbours", words, privacy["neighbours"]),
        ("the relation", relation, options["neighbours"]),
        ("a noisy number of rows", not exact and options["rows"] is None, bought is not None),
        ("the number of rows", rows, stored["rows"]),
        ("the total", shown.get("copies", rows), rows),
        ("the weight of a copy", shown.get("of_copy", copy), copy),
        ("the rows that were stated", _stated(stored) if noise is bought else rows, rows),
        ("noise in the number of rows", float(shown["scale"]), scale),
        ("the accountant", named["name"], privacy["accountant"]),
        ("the delta", named["delta"], options["delta"]),
        ("the condition", proof["condition"], privacy.get("condition")),
        ("a seed", None, options["seed"]),
        ("a declared schema", True, schema["declared"]),
        ("most 1s of a row", proof["limits"]["max_ones_per_row"], schema.get("max_ones_per_row")),
    )
    said = f"{proof['condition']} {privacy['assumptions']}"
    # Older releases assume it: "neighbouring tables are defined after it", the public filter.
    told = "number of complete rows" in said or "tables are defined after it" in said
    if replaces and schema.get("drop_incomplete") and not told:
        yield "that the number of complete rows is public is no condition"
    cheap = bought and not 0 < bought["sensitivity"] / bought["scale"] <= bought["epsilon"]
    if cheap or (noise and noise["sensitivity"] < most):
        yield f"noise in the number of rows, which moves by {most:,}, is too small for its charge"
    asked = options["epsilon"] if events else bought["epsilon"] if bought else 0.0
    others = {event["kind"] for event in events} - {"gaussian", "thresholded"}
    if others and named["name"] != "zcdp" and {*_LEARNED} & {each["statistic"] for each in grounds}:
        yield f"what follows a learned schema, {others}, is not added up by {named['name']!r}"
    if not math.isclose(privacy["epsilon"], asked, rel_tol=1e-9):
        yield f"epsilon {privacy['epsilon']!r} is stated where {asked!r} was asked for"


def _stated(stored: Stored) -> int:
    """Return the rows, or copies of rows, that were stated to plan with; else the release's own."""
    rows, weight = stored["options"]["rows"], stored["proof"].get("weight")
    copy = weight["max"] / weight["copies"] if weight else 1.0
    return max(2, round(rows / copy)) if rows else int(stored["rows"])


def _steps(proof: Stored) -> int:
    """Return how many rows, or copies of rows by their weights, neighbours differ in at most."""
    unit, weight = proof.get("unit"), proof.get("weight")
    steps = (unit["max_rows"] if unit else 1) * (weight["copies"] if weight else 1)
    if type(steps) is not int or steps < 1:
        raise ValueError(f"neighbours that differ in {steps!r} rows")
    return steps


def _unequal(*said: tuple[str, Any, Any]) -> Iterator[str]:
    for what, one, other in said:
        if type(one) is not type(other) or one != other:
            yield f"{what}: {one!r} in one place, {other!r} in another"


def _uncovered(event: Stored) -> Iterator[str]:
    """Compare an event that was drawn, not only planned, with what it was charged for."""
    kind, ground = event["kind"], event["ground"]
    lemma, moved, scale = ground["lemma"], ground["sensitivity"], ground["scale"]
    if ground["statistic"] not in STATISTICS[kind].get(lemma.removeprefix("dualquery.room."), ()):
        yield f"{lemma!r} proves no event of kind {kind!r} for {ground['statistic']!r}"
    noisy = kind in ("gaussian", "thresholded", "pure")
    if not 0 < moved < math.inf or not (0 < scale < math.inf if noisy else scale is None):
        yield f"a sensitivity of {moved!r} with noise of scale {scale!r}"
    elif kind == "pure":
        # Report noisy max compares two scores, which may move towards each other.
        moved *= 2 if lemma.endswith("noisy_max") else 1
        if not moved / scale <= event["epsilon"]:
            yield "Laplace noise is too small for its charge"
    elif noisy:
        planned = Fraction(event["sensitivity"]) / Fraction(event["scale"])
        if Fraction(moved) / Fraction(scale) > planned:
            yield "Gaussian noise is too small for its charge"


def _game(stored: Stored, events: list[Event], entries: list[Stored]) -> Iterator[str]:
    """Compare a game, an entry or one for each round, with the parameters of the release."""
    shown, proof = stored["parameters"], stored["proof"]
    game = next((event for event in entries if event["kind"] == "game"), None)
    if shown.get("mechanism", stored["mechanism"]) == "dualquery":
        own = {"rounds": shown["rounds"], "samples": shown["samples"], "step": shown["eta"]}
        game = {"kind": "game", **(game or {}), **own}
    if game is None:
        return
    one = {"neighbours": proof["neighbours"], "rows_per_unit": _steps(proof)}
    least = [*events_of([{"times": 1, "events": [{**game, **one, "rows": _stated(stored)}]}])]
    drawn = [event for event in events if event[0] == "draws"]
    cheap = any(one[1] < other[1] * (1 - 1e-9) for one, other in zip(drawn, least, strict=False))
    cheap |= not 0 <= game.get("drawn", 0) < game["rounds"]
    if cheap or [each[::2] for each in drawn] != [each[::2] for each in least]:
        yield "the rounds of the game are others than the parameters and the table give it"


def _means(stored: Stored) -> Iterator[str]:
    """Compare the means that were bought with the noise on their sums."""
    means = stored.get("means", [])
    # Each column has noise of its own, and a sum that an interruption lost is there twice.
    sums = [event for run in stored["proof"]["schedule"]
            for event in run["events"] * min(run["times"], len(means) + 1)
            if event["ground"] and event["ground"]["statistic"] == "ColumnSums"]  # fmt: skip
    if bool(sums) != bool(means):
        yield f"{len(means)} means, and {len(sums)} measurements of sums"
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


def _measurements(stored: Stored, folder: Path) -> Iterator[str]:
    """Compare the noise of the measured numbers, event by event, with what was drawn."""
    drawn = [e["ground"] for r in stored["proof"]["schedule"] for e in r["events"] * r["times"]]
    drawn = [each for each in drawn if each and each["statistic"] in _KEPT]
    if stored["measurements"] is None or (drawn and all("numbers" not in each for each in drawn)):
        return  # kept by no mechanism that needs none, and noted in no release before 0.2
    table = _read(folder / "measurements.parquet").read(use_threads=False)
    plain = "literal_1" in _read(folder / "answers.parquet").schema_arrow.names
    deviations = table["deviation"].to_numpy() * stored["rows"]
    if sum(each["numbers"] for each in drawn) > len(deviations):  # many cells are not kept
        drawn = [each for each in drawn if each["statistic"] != "EveryCell"]
    numbers = sum(each["numbers"] for each in drawn)
    if not len(deviations) == numbers == stored["measurements"]["numbers"]:
        yield f"{len(deviations):,} measured numbers are kept, and {numbers:,} were drawn"
        return
    for each in drawn:
        squares, deviations = deviations[: each["numbers"]] ** 2, deviations[each["numbers"] :]
        # Of counts of rows at least the scale's; discrete Laplace noise has 1/6 less than 2 s^2.
        least = 2 * each["scale"] ** 2 - 1 / 6 if "laplace" in each["lemma"] else each["scale"] ** 2
        less = plain and each["statistic"] in _QUERIES and np.any(squares < least * (1 - 1e-9))
        for sums, said in ((squares, each["variances"]), (1 / squares, each["precisions"])):
            if less or not math.isclose(math.fsum(sums), said, rel_tol=1e-9):
                yield f"measured numbers have other noise than {each['statistic']} was drawn with"


def _read(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(path.read_bytes()), pre_buffer=False)  # no path, no threads


def _tables(stored: Stored, events: list[Stored], folder: Path) -> Iterator[str]:
    """Compare the numbers of answers, records and intervals with the tables."""
    records = sum(_read(x).metadata.num_rows for x in folder.glob("synthetic.parquet"))
    table = _read(folder / "answers.parquet").read(use_threads=False)
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
