"""A real Dask cluster of two processes counts what one machine counts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.data.readers.formats import parse_source
from dualquery.rows.dask_cluster import cluster_rows
from dualquery.rows.engines import Engine
from dualquery.rows.histogram import Histogram
from dualquery.runtime.errors import BadInputError

distributed = pytest.importorskip("distributed", reason="the extra 'distributed' is not installed")

PARTS, ROWS, COLUMNS = 12, 5000, 8
NAMES = [f"c{number}" for number in range(COLUMNS)]
SCHEMA = dualquery.data.schema_from_dict(
    {"kind": "table", "name": "bits", "columns": [{"name": n, "kind": "binary"} for n in NAMES]}
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, rng = tmp_path_factory.mktemp("parts"), np.random.default_rng(3)
    for part in range(PARTS):
        rows = (rng.random((ROWS + part, COLUMNS)) < 0.3).astype(np.uint8)
        pl.DataFrame(rows, schema=NAMES).write_parquet(made / f"part-{part:02}.parquet")
    return made


@pytest.mark.slow
def test_the_release_is_that_of_one_machine(cluster: Any, folder: Path) -> None:
    options = {"schema": SCHEMA, "queries": 200, "seed": 5, "options": {"rounds": "4"}}
    here = dualquery.release(str(folder), engine="memory", **options)
    engine = Engine(name="dask", scheduler=cluster.scheduler_address)
    there = dualquery.release(f"{folder}/part-*.parquet", engine=engine, **options)
    np.testing.assert_array_equal(here.answers, there.answers)
    np.testing.assert_array_equal(here.records, there.records)
    assert here.n == there.n == PARTS * ROWS + sum(range(PARTS))


@pytest.mark.slow
def test_a_part_that_changes_between_passes_is_refused(cluster: Any, tmp_path: Path) -> None:
    parts = [tmp_path / f"{part}.csv" for part in range(2)]
    for part in parts:
        part.write_text(f"{','.join(NAMES)}\n" + "0,1,0,1,0,1,0,1\n" * 9)
    counted = Histogram(SCHEMA.domain)
    with distributed.Client(cluster.scheduler_address) as client:
        rows = cluster_rows(client, [parse_source(str(part)) for part in parts], SCHEMA)
        assert rows.total(counted, 1).sum() == rows.n == 18
        parts[1].write_text(f"{','.join(NAMES)}\n" + "0,1,0,1,0,1,0,1\n" * 8)
        with pytest.raises(BadInputError, match=r"1\.csv: 9 rows were counted first"):
            rows.total(counted, 1)


@pytest.mark.slow
def test_a_fault_in_a_part_is_one_clear_error(cluster: Any, folder: Path, tmp_path: Path) -> None:
    for part in folder.iterdir():
        (tmp_path / part.name).write_bytes(part.read_bytes())
    pl.DataFrame([[2]] + [[0]] * 7, schema=NAMES).write_parquet(tmp_path / "part-05.parquet")
    for part in tmp_path.iterdir():  # the same types in all parts
        pl.read_parquet(part).cast(pl.Int64).write_parquet(part)
    engine = Engine(name="dask", scheduler=cluster.scheduler_address)
    with pytest.raises(BadInputError, match=r"part-05\.parquet: row 1, column 'c0'"):
        dualquery.release(str(tmp_path), schema=SCHEMA, queries=50, engine=engine)


def test_an_unreachable_scheduler(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("dualquery.rows.dask_cluster.CONNECT_SECONDS", 0.2)
    with (
        pytest.raises(BadInputError, match=r"tcp://127\.0\.0\.1:9: no Dask scheduler answers"),
        Engine(name="dask", scheduler="tcp://127.0.0.1:9").open(str(folder), SCHEMA),
    ):
        pass


def test_what_a_cluster_cannot_do_is_refused_first(folder: Path, tmp_path: Path) -> None:
    file = dualquery.BudgetFile.create(tmp_path / "b", epsilon=9.0, delta=1e-3)
    engine = Engine(name="dask", scheduler="tcp://127.0.0.1:9")
    for table, mechanism in ((folder / "part-00.parquet", None), (folder, "randomized-response")):
        with pytest.raises(BadInputError, match=r"parquet files in a folder|in one place"):
            dualquery.release(table, engine=engine, budget=file, epsilon=4.0, mechanism=mechanism)
    assert not file.read().spent[0]
