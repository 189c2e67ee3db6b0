"""Features crossed with each other: every number that a user can get, against the raw table.

At epsilon 50 what has an interval lies within four half lengths, other numbers within `LOOSE`.
"""

import html
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery import Release
from dualquery.cli.main import main
from dualquery.releases.answer.cross_tables import cross_table
from tests.cross import worlds
from tests.cross.worlds import MOST_ITEMS, Asked, World

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
    ("target", "query-items"): "query-items",
    ("missing", "incomplete"): "missing",
    **{
        (feature, "mechanism=randomized-response"): "replace-one"
        for feature in ("add-remove", "rows", "unit", "weight")
    },
    **{("query-items", name): "query-items" for name in MECHANISMS},
}

NOT_OF_LISTS = {"rules", "missing", "incomplete", "clipped", "dates"}
"""What is said of a table's columns: a list of numbered items has none of it, nor an option."""

LEAST = {"answer": 40, "workload": 40, "evaluate": 2, "records": 15, "table": 6, "report": 15}
LEAST_OF_LISTS = {"answer": 40, "workload": 40, "evaluate": 2}
"""By place: how many numbers are compared at least, of a mechanism that makes records."""

MEAN_ROW = r'<th scope="row">([a-z]+)</th><td>([\d.]+)</td><td>([\d.]+)</td><td>([\d.]+)</td>'


def relation(features: set[str]) -> list[str]:
    """Return the option for the neighbours; a wrong number of rows is stated of a private one."""
    private = any(one == "add-remove" or one.startswith("rows") for one in features)
    return ["--neighbours", "add-remove"] if private else []


def options(features: set[str], world: World) -> list[str]:
    given = ["--delta", "1e-6"]
    if "lists" in features:
        given += ["--max-ones-per-row", str(MOST_ITEMS), "--columns", f"0-{worlds.ITEMS - 1}"]
    else:
        given += ["--schema", str(world.schema)]
    given += relation(features)
    if "unit" in features:
        given += ["--unit", "home", "--max-rows-per-unit", str(worlds.MOST_ROWS)]
    if "weight" in features:
        given += ["--weight", "w", "--max-weight", str(worlds.MOST_WEIGHT)]
    if "means" in features:
        given += ["--means", "age,grade"]
    if "target" in features:
        given += ["--target", "0" if "lists" in features else "smoker"]
    if "query-items" in features:
        given += ["--query-items", "top:2"]
        given += [] if "lists" in features else ["--query-columns", "smoker,owner"]
    if not features & {"target", "query-items"}:
        given += ["--marginals", "all"]
    given += [] if "target" in features else ["--way", "2"]
    if "stream" in features:
        given += ["--engine", "stream"]
    for feature in features:
        name, _, value = feature.partition("=")
        if name == "rows":
            given += ["--rows", str(round(float(value) * world.total))]
        if name == "mechanism":
            given += ["--mechanism", value]
            given += ["--rounds", "60"] if value == "dualquery" else []
    return given


def refusals(features: set[str]) -> list[str]:
    """Return the words of which one must be in the refusal; none if there must be none."""
    heads = features | {feature.partition("=")[0] for feature in features}
    return [word for pair, word in REFUSED.items() if {*pair} <= heads]


def released(
    folder: Path, features: set[str], epsilon: float, capsys: pytest.CaptureFixture[str]
) -> tuple[World, Release | None, str]:
    """Return a world, its release with some features, or None, and what stderr said."""
    world = (worlds.baskets if "lists" in features else worlds.people)(folder, features)
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
            patch.setattr(pl.DataFrame, "write_parquet", Mock(side_effect=KeyboardInterrupt))
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


@dataclass(frozen=True)
class Number:
    """A number that a user got: where, its interval, the truth, and the error that is allowed."""

    where: str
    text: str
    found: float | None
    ends: tuple[float, float] | None
    truth: tuple[float, float]
    loose: float
    fitted: float = 0.0

    @property
    def wrong(self) -> bool:
        """Whether it, or the truth, lies too far from the interval or from each other."""
        if self.found is None:
            return False
        least, most = self.truth
        tiny = 1e-9 * max(1.0, abs(most))
        if self.ends is None:
            return not least - self.loose - tiny <= self.found <= most + self.loose + tiny
        low, high = self.ends
        further, own = (HALF_LENGTHS - 1) / 2 * (high - low) + tiny, self.fitted + tiny
        near = low - own <= self.found <= high + own
        return not (near and low - further <= most and least <= high + further)


def ends(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def numbers(world: World, release: Release, features: set[str], folder: Path) -> Iterator[Number]:
    """Yield every number that a user gets of a release."""
    name = next((f.partition("=")[2] for f in features if f.startswith("mechanism")), "adaptive")
    loose = LOOSE[name]
    for asked, line in answers(release, features):
        if features & {*MEASURED} and "so it has no interval" in str(line["basis"]):
            continue
        around, far = ends(line["low"], line["high"]), loose * scale(world, asked)
        yield Number("answer", asked.text, line["answer"], around, world.truth(asked), far)
    yield from _of_workload(world, release, loose)
    yield from _of_evaluation(world, release)
    if "lists" not in features:
        yield from _of_records(world, release, features, loose)
        yield from _of_table(world, release, features, loose)
        yield from _of_report(world, release, features, loose, folder)


def answers(made: Release, features: set[str]) -> list[tuple[Asked, dict[str, object]]]:
    """Return what is asked, and the lines of all answers."""
    asked = (worlds.about_baskets if "lists" in features else worlds.about_people)(features)
    assert len(asked) >= 40
    return [*zip(asked, dualquery.answer_queries(made, [one.text for one in asked]), strict=True)]


def scale(world: World, asked: Asked) -> float:
    """Return the range of a question's answers: what `LOOSE` is a share of."""
    if not asked.column:
        return 1.0 if asked.measure == "share" else world.total
    low, high = world.bounds[asked.column]
    return (world.total if asked.measure == "sum" else 1.0) * (high - low)


def _of_workload(world: World, release: Release, loose: float) -> Iterator[Number]:
    some = release.answer_table.sample(40, with_replacement=True, seed=1)
    for query, answer, low, high in some.select(
        "query", "answer", "interval_low", "interval_high"
    ).iter_rows():
        truth = world.weight(world.condition(query)) / world.total
        yield Number("workload", query, answer, ends(low, high), (truth, truth), loose, loose)


def _of_evaluation(world: World, release: Release) -> Iterator[Number]:
    """Yield the errors that `evaluate` says: its truth is of all rows there, before any cut."""
    every = replace(world, rows=world.every)
    truth = [every.weight(every.condition(query)) for query in release.answer_table["query"]]
    off = np.abs(release.answers - np.array(truth) / every.total)
    told = dualquery.evaluate(release, str(world.path), threads=1)
    for name, known in (("max_error", off.max()), ("mean_error", off.mean())):
        yield Number("evaluate", name, told[name], None, (known, known), 1e-6)


def _of_records(
    world: World, release: Release, features: set[str], loose: float
) -> Iterator[Number]:
    """Yield records' shares of labels, which the records of a table have as it has."""
    if release.synthetic is None:
        assert features & {*WITHOUT_RECORDS}
        return
    records = release.synthetic
    for (column, label), there in world.labels.items():
        if column not in {*records.columns} & _measured(world, features):
            continue
        truth = world.weight(there) / world.total
        share = float(records.select(there.fill_null(False).mean()).item())
        off = loose + 1 / len(records)
        yield Number("records", f"{column}={label}", share, None, (truth, truth), off)
    if "rules" in features:
        broken = len(records.filter((pl.col("age") < 30) & (pl.col("job") != "student")))
        yield Number("records", "that break a rule", broken, None, (0, 0), 0)


def _measured(world: World, features: set[str]) -> set[str]:
    """Return the columns of which something is measured."""
    (known,) = [MEASURED[one] for one in features & {*MEASURED}] or [{*world.rows.columns}]
    return known


def _of_table(world: World, release: Release, features: set[str], loose: float) -> Iterator[Number]:
    if features & {*MEASURED}:
        return
    try:
        table = cross_table(release, "sex", "job", value="count")
    except dualquery.BadInputError:  # no model answers what its workload does not determine
        assert features & {*WITHOUT_RECORDS}
        return
    pairs, far = itertools.product(table.row_labels, table.column_labels), loose * world.total
    for (sex, job), cell in zip(pairs, table.cells, strict=True):
        truth = world.weight(world.labels["sex", sex] & world.labels["job", job])
        around = ends(cell["low"], cell["high"])
        yield Number("table", f"{sex}, {job}", cell["answer"], around, (truth, truth), far)


def _of_report(
    world: World, release: Release, features: set[str], loose: float, folder: Path
) -> Iterator[Number]:
    """Yield the page's shares, rounded to a thousandth, and bought means, to six digits."""
    page = folder / "report.html"
    assert main(["report", str(folder / "release"), "--out", str(page)]) == 0
    written = page.read_text("utf-8")
    for table in re.findall(r"<table><caption><strong>(.*?)</table>", written):
        name = html.unescape(table.partition("</strong>")[0])
        for label, share, low, high in re.findall(
            r'<th scope="row">(.*?)</th>.*?<td>([\d.]+)%</td><td>(?:([\d.]+) to ([\d.]+)%)?</td>',
            table,
        ):
            key = name, html.unescape(label)
            if key in world.labels and name in _measured(world, features):
                truth = 100 * world.weight(world.labels[key]) / world.total
                around = (float(low) - 0.05, float(high) + 0.05) if low else None
                far, text = 100 * loose + 0.05, "=".join(key)
                yield Number("report", text, float(share), around, (truth, truth), far, far)
    for name, *around in release.means and re.findall(MEAN_ROW, written):
        truth = world.truth(Asked("", "mean", worlds.ALL, name))
        found, low, high = map(float, around)
        yield Number("report", f"mean of {name}", found, (low, high), truth, 0, 1e-5 * high)


def combinations() -> list[tuple[str, ...]]:
    """Return all pairs, and 300 triples that are drawn, of features that exclude no other."""

    def possible(some: tuple[str, ...]) -> bool:
        heads = [feature.partition("=")[0] for feature in some]
        return len(set(heads)) == len(heads) and not ("lists" in some and NOT_OF_LISTS & {*some})

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
    words = refusals(features)
    assert (release is None) == bool(words), told
    if release is None:
        (last,) = [line for line in told.splitlines() if line.startswith("error: ")]
        assert len(last) < 400, last
        assert any(word in last for word in words), last
        return
    found = [*numbers(world, release, features, folder)]
    wrong = [number for number in found if number.wrong]
    assert not wrong, "\n".join(map(str, wrong))
    least = LEAST_OF_LISTS if "lists" in features else LEAST
    known = Counter(number.where for number in found if number.found is not None)
    if not features & {*MEASURED, *WITHOUT_RECORDS}:
        assert all(known[where] >= count for where, count in least.items()), known


@pytest.mark.parametrize("features", ALWAYS, ids=" ".join)
def test_every_number_is_true(features: tuple[str, ...], tmp_path: Path, capsys) -> None:
    check(tmp_path, {*features}, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("features", combinations(), ids=" ".join)
def test_every_number_is_true_of_all_pairs_and_many_triples(features, tmp_path, capsys) -> None:
    check(tmp_path, {*features}, capsys)


@pytest.mark.slow
def test_intervals_cover(tmp_path: Path, capsys) -> None:
    """At epsilon 1, 93 to 97% of intervals of whole buckets' shares and counts hold the truth."""
    held = []
    for number, features in enumerate(combinations()[::4]):
        if {"mechanism=dualquery", "mechanism=randomized-response"} & {*features}:
            continue  # they give no intervals
        folder = tmp_path / str(number)
        folder.mkdir()
        world, release, _ = released(folder, {*features}, 1.0, capsys)
        held += [] if release is None else covered(world, release, {*features})
    assert len(held) > 2000
    assert 0.93 <= np.mean(held) <= 0.97


def covered(world: World, release: Release, features: set[str]) -> list[bool]:
    """Return which intervals of shares and counts hold the truth."""
    held = []
    for asked, line in answers(release, features):
        if asked.measure not in ("share", "count") or line["low"] is None:
            continue
        if line["source"] != "rules" and line["low"] < line["high"]:
            (truth, _) = world.truth(asked)
            held.append(line["low"] <= truth <= line["high"])
    return held
