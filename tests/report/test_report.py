"""The page about a release: what it says is so, and it stays a page whatever the names are."""

import itertools
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.releases.answer.answering import answer_queries
from dualquery.releases.compare.evaluation import compare
from dualquery.releases.keep.folder import Release, load_release
from dualquery.report.facts import shares
from dualquery.report.page import report
from dualquery.report.pairs import pairs
from tests.tables import people, release_people

EVIL = '<script>alert("x")</script>&\u202e'


@pytest.fixture(scope="module")
def made() -> Release:
    return release_people(queries=60, way=2, epsilon=3)


@pytest.fixture(scope="module")
def page(made: Release) -> str:
    return report(made)


class Reader(HTMLParser):
    """Checks that elements close in order; collects their texts and attributes."""

    VOID = ("meta", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open and self.open[-1] == "script" else self.texts).append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def test_the_page_says_what_the_release_says(made: Release, page: str) -> None:
    read = Reader(page)
    assert made.privacy.text() in read.text
    assert all(column.name in read.texts for column in made.schema.columns)
    answers = json.loads(next(s for s in read.scripts if s.startswith("[[")))
    assert len(answers) == 60
    by_query = {row[0]: row for row in answers}
    for query, answer in zip(made.workload.text(made.schema), made.answers, strict=True):
        assert float(by_query[query][1]) == pytest.approx(answer, abs=5e-5)


def test_the_page_needs_nothing_else_and_no_script_for_what_matters(page: str) -> None:
    assert not re.search(r"https?://|@import|url\(", page)
    for _, attributes in Reader(page).tags:
        assert not {"src", "srcset", "onclick", "onload"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    without = Reader(re.sub(r"<script.*?</script>", "", page, flags=re.S))
    assert {*without.texts} >= {"age", "job", "flag", "sex", "constant"}
    assert [tag for tag, _ in without.tags].count("tr") > 25


def test_only_with_the_table_the_page_tells_the_truth_and_says_so(made: Release, page: str) -> None:
    assert "NOT PRIVATE" not in page
    loud = Reader(report(made, compare(made, people())))
    assert sum("NOT PRIVATE" in text for text in loud.texts) >= 3
    assert "baseline: gaussian" in loud.text
    assert "truth" in loud.texts
    compared = compare(made, people())
    figures = (f"{100 * e:.2g}" for e in (compared.errors.mean_error, compared.errors.max_error))
    told = "The answers are {} percentage points from the truth in the mean, {} at most."
    assert told.format(*figures) in loud.text


def test_the_first_screen_says_what_protection_means(made: Release, page: str) -> None:
    assert made.privacy.epsilon == 3  # 1 / (1 + exp(-3)) is 0.9526
    first = page[: page.index("<nav")]
    assert "thinks a fact about this one as likely as not, can be at most 95.3% sure of it" in first
    added = made.options | {"neighbours": "add-remove"}
    assert "99.8% sure" in report(replace(made, options=added))


def test_what_a_schema_does_not_list_is_told() -> None:
    column = Categorical("job", (("nurse",), ("smith",)), missing="category", outside="other")
    schema = TableSchema((column, Binary("x")), declared=True)
    rows = pl.DataFrame({"job": ["nurse", "smith", "clerk", "cook"] * 500, "x": [0, 1] * 1000})
    made = dualquery.release(rows, schema=schema, queries="all", way=1, epsilon=800.0)
    assert "(other): job 50" in (page := report(made))
    assert "at most e^800 times as likely" in page


def test_a_release_that_is_not_private_says_so_first() -> None:
    read = Reader(report(release_people(queries=10, way=2, seed=1)))
    assert "NOT PRIVATE" in read.text
    assert "a seed was given" in read.text


def test_names_stay_names(tmp_path: Path) -> None:
    schema = TableSchema(
        (Categorical(EVIL, ((EVIL,), ("</td>",))), Binary("--><b>")), name=EVIL, declared=True
    )
    frame = pl.DataFrame({EVIL: [EVIL, "</td>"] * 20, "--><b>": [0, 1] * 20})
    released = dualquery.release(frame, schema=schema, queries=5, way=2)
    page = report(released, compare(released, frame))
    read = Reader(page)
    assert "b" not in [tag for tag, _ in read.tags]
    assert sum(tag == "script" for tag, _ in read.tags) == 2
    assert "\u202e" not in page
    assert "alert" not in "".join(s for s in read.scripts if not s.startswith("[["))


@pytest.mark.parametrize("mechanism", ["dualquery", "gaussian", "zero"])
def test_every_kind_of_release_has_a_page(mechanism: str, tmp_path: Path) -> None:
    released = release_people(queries=20, way=2, mechanism=mechanism, delta=0.01)
    Reader(report(released))
    released.save(tmp_path / "r")
    page = report(load_release(tmp_path / "r"))
    Reader(page)
    assert ("No row was looked at" in page) == (mechanism == "zero") != ("Noise was added" in page)


def test_pairs_that_noise_explains_are_not_listed() -> None:
    rng = np.random.default_rng(4)
    table = pl.DataFrame({name: rng.integers(0, 6, 1_500) for name in "abcde"})
    table = table.with_columns(b=pl.col("a") // 2)
    columns = [{"name": x, "kind": "categorical", "values": [*"012345"]} for x in table.columns]
    schema = {"columns": columns, "declared": True}
    # With a given pull the mixture is trusted, noise and all.
    made = dualquery.release(
        table, schema=schema, queries=400, way=2, epsilon=2, seed=1, mechanism="matrix",
        options={"pull": 0.03},
    )  # fmt: skip
    found = pairs(made, shares(made))
    assert found.noise_known
    assert [pair[:2] for pair in found.strongest(100)] == [(0, 1)]
    # In the records of so noisy a release others look tied as well.
    assert np.median(found.strength[np.triu_indices(5, 1)]) > 0.1
    assert "chance or noise alone may explain, or that were not measured together" in report(made)


def test_columns_that_were_not_measured_are_called_guesses() -> None:
    page = report(release_people(queries=20, way=2, mechanism="mwem", epsilon=5))
    assert page.count('class="column fitted"') >= 3
    assert "An empty bar is a guess" in page


def cramers_v(one: pl.Series, other: pl.Series) -> float:
    """Cramér's V by its definition, from the table of counts."""
    counts = np.array(
        [[((one == a) & (other == b)).sum() for b in other.unique()] for a in one.unique()], float
    )
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    chi = ((counts - expected) ** 2 / expected).sum()
    return float(np.sqrt(chi / counts.sum() / max(min(counts.shape) - 1, 1)))


def test_the_strength_of_pairs_is_cramers_v_of_the_records(made: Release) -> None:
    found = pairs(made, shares(made))
    for i, j in itertools.combinations(range(len(found.columns)), 2):
        buckets = [_buckets(made, int(found.columns[k])) for k in (i, j)]
        if all(each.n_unique() > 1 for each in buckets):
            assert found.strength[i, j] == pytest.approx(cramers_v(*buckets), abs=1e-5)


def _buckets(made: Release, column: int) -> pl.Series:
    start, end = made.schema.domain.offsets[column : column + 2]
    block = made.records[:, start:end]
    return pl.Series(block[:, 0] if end - start == 1 else block.argmax(axis=1))


@pytest.mark.parametrize(
    ("mechanism", "neighbours"),
    [("matrix", "replace-one"), ("gaussian", "add-remove"), ("independent", "replace-one")],
)
def test_shares_and_their_intervals_are_those_of_the_command_answer(mechanism, neighbours) -> None:
    """Of every value of every column, in the workload or not."""
    asked = {"mechanism": mechanism, "guarantee": neighbours, "delta": 1e-6}
    released = release_people(queries=100, way=2, **asked)
    known = shares(released)
    found = answer_queries(released, released.schema.bit_labels().to_list())
    assert any(line["low"] is not None for line in found)
    for place, line in enumerate(found):
        shown = tuple(float(each[place]) for each in (known.share, known.low, known.high))
        told = (math.nan if line[key] is None else line[key] for key in ("answer", "low", "high"))
        assert shown == pytest.approx(tuple(told), abs=1e-9, nan_ok=True), line["query"]
    assert known.level == min(line["level"] or 1.0 for line in found)
