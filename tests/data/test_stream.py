"""Tables that stay in their files: the same blocks as in memory, and faults found in mid-stream."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from dualquery.data import schema_from_dict
from dualquery.data.readers.formats import parse_source
from dualquery.data.schema.items import ItemSchema
from dualquery.rows.engines import Engine, load
from dualquery.rows.row_sums import BLOCK_ROWS
from dualquery.rows.streamed import StreamedRows, count_rows, stream_rows
from dualquery.runtime.errors import BadInputError

ROWS = 3 * BLOCK_ROWS + 17


def table(rows: int = ROWS, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], rows),
            "age": rng.integers(0, 100, rows),
            "member": rng.integers(0, 2, rows),
        }
    )


SCHEMA = schema_from_dict(
    {
        "name": "people",
        "columns": [
            {"name": "colour", "kind": "categorical", "values": ["red", "green", "blue"]},
            {"name": "age", "kind": "numeric", "edges": [0, 20, 50, 100]},
            {"name": "member", "kind": "binary"},
        ],
    }
)


def write(folder: Path, name: str) -> str:
    path = folder / name
    if name == "t.csv":
        table().write_csv(path)
    elif name == "t.csv.gz":
        path.write_bytes(gzip.compress(table().write_csv().encode()))
    elif name == "t.parquet":
        pq.write_table(table().to_arrow(), path, row_group_size=1000, write_page_checksum=True)
    else:
        for number, part in enumerate(table().iter_slices(5000)):
            part.write_parquet(folder / f"{number}.parquet")
    return str(path)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", ""])
def test_streamed_blocks_are_those_in_memory(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    kept = load(path, SCHEMA).records
    with Engine(name="stream").open(path, SCHEMA) as data:
        assert isinstance(data.records, StreamedRows)
        assert data.n == ROWS
        bits = np.arange(kept.bits, dtype=np.int32)
        for _ in range(2):  # a stream can be passed over again
            blocks = list(data.records.stream())
            assert len(blocks) == kept.blocks
            for number, block in enumerate(blocks):
                np.testing.assert_array_equal(block.pack(bits), kept.block(number, bits))


@pytest.mark.parametrize(("now", "message"), [(ROWS - 1, "now there are"), (ROWS + 9999, "more")])
def test_a_table_that_changes_in_between_is_refused(tmp_path: Path, now: int, message: str) -> None:
    rows = stream_rows(parse_source(write(tmp_path, "t.csv")), SCHEMA)
    table(now).write_csv(tmp_path / "t.csv")
    with pytest.raises(BadInputError, match=message):
        list(rows.stream())


def _truncate(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _corrupt(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("damage", [_truncate, _corrupt])
@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_damage_in_the_middle_is_one_clear_error(
    name: str, damage: Callable[[Path], None], engine: str, tmp_path: Path
) -> None:
    path = write(tmp_path, name)
    damage(Path(path))
    with (
        pytest.raises(BadInputError, match=Path(path).name),
        Engine(name=engine).open(path, SCHEMA) as data,
    ):
        list(data.records.stream())  # type: ignore[attr-defined]


class TestPartitions:
    def test_a_folder_and_a_pattern_are_one_table(self, tmp_path: Path) -> None:
        write(tmp_path, "")
        for text in (str(tmp_path), f"parquet:{tmp_path}", f"{tmp_path}/*.parquet"):
            source = parse_source(text)
            assert len(source.parts) > 1
            assert source.row_count == count_rows(source, SCHEMA) == ROWS

    def test_lists_in_partitions(self, tmp_path: Path) -> None:
        for number in range(2):
            part = pl.DataFrame({"items": [[1, 2], [], [number]]})
            part.write_parquet(tmp_path / f"{number}.parquet")
        source = parse_source(str(tmp_path))
        assert source.row_count == 6
        records = load(source, ItemSchema.numbered(3, "three")).records
        expected = [[0, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0], [0, 1, 0]]
        assert records.dense_rows(0, 6).tolist() == expected

    def test_other_columns_are_refused(self, tmp_path: Path) -> None:
        table(5).write_parquet(tmp_path / "a.parquet")
        table(5).cast({"age": pl.String}).write_parquet(tmp_path / "b.parquet")
        with pytest.raises(BadInputError, match=r"b\.parquet: .* the same columns"):
            parse_source(str(tmp_path))

    def test_a_fault_names_the_part_and_its_row(self, tmp_path: Path) -> None:
        write(tmp_path, "")
        bad = table(5000).with_columns(
            colour=pl.when(pl.int_range(5000) == 7).then(pl.lit("pink")).otherwise("colour")
        )
        bad.write_parquet(tmp_path / "1.parquet")
        with pytest.raises(BadInputError, match=r"1\.parquet: row 8, column 'colour': 'pink'"):
            load(str(tmp_path), SCHEMA)


def test_rows_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "t.csv")
    monkeypatch.setattr("dualquery.rows.engines.available_memory", lambda: 100)
    monkeypatch.setattr("dualquery.rows.engines._CHECKED_BLOCKS", 1)
    with pytest.raises(BadInputError, match="use --engine stream"):
        load(path, SCHEMA)


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_encoding_by_several_threads_keeps_the_order(threads, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("dualquery.data.readers.source._BLOCK_CELLS", 300)  # pieces of 100 rows
    path = write(tmp_path, "t.parquet")
    kept = load(path, SCHEMA).records
    bits = np.arange(kept.bits, dtype=np.int32)
    rows = replace(stream_rows(parse_source(path), SCHEMA), threads=threads)
    for number, block in enumerate(rows.stream()):
        np.testing.assert_array_equal(block.pack(bits), kept.block(number, bits))
