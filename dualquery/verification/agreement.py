"""Whether a release says the same everywhere: statement, options, proof, parameters, tables.

Shares no code with the program that makes releases, as `dualquery.verification.check`, which comes
first: it finds out what was changed since the release was written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)

_COPIES = 1023
"""A row counts as so many copies of itself, by its weight, at most."""

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


def contradictions(folder: str | Path) -> tuple[str, ...]:
    """Return where the parts of a private release contradict each other; raises nothing."""
    folder = Path(folder)
    try:
        stored = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        found = [*_statements(stored), *_tables(stored, folder), *_means(stored)]
        found += _measurements(stored, folder)
        for run in stored["proof"]["schedule"]:
            for event in run["events"]:
                found += [*_uncovered(event), *_game(event, stored)]
        return tuple(found)
    except FAULTS as fault:
        return (f"a part is malformed ({type(fault).__name__}: {fault})",)


def _statements(stored: dict[str, Any]) -> Iterator[str]:
    """Compare the statement of privacy with the options and the proof."""
    privacy, options, proof = stored["privacy"], stored["options"], stored["proof"]
    rows, bought, relation = proof["rows"]["number"], proof["rows"]["bought"], proof["neighbours"]
    named, limits, schema = proof["accountant"], proof["limits"], stored["schema"]
    unit, weight, most = proof.get("unit"), proof.get("weight"), _steps(proof)
    # Units of one row each that are replaced are as many as their rows, and these are public.
    free = relation == "replace-one" and most == 1 and weight is None
    buys = not free and options["rows"] is None
    one, public, total, number = "one record", "n public", "the number of rows", f"{rows:,}"
    stated = options["rows"] or rows
    if unit is not None:
        kept = f"{unit['max_rows']:,} row{'s' * (unit['max_rows'] > 1)}"
        one = f"one unit of column {unit['column']!r} with at most {kept}"
        public = "the number of units public"
    if weight is not None:
        one += f", weighted by column {weight['column']!r} up to {weight['max']:g}"
        copy = weight["max"] / weight["copies"]
        total, number = "the total weight", f"{rows * copy:.6g}"
        stated = max(2, round(options["rows"] / copy)) if options["rows"] else rows
        own, largest = {key: weight[key] for key in ("column", "max")}, weight["max"]
        # Whole weights are exact: a row of the largest counts as a multiple of it.
        whole = largest == math.floor(largest) and 1 <= largest <= _COPIES
        copies = _COPIES // int(largest) * int(largest) if whole else _COPIES
        yield from _unequal(
            ("the weight", own, options["weight"]),
            ("the copies of a row", copies, weight["copies"]),
            ("columns of weights", False, weight["column"] in _names(schema)),
        )
    measured = next(_grounds_of(stored, "RowTotal"), None)
    noisy = bought is not None or measured is not None
    known = f", {total} {'released with noise' if noisy else f'assumed to be {number}'}"
    plain = relation == "replace-one" and unit is None and weight is None
    told = {"replace-one": f"replace {one}, {public}", "add-remove": f"add or remove {one}"}
    told_here = told[relation] + ("" if plain else known)
    if unit is not None:
        own = {key: unit[key] for key in ("column", "max_rows")}
        yield from _unequal(
            ("the unit", own, options["unit"]),
            ("a public number of units", relation == "replace-one", unit["units"] is not None),
            ("columns of units", False, unit["column"] in _names(schema)),
        )
    yield from _unequal(
        ("neighbours", told_here, privacy["neighbours"]),
        ("the relation", relation, options["neighbours"]),
        ("a noisy number of rows", buys, bought is not None),
        ("the number of rows", rows, stored["rows"]),
        ("the rows that were stated", rows if measured else stated, rows),
        ("noise in the number of rows", *_noise_of_total(stored, bought, measured)),
        ("the accountant", named["name"], privacy["accountant"]),
        ("the delta", named["delta"], options["delta"]),
        ("the condition", proof["condition"], privacy.get("condition")),
        ("a seed", None, options["seed"]),
        ("a declared schema", True, schema["declared"]),
        ("most 1s of a row", limits["max_ones_per_row"], schema.get("max_ones_per_row")),
    )
    spent = bought["epsilon"] if bought else 0.0
    if bought and bought["sensitivity"] < most:
        yield f"the number of rows moves by {most:,}, and noise is for {bought['sensitivity']:g}"
    if bought and not bought["sensitivity"] / bought["scale"] <= spent:
        yield "the noise in the number of rows is too small for its charge"
    asked = options["epsilon"] if proof["schedule"] else spent
    if not math.isclose(privacy["epsilon"], asked, rel_tol=1e-9):
        yield f"epsilon {privacy['epsilon']!r} is stated where {asked!r} was asked for"


def _grounds_of(stored: dict[str, Any], statistic: str) -> Iterator[dict[str, Any]]:
    """Return the events that measured a statistic, each once."""
    for run in stored["proof"]["schedule"]:
        for event in run["events"]:
            if event["ground"] and event["ground"]["statistic"] == statistic:
                yield event


def _noise_of_total(
    stored: dict[str, Any], bought: dict[str, Any] | None, measured: dict[str, Any] | None
) -> tuple[float, float]:
    """Return the scale of the noise in the total, as stated and as drawn; equal if nothing is."""
    drawn = measured["ground"]["scale"] if measured else bought["scale"] if bought else 0.0
    return float(stored["total"]["scale"]) if "total" in stored else float(drawn), float(drawn)


def _steps(proof: dict[str, Any]) -> int:
    """Return how many rows, or copies of rows by their weights, neighbours differ in at most."""
    unit, weight = proof.get("unit"), proof.get("weight")
    return int((unit["max_rows"] if unit else 1) * (weight["copies"] if weight else 1))


def _names(schema: dict[str, Any]) -> list[str]:
    """Return the names of the columns of a schema; of items there are none."""
    return [column["name"] for column in schema.get("columns", [])]


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
        if not any(_is_of_sum(mean, event, stored["rows"]) for event in left):
            yield f"the mean of {mean['column']!r} has other noise than its sum"
        edges = [c["edges"] for c in stored["schema"]["columns"] if c["name"] == mean["column"]]
        if not (edges and edges[0][0] <= mean["low"] < mean["high"] <= edges[0][-1]):
            yield f"the mean of {mean['column']!r} has a range that the schema does not have"


def _is_of_sum(mean: dict[str, Any], event: dict[str, Any], rows: int) -> bool:
    """Return whether a mean has the noise with which a sum was measured."""
    kind = {"gaussian": "gaussian", "pure": "discrete laplace"}[event["kind"]]
    # Sums are of twice the steps from the middle, so a mean is half a width for each scale.
    scale = event["ground"]["scale"] * (mean["high"] - mean["low"]) / (2 * rows)
    return mean["noise"] == kind and math.isclose(mean["scale"], scale, rel_tol=1e-9)


def _measurements(stored: dict[str, Any], folder: Path) -> Iterator[str]:
    """Compare the noise of the measured numbers, event by event, with what was drawn."""
    import pyarrow.parquet as parquet

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
        own, deviations = deviations[: each["numbers"]], deviations[each["numbers"] :]
        squares = own * own
        for sums, said in ((squares, each["variances"]), (1 / squares, each["precisions"])):
            if not math.isclose(math.fsum(sums), said, rel_tol=1e-9):
                yield f"measured numbers have other noise than {each['statistic']} was drawn with"
                return


def _tables(stored: dict[str, Any], folder: Path) -> Iterator[str]:
    """Compare the numbers of answers, records and intervals with the tables."""
    import pyarrow.parquet as parquet

    synthetic = folder / "synthetic.parquet"
    records = parquet.read_metadata(synthetic).num_rows if synthetic.exists() else 0
    table = parquet.read_table(folder / "answers.parquet")
    low, high = (table[f"interval_{end}"].to_numpy() for end in ("low", "high"))
    intervals = stored["intervals"]
    yield from _unequal(
        ("the number of answers", table.num_rows, stored["queries"]),
        ("the number of records", records, stored["synthetic_records"]),
        ("intervals", int(np.isfinite(low).sum()), intervals["answers"] if intervals else 0),
    )
    events = [event for run in stored["proof"]["schedule"] for event in run["events"]]
    ground = events[0]["ground"] if len(events) == 1 else None
    proof = stored["proof"]
    cut = proof.get("unit") or proof.get("weight")
    exact_rows = proof["neighbours"] == "replace-one" and not cut
    if intervals and ground and ground["statistic"] == "AllQueries" and exact_rows:
        # The half-width in counts is a quantile of the noise; conjunctions count in whole rows.
        half = math.ceil(-math.log(1 - intervals["level"]) * ground["scale"])
        if events[0]["kind"] == "gaussian":
            half = NormalDist().inv_cdf((1 + intervals["level"]) / 2) * ground["scale"]
        half /= stored["rows"]
        # Nearer to 0 or 1 they are shorter, and there by 9% at most (`estimates.bounded`).
        width = (high - low)[(low >= half) & (high <= 1 - half)] / (2 * half)
        if "literal_1" in table.column_names and np.any((width < 0.91) | (width > 1.00001)):
            yield "the intervals have another width than the noise gives them"
