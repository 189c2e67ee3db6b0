"""Whichever engine reads the rows, the release is the same; and the operator's file of answers."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data.domain import Domain
from dualquery.data.readers.formats import parse_source
from dualquery.data.schema.columns import Numeric
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.queries.conjunctions import Workload
from dualquery.queries.counting.planner import ConjunctionCounts
from dualquery.queries.generate.random import random_conjunctions
from dualquery.rows.cached import CachedRows
from dualquery.rows.counts_file import CountsFile, digest
from dualquery.rows.dataset import load
from dualquery.rows.engines import Engine
from dualquery.rows.histogram import Histogram
from dualquery.rows.protocol import Rows, RowSum
from dualquery.rows.streamed import StreamedRows
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, people

OPTIONS: dict[str, Any] = {"queries": 300, "seed": 4, "options": {"rounds": "5"}}


def test_all_local_engines_make_the_same_release() -> None:
    kept = dualquery.release("adult", engine="memory", **OPTIONS)
    streamed = dualquery.release("adult", engine="stream", **OPTIONS)
    assert kept.records is not None
    np.testing.assert_array_equal(kept.answers, streamed.answers)
    np.testing.assert_array_equal(kept.records, streamed.records)
    summaries = [made.summary() for made in (kept, streamed)]
    for summary in summaries:
        del summary["created"], summary["solver"]
    assert summaries[0] == summaries[1]


def test_the_histogram_is_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "t.txt").write_text(
        "\n".join(" ".join(map(str, row)) for row in rng.integers(0, 2, (5000, 3))) + "\n"
    )
    counts = []
    for name in ("memory", "stream"):
        with Engine(name=name).open(f"matrix:{tmp_path / 't.txt'}") as data:
            counts.append(data.records.total(Histogram(Domain.binary(3)), 1))
    assert counts[0].sum() == 5000
    np.testing.assert_array_equal(*counts)


def test_a_release_evaluates_the_same() -> None:
    made = dualquery.release("adult", **OPTIONS)
    kept, streamed = (
        dualquery.evaluate(made, "adult", engine=name) for name in ("memory", "stream")
    )
    assert kept == streamed


@pytest.mark.parametrize(("available", "kind"), [(10**12, False), (10**4, True), (None, False)])
def test_auto_streams_what_does_not_fit(
    available: int | None, kind: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.dat").write_text("1 2 3\n" * 5000)
    monkeypatch.setattr("dualquery.rows.engines.available_memory", lambda: available)
    with Engine().open(str(tmp_path / "t.dat"), columns="1-3") as data:
        assert isinstance(data.records, StreamedRows) == kind
        assert data.n == 5000


def test_generated_tables_are_made_when_asked_for_by_any_engine() -> None:
    for name in ("auto", "memory", "stream"):
        with Engine(name=name).open("biased:5000,40,1") as data:
            assert not isinstance(data.records, StreamedRows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "spark"}, "--engine is 'spark'"),
        ({"name": "dask"}, "needs the address"),
        ({"name": "stream", "scheduler": "tcp://host:1"}, "goes with --engine dask"),
        ({"answers_cache": "no/such/folder/file"}, "there is no such folder"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        Engine(**options)


@pytest.mark.parametrize(
    "asked",
    [
        OPTIONS,
        {"queries": 300, "mechanism": "gaussian"},
        {"queries": 300, "mechanism": "matrix"},
        {"queries": 300, "mechanism": "mwem"},
    ],
    ids=["dualquery", "gaussian", "matrix", "mwem"],
)
def test_a_fault_in_the_rows_comes_before_any_charge(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[object] = []
    monkeypatch.setattr(
        "dualquery.room.ledger.Ledger.charge", lambda self, event, ground: charged.append(event)
    )
    path = tmp_path / "t.dat"
    path.write_text("1 2\n" * 9000 + "7 99\n")
    for name in ("memory", "stream"):
        with pytest.raises(BadInputError, match="row 9001: item 99"):
            dualquery.release(
                f"fimi:{path}", schema=ItemSchema.numbered(10, "ten"), engine=name, **asked
            )
    assert not charged


class Watched:
    """Rows that note how many conjunctions are counted."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.n, self.bits = rows, rows.n, rows.bits
        self.counted: list[int] = []

    def total(self, statistic: RowSum, threads: int) -> Any:
        if isinstance(statistic, ConjunctionCounts):
            self.counted.append(len(statistic.literals))
        return self.rows.total(statistic, threads)


class TestAnswersCache:
    @pytest.fixture
    def watched(self) -> Watched:
        return Watched(load("biased:5000,30,1").records)

    @staticmethod
    def workload(m: int, way: int = 3, seed: int = 0) -> Workload:
        return random_conjunctions(Domain.binary(30), m, way, True, seed, None)

    def test_only_new_queries_are_counted(self, watched: Watched, tmp_path: Path) -> None:
        path = tmp_path / "answers"
        small = self.workload(100)
        extended = Workload(
            np.concatenate([self.workload(50, seed=1).literals, small.literals[::-1]]),
            small.domain,
            repeats=True,
        )
        wider = self.workload(40, way=4)
        again = extended.take([3, 3, 120, 3])
        for workload in (small, small, extended, wider, again, extended):
            rows = CachedRows(watched, CountsFile(path, "key"))
            np.testing.assert_array_equal(
                workload.counts(rows, threads=1), workload.counts(watched.rows, threads=1)
            )
        assert watched.counted == [100, 50, 40]

    def test_repeats_are_counted_once(self, watched: Watched, tmp_path: Path) -> None:
        workload = self.workload(3).take([0, 1, 0, 2, 1])
        counts = workload.counts(CachedRows(watched, CountsFile(tmp_path / "a", "key")), threads=1)
        np.testing.assert_array_equal(counts, workload.counts(watched.rows, threads=1))
        assert watched.counted == [3]

    @pytest.mark.skipif(os.name == "nt", reason="the system has no modes of files")
    def test_the_file_is_the_owners(self, watched: Watched, tmp_path: Path) -> None:
        self.workload(3).counts(CachedRows(watched, CountsFile(tmp_path / "a", "key")), threads=1)
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600

    def test_it_warns(
        self, watched: Watched, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        CachedRows(watched, CountsFile(tmp_path / "a", "key"))
        assert "exact private answers" in caplog.text

    def test_another_table_is_refused(self, watched: Watched, tmp_path: Path) -> None:
        self.workload(3).counts(CachedRows(watched, CountsFile(tmp_path / "a", "key")), threads=1)
        with pytest.raises(BadInputError, match="another table or schema"):
            CachedRows(watched, CountsFile(tmp_path / "a", "other"))

    def test_another_file_is_refused(self, watched: Watched, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("my thesis")
        with pytest.raises(BadInputError, match="not a file of answers"):
            CachedRows(watched, CountsFile(tmp_path / "a", "key"))
        assert (tmp_path / "a").read_text() == "my thesis"

    def test_a_full_disk_leaves_the_file_as_it_was(
        self, watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = CachedRows(watched, CountsFile(tmp_path / "a", "key"))
        self.workload(3).counts(rows, threads=1)
        before = (tmp_path / "a").read_bytes()

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("dualquery.rows.counts_file.os.fsync", full)
        with pytest.raises(BadInputError, match="No space left"):
            self.workload(9).counts(rows, threads=1)
        assert (tmp_path / "a").read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_the_key_depends_on_the_content_and_the_schema(self, tmp_path: Path) -> None:
        files = [tmp_path / "a", tmp_path / "b"]
        for file in files:
            file.write_text(file.name)
        schemas = [ItemSchema.numbered(bits, "s") for bits in (3, 4)]
        keys = {digest(files, schemas[0]), digest(files, schemas[1]), digest(files[:1], schemas[0])}
        files[1].write_text("c")
        assert len(keys | {digest(files, schemas[0])}) == 4

    def test_a_release_uses_it(self, tmp_path: Path) -> None:
        engine = Engine(answers_cache=tmp_path / "answers")
        first = dualquery.release("adult", engine=engine, **OPTIONS)
        second = dualquery.release("adult", engine=engine, **OPTIONS)
        plain = dualquery.release("adult", **OPTIONS)
        for made in (first, second):
            np.testing.assert_array_equal(made.answers, plain.answers)
        assert "answers" not in str(first.summary()["options"])

    @pytest.mark.parametrize("other", [{"means": "kids"}, {"csv": "spaces=trim"}, {}], ids=str)
    def test_counts_of_rows_that_were_read_otherwise_are_refused(
        self, other: dict[str, Any], tmp_path: Path
    ) -> None:
        """The digits of ages, up to 127, would go beyond the range of 64 kids that is charged."""
        numbers = ("age", (0.0, 64.0, 127.0)), ("kids", (0.0, 32.0, 64.0))
        columns = [Numeric(name, edges, integer=True, outside="clip") for name, edges in numbers]
        table = tmp_path / "t.csv"
        pl.DataFrame({"age": [100] * 50, "kids": [1] * 50}).write_csv(table)
        asked = {
            "schema": TableSchema(tuple(columns), declared=True), "queries": ["age>=64"],
            "mechanism": "gaussian", "engine": Engine(answers_cache=tmp_path / "answers"),
        }  # fmt: skip
        dualquery.release(table, means="age", **asked)
        again = {"means": "age", **other}
        if other:
            with pytest.raises(BadInputError, match="of another table or schema"):
                dualquery.release(table, **again, **asked)
        else:
            dualquery.release(table, **again, **asked)

    def test_tables_in_memory_have_no_file(self, tmp_path: Path) -> None:
        table = pl.DataFrame({"a": [0, 1]})
        with (
            pytest.raises(BadInputError, match="data that are in a file"),
            Engine(answers_cache=tmp_path / "a").open(table),
        ):
            pass


def test_workers_started_in_another_folder_are_told_absolute_paths(tmp_path, monkeypatch) -> None:
    class Client:
        """Runs what it is given in another folder."""

        def submit(self, function, *values, **_):
            return function(*values)

        def map(self, function, parts, shared, **_):
            with monkeypatch.context() as elsewhere:
                elsewhere.chdir("/")
                return [function(part, shared=shared) for part in parts]

        def gather(self, found):
            return found

    from dualquery.rows.dask_cluster import cluster_rows

    faults = SimpleNamespace(KilledWorker=OSError, CancelledError=OSError)
    monkeypatch.setitem(sys.modules, "distributed", faults)
    for part in range(2):
        (tmp_path / "parts").mkdir(exist_ok=True)
        people(10).write_parquet(tmp_path / f"parts/{part}.parquet")
    monkeypatch.chdir(tmp_path)
    assert cluster_rows(Client(), parse_source("parts").parts, SCHEMA).n == 20
