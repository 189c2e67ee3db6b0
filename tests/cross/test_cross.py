"""Features crossed with each other: every number that a user can get, against the raw table.

At epsilon 50 noise hardly counts: a number that is far from the truth is wrong. What has an
interval must lie within four of its half lengths, whatever the features; what has none within
`LOOSE` of the range, which is stated for each mechanism. At epsilon 1 the intervals must cover.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.cli.main import main
from dualquery.releases.answer.cross_tables import cross_table
from tests.cross.worlds import (
    ITEMS,
    MOST_ITEMS,
    MOST_ROWS,
    MOST_WEIGHT,
    Asked,
    World,
    about_baskets,
    about_people,
    baskets,
    people,
)

HALF_LENGTHS = 4
LOOSE = {
    "adaptive": 0.03,
    "gaussian": 0.05,
    "laplace": 0.08,
    "independent": 0.15,
    "mwem": 0.12,
    "mwem-sampled": 0.08,
    "dualquery": 0.25,
    "barak": 0.1,
    "randomized-response": 0.15,
}
"""By mechanism: the most that an answer without an interval, or a record's share, may be off, as a
share of the rows. Measured at epsilon 50 on these tables; the games play a few rounds only, and
independent columns know nothing of the rule that ties jobs to ages."""

MEASURED = {"query-items": {"smoker", "owner"}}
"""By feature: the columns that alone are measured; of others an answer says that it is a guess."""

WITHOUT_RECORDS = [f"mechanism={name}" for name in ("gaussian", "laplace", "randomized-response")]

MECHANISMS = [f"mechanism={name}" for name in LOOSE if name != "adaptive"]
KINDS = ["add-remove", "rows=0.5", "rows=2", "unit", "weight", "means", "rules", "missing"]
KINDS += ["incomplete", "clipped", "dates", "lists", "target", "query-items", "budget", "resume"]
FEATURES = [*KINDS, "stream", *MECHANISMS]

REFUSED = {
    # What cannot be combined, and a word that the refusal must have.
    ("lists", "unit"): "unit",
    ("lists", "weight"): "weight",
    ("lists", "means"): "means",
    ("lists", "target"): "smoker",
    ("target", "query-items"): "query-items",
    ("missing", "incomplete"): "missing",
    **{
        (feature, "mechanism=randomized-response"): "replace-one"
        for feature in ("add-remove", "rows", "unit", "weight")
    },
    **{("query-items", name): "query-items" for name in MECHANISMS},
}


def relation(features: set[str]) -> list[str]:
    """Return the option for the neighbours; a wrong number of rows is stated of a private one."""
    private = any(one == "add-remove" or one.startswith("rows") for one in features)
    return ["--neighbours", "add-remove"] if private else []


def options(features: set[str], world: World) -> list[str]:
    """Return the options of a release with these features."""
    given = (
        ["--delta", "1e-6", "--max-ones-per-row", str(MOST_ITEMS)] if "lists" in features else []
    )
    given = given or ["--delta", "1e-6", "--schema", str(world.schema)]
    if "lists" in features:
        given += ["--columns", f"0-{ITEMS - 1}"]
    given += relation(features)
    if "unit" in features:
        given += ["--unit", "home", "--max-rows-per-unit", str(MOST_ROWS)]
    if "weight" in features:
        given += ["--weight", "w", "--max-weight", str(MOST_WEIGHT)]
    if "means" in features:
        given += ["--means", "age,grade"]
    if "target" in features:
        given += ["--target", "smoker"]
    elif "query-items" in features:
        given += ["--query-items", "top:2", "--way", "2"]
        given += [] if "lists" in features else ["--query-columns", "smoker,owner"]
    else:
        given += ["--marginals", "all", "--way", "2"]
    if "stream" in features:
        given += ["--engine", "stream"]
    for feature in features:
        name, _, value = feature.partition("=")
        if name == "rows":
            given += ["--rows", str(round(float(value) * world.total))]
        if name == "mechanism":
            given += ["--mechanism", value]
            given += ["--rounds", "150"] if value == "dualquery" else []
    return given


def released(
    folder: Path, features: set[str], epsilon: float, capsys: pytest.CaptureFixture[str]
) -> tuple[World, dualquery.Release | None, str]:
    """Return a world, its release with some features, or None, and what stderr said."""
    world = (baskets if "lists" in features else people)(folder, features)
    out = folder / "release"
    command = ["release", f"{world.path}", *options(features, world), "--epsilon", str(epsilon)]
    command += ["--out", str(out), "--threads", "1", "--quiet"]
    command += [] if features & {*WITHOUT_RECORDS} else ["--records", "2000"]
    if "budget" in features:
        budget = folder / "budget.db"
        unit = ["--unit", "home"] if "unit" in features else []
        limit = ["--epsilon", str(2 * epsilon), "--delta", "1e-5"]
        assert main(["budget", "init", str(budget), *limit, *relation(features), *unit]) == 0
        command += ["--budget", str(budget)]
    with pytest.MonkeyPatch.context() as patch:
        if "resume" in features:
            patch.setattr(pl.DataFrame, "write_parquet", _interrupt)
        code = main(command)
    if "resume" in features and code == 130:
        capsys.readouterr()
        code = main(["release", "--resume", f"{out}.unfinished", "--threads", "1", "--quiet"])
    told = capsys.readouterr().err
    if code == 0:
        return world, dualquery.load_release(out), told
    assert code == 2, told
    assert not out.exists()
    return world, None, told


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def scale(world: World, asked: Asked) -> float:
    """Return the range of a question's answers: what `LOOSE` is a share of."""
    if not asked.column:
        return 1.0 if asked.measure == "share" else world.total
    low, high = world.bounds[asked.column]
    return (world.total if asked.measure == "sum" else 1.0) * (high - low)


def faults(world: World, release: dualquery.Release, features: set[str]) -> Iterator[str]:
    """Say which numbers of a release are wrong."""
    asked = (about_baskets if "lists" in features else about_people)(features)
    name = next((f.partition("=")[2] for f in features if f.startswith("mechanism")), "adaptive")
    loose = LOOSE[name]
    for one, line in zip(asked, answers_of(release, asked), strict=True):
        if not _is_guess(line, features):
            yield from _fault(one.text, line, *world.truth(one), loose * scale(world, one))
    if "lists" not in features and not features & {*MEASURED}:
        yield from _table_faults(world, release, features, loose)
    yield from _record_faults(world, release, features, loose)
    yield from _workload_faults(world, release, loose)


def answers_of(release: dualquery.Release, asked: list[Asked]) -> list[dict[str, object]]:
    """Return the lines of all answers."""
    return dualquery.answer_queries(release, [one.text for one in asked])


def _is_guess(line: dict[str, object], features: set[str]) -> bool:
    """Whether an answer is about columns that were not measured, and says so."""
    return bool(features & {*MEASURED}) and "nothing is known of the error" in str(line["basis"])


def _fault(
    text: str, line: dict[str, object], least: float, most: float, loose: float
) -> Iterator[str]:
    answer, low, high = line["answer"], line["low"], line["high"]
    if answer is None:
        return
    found = f"{text}: {answer} ({low} to {high}), truth {least} to {most}; {line['basis']}"
    tiny = 1e-9 * max(1.0, abs(most))
    if low is None:
        if not least - loose <= answer <= most + loose:
            yield found
        return
    further = (HALF_LENGTHS - 1) / 2 * (high - low) + tiny
    # The answers of a workload are what a mechanism fitted, and their intervals are of the truth.
    own = loose if line["source"] == "released" else tiny
    if not (
        low - own <= answer <= high + own and low - further <= most and least <= high + further
    ):
        yield found


def _table_faults(
    world: World, release: dualquery.Release, features: set[str], loose: float
) -> Iterator[str]:
    try:
        table = cross_table(release, "sex", "job", value="count")
    except dualquery.BadInputError:  # no model answers what its workload does not determine
        assert features & {*WITHOUT_RECORDS}
        return
    pairs = itertools.product(table.row_labels, table.column_labels)
    for (sex, job), cell in zip(pairs, table.cells, strict=True):
        truth = world.weight(world.labels["sex", sex] & world.labels["job", job])
        yield from _fault(f"table {sex}, {job}", cell, truth, truth, loose * world.total)


def _record_faults(
    world: World, release: dualquery.Release, features: set[str], loose: float
) -> Iterator[str]:
    """Compare records' shares of labels, which the records of a table have as it has."""
    if release.synthetic is None or "lists" in features:
        return
    records = release.synthetic
    (measured,) = [MEASURED[one] for one in features & {*MEASURED}] or [{*records.columns}]
    for (column, label), there in world.labels.items():
        if column not in records.columns or column not in measured:
            continue
        truth = world.weight(there) / world.total
        share = float(records.select(there.fill_null(False).mean()).item())
        if abs(share - truth) > loose + 1 / len(records):
            yield f"records, {column}={label}: {share}, truth {truth}"
    if "rules" in features and len(
        records.filter((pl.col("age") < 30) & (pl.col("job") != "student"))
    ):
        yield "records break a rule"


def _workload_faults(world: World, release: dualquery.Release, loose: float) -> Iterator[str]:
    """Compare the answers of the workload, and what `evaluate` says of them."""
    answers = release.answer_table.sample(40, with_replacement=True, seed=1)
    for query, answer, low, high in answers.select(
        "query", "answer", "interval_low", "interval_high"
    ).iter_rows():
        truth = world.weight(world.condition(query)) / world.total
        line = {"answer": answer, "low": low, "high": high, "source": "released", "basis": ""}
        yield from _fault(query, line, truth, truth, loose)


def evaluation_faults(
    world: World, release: dualquery.Release, features: set[str]
) -> Iterator[str]:
    """Compare the errors that `evaluate` says with those from the raw table."""
    if features & {"unit", "lists"}:  # its truth is of all rows there, before any cut
        return
    truth = np.array([world.weight(world.condition(q)) for q in release.answer_table["query"]])
    off = np.abs(release.answers - truth / world.total)
    told = dualquery.evaluate(release, str(world.path), threads=1)
    for name, known in (("max_error", off.max()), ("mean_error", off.mean())):
        if abs(told[name] - known) > 1e-6:
            yield f"evaluate: {name} {told[name]}, from the table {known}"


def report_faults(world: World, folder: Path) -> Iterator[str]:
    """Compare the shares on the page, which are rounded to a thousandth, with the table's."""
    page = folder / "report.html"
    assert main(["report", str(folder / "release"), "--out", str(page)]) == 0
    for table in re.findall(r"<table><caption><strong>(.*?)</table>", page.read_text("utf-8")):
        name = html.unescape(table.partition("</strong>")[0])
        for label, cells in re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', table):
            numbers = re.findall(r"<td>(?:less than )?([\d.]+)%?</td>", cells)
            there = world.labels.get((name, html.unescape(label)))
            if there is None or not numbers:
                continue
            share, truth = float(numbers[0]) / 100, world.weight(there) / world.total
            ends = re.findall(r"<td>([\d.]+) to ([\d.]+)%</td>", cells)
            half = (float(ends[0][1]) - float(ends[0][0])) / 200 if ends else 0.05
            if abs(share - truth) > HALF_LENGTHS * half + 0.001:
                yield f"report, {name}={label}: {share}, truth {truth}"


def combinations() -> list[tuple[str, ...]]:
    """Return all pairs, and 300 triples that are drawn, of features that exclude no other."""

    def possible(some: tuple[str, ...]) -> bool:
        heads = [feature.partition("=")[0] for feature in some]
        return len(set(heads)) == len(heads)

    pairs = [pair for pair in itertools.combinations(FEATURES, 2) if possible(pair)]
    triples = [three for three in itertools.combinations(FEATURES, 3) if possible(three)]
    drawn = np.random.default_rng(5).choice(len(triples), 300, replace=False)
    return [*pairs, *(triples[int(place)] for place in drawn)]


ALWAYS = [
    (),
    ("add-remove", "rows=0.5"),
    ("add-remove", "rows=2", "weight"),
    ("unit", "rows=2", "incomplete"),
    ("unit", "weight", "means"),
    ("weight", "rules", "means"),
    ("add-remove", "means", "clipped"),
    ("missing", "dates", "resume"),
    ("lists", "query-items", "add-remove"),
    ("target", "budget", "rules"),
    ("mechanism=gaussian", "add-remove", "rows=2"),
    ("mechanism=dualquery", "weight", "stream"),
    ("mechanism=mwem-sampled", "unit", "clipped"),
    ("mechanism=independent", "weight", "rules"),
    ("mechanism=mwem", "weight", "dates"),
    ("mechanism=barak", "lists", "budget"),
    ("query-items", "means", "rules"),
    ("mechanism=laplace", "rows=2", "means"),
    ("mechanism=gaussian", "unit", "dates"),
]
"""Combinations in which something was wrong once, or that touch what others do not."""


def check(folder: Path, features: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Release at epsilon 50, and hold every number against the table."""
    world, release, told = released(folder, features, 50.0, capsys)
    if release is None:
        (last,) = [line for line in told.splitlines() if line.startswith("error: ")]
        assert len(last) < 400, last
        heads = features | {feature.partition("=")[0] for feature in features}
        words = [word for pair, word in REFUSED.items() if {*pair} <= heads]
        assert any(word in last for word in words), last
        return
    wrong = [*faults(world, release, features)]
    wrong += evaluation_faults(world, release, features)
    if "lists" not in features:
        wrong += report_faults(world, folder)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("features", ALWAYS, ids=" ".join)
def test_every_number_is_true(features: tuple[str, ...], tmp_path: Path, capsys) -> None:
    check(tmp_path, {*features}, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("features", combinations(), ids=" ".join)
def test_every_number_is_true_of_all_pairs_and_many_triples(
    features: tuple[str, ...], tmp_path: Path, capsys
) -> None:
    check(tmp_path, {*features}, capsys)


@pytest.mark.slow
def test_intervals_cover(tmp_path: Path, capsys) -> None:
    """At epsilon 1, over many combinations, 93 to 97% of the intervals hold the truth.

    Shares and counts of whole buckets only: others allow for what no noise decides.
    """
    held = []
    for number, features in enumerate(combinations()[:: len(combinations()) // 60]):
        folder = tmp_path / str(number)
        folder.mkdir()
        world, release, _ = released(folder, {*features}, 1.0, capsys)
        if release is None or any(feature.startswith("mechanism") for feature in features):
            continue
        asked = (about_baskets if "lists" in features else about_people)(features)
        for one, line in zip(asked, answers_of(release, asked), strict=True):
            if one.measure not in ("share", "count") or line["low"] is None:
                continue
            if line["source"] == "rules" or line["low"] == line["high"]:
                continue
            truth, _ = world.truth(one)
            held.append(line["low"] <= truth <= line["high"])
    assert len(held) > 1000
    assert 0.93 <= np.mean(held) <= 0.97
