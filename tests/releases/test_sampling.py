"""New records from a release: its model, or its own repeated; made-up columns are named."""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data.schema.items import ItemSchema
from dualquery.mechanisms.protocol import Outcome
from dualquery.releases.answer import sampling
from dualquery.releases.answer.table_files import write_frames
from dualquery.releases.compare.evaluation import evaluate
from dualquery.releases.keep.folder import Release
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, people, release_people


@pytest.fixture(scope="module")
def made() -> Release:
    return release_people(queries=40, way=2, mechanism="independent", epsilon=10.0)


def test_records_come_from_the_model_and_are_as_many_as_asked_for(made) -> None:
    assert sampling.source_of_records(made) == "model"
    for count in (0, 1, 4000):
        rows = made.sample(count, seed=1)
        assert rows.height == count
        assert rows.schema == made.synthetic.schema
    assert made.sample(50, seed=1).equals(made.sample(50, seed=1))
    assert not made.sample(50, seed=1).equals(made.sample(50, seed=2))
    outcome = Outcome(made.answers, made.records, model=made.model)
    assert len(sampling.finished_records(outcome, 7, 300, 1)[0]) == 7


def test_without_a_model_records_repeat_equally_often(made) -> None:
    own = replace(made, model=None)
    assert sampling.source_of_records(own) == "records"
    again = sampling.resampled(own.records, 3 * len(own.records) + 7, np.random.default_rng(3))
    times, expected = Counter(map(bytes, again)), Counter(map(bytes, own.records))
    assert all(0 <= times[row] - 3 * number <= number for row, number in expected.items())
    assert own.sample(10).height == 10


def test_a_release_with_neither_is_refused(made) -> None:
    with pytest.raises(BadInputError, match="'gaussian' makes no synthetic records"):
        replace(made, model=None, records=None, mechanism="gaussian").sample(3)
    with pytest.raises(BadInputError, match="cannot draw -1"):
        made.sample(-1)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_hold_all_blocks(made, tmp_path, suffix) -> None:
    frames = [made.sample(count, seed=count) for count in (30, 20)]
    path = tmp_path / f"rows.{suffix}"
    write_frames(iter(frames), path)
    found = pl.read_csv(path) if suffix == "csv" else pl.read_parquet(path)
    assert found.equals(pl.concat(frames).cast(dict(found.schema)))
    assert [*tmp_path.iterdir()] == [path]


def test_lists_of_items_go_into_parquet_only(tmp_path) -> None:
    schema = ItemSchema(np.arange(10_001), declared=True)
    records = np.zeros((4, 10_001), np.uint8)
    records[1, [5, 7]] = 1
    with pytest.raises(BadInputError, match="lists"):
        write_frames([schema.decode(records)], tmp_path / "rows.csv")
    write_frames([schema.decode(records)] * 2, tmp_path / "rows.parquet")
    assert pl.read_parquet(tmp_path / "rows.parquet")["items"].to_list() == [[], [5, 7], [], []] * 2


def released(**options) -> Release:
    return release_people(queries=20, way=2, **options)


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("auto", {}),
        ("mwem", {"iterations": 2}),
        ("smalldb", {"size": 1}),
        ("dualquery", {"rounds": 6, "samples": 5}),
    ],
)
def test_a_release_has_as_many_records_as_asked_for(mechanism, options) -> None:
    made = released(mechanism=mechanism, options=options, records=777)
    assert len(made.records) == made.parameters.get("records", 777) == 777
    repeated = mechanism in ("dualquery", "smalldb")
    assert any("repeat the" in note for note in made.notes) == repeated


def test_wide_records_are_fewer_and_the_release_says_so(monkeypatch) -> None:
    monkeypatch.setattr("dualquery.mechanisms.protocol.MOST_CELLS", 100 * SCHEMA.domain.bits)
    made = released(mechanism="independent")
    assert len(made.records) == 100
    assert any("100 synthetic records, not one a row" in note for note in made.notes)
    assert len(released(mechanism="independent", records=250).records) == 250


@pytest.mark.parametrize(
    ("mechanism", "records", "options", "message"),
    [
        ("gaussian", 5, {}, "'gaussian' makes no synthetic records"),
        ("zero", 5, {}, "'zero' makes no synthetic records"),
        ("uniform", 0, {}, "--records is 0"),
        ("uniform", 5, {"records": 6}, "give one of them"),
        ("uniform", 10**15, {}, "1,000,000,000,000,000 records of 12 bits"),
    ],
)
def test_numbers_that_cannot_be_are_refused(mechanism, records, options, message) -> None:
    with pytest.raises(BadInputError, match=message):
        released(mechanism=mechanism, records=records, options=options)


NOTE = "No query asks about 'job', 'flag', 'constant': what the records have there is made up."


@pytest.mark.parametrize("mechanism", ["matrix", "uniform"])
def test_columns_that_no_query_asks_about_are_named(tmp_path, mechanism) -> None:
    made = release_people(queries=["age>=50 & sex=Male"], mechanism=mechanism)
    assert made.notes[-1] == NOTE
    made.save(tmp_path / "r")
    again = dualquery.load_release(tmp_path / "r")
    assert again.notes == made.notes
    assert sampling.unasked(again.schema, again.workload, again) == ["job", "flag", "constant"]
    assert evaluate(again, people())["unasked"] == ["job", "flag", "constant"]


def test_what_was_measured_is_known_and_a_bought_mean_is_not_enough() -> None:
    made = release_people(queries=["flag", "sex=Male"], mechanism="matrix", means="age")
    assert sampling.unasked(made.schema, made.workload, made) == ["age", "job", "constant"]
    every = release_people(queries=20, way=1, mechanism="matrix")
    also = replace(made, measurements=every.measurements)
    assert sampling.unasked(also.schema, also.workload, also) == []
