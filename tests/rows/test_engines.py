"""Whichever engine reads the rows, the release is the same."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dualquery
from dualquery.data.domain import Domain
from dualquery.data.readers.formats import parse_source
from dualquery.data.schema.items import ItemSchema
from dualquery.rows.engines import Engine
from dualquery.rows.histogram import Histogram
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
    kept, streamed = (dualquery.evaluate(made, "adult", engine=e) for e in ("memory", "stream"))
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
    ],
)
def test_options_that_contradict_each_other(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        Engine(**options)


@pytest.mark.parametrize(
    "asked", [OPTIONS, {"queries": 300, "mechanism": "matrix"}], ids=["dualquery", "matrix"]
)
def test_a_fault_in_the_rows_comes_before_any_charge(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[object] = []
    monkeypatch.setattr(
        "dualquery.room.ledger.Ledger.charge", lambda self, event, ground: charged.append(event)
    )
    (path := tmp_path / "t.dat").write_text("1 2\n" * 9000 + "7 99\n")
    for name in ("memory", "stream"):
        with pytest.raises(BadInputError, match="row 9001: item 99"):
            dualquery.release(
                f"fimi:{path}", schema=ItemSchema.numbered(10, "ten"), engine=name, **asked
            )
    assert not charged


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
