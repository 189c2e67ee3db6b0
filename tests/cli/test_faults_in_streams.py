"""Data that fail in the middle of a pass: one clear line, nothing charged, nothing half-written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from dualquery.cli.main import BAD_INPUT, main
from dualquery.room.ledger import Ledger
from dualquery.runtime.errors import BadInputError

ROWS = 20_000
NAMES = ["a", "b", "c", "d"]
OPTIONS = ["--queries", "20", "--way", "2", "--rounds", "4", "--samples", "5"]
STREAM = ["--engine", "stream"]


def bits(rows: int = ROWS) -> pl.DataFrame:
    return pl.DataFrame(np.random.default_rng(0).integers(0, 2, (rows, 4)), schema=NAMES)


def write_parquet(folder: Path) -> Path:
    path = folder / "t.parquet"
    pq.write_table(bits().to_arrow(), path, row_group_size=1000, write_page_checksum=True)
    return path


def corrupt_parquet(folder: Path) -> str:
    path = write_parquet(folder)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(content)
    return str(path)


def value_beyond_the_schema(folder: Path) -> str:
    last = pl.DataFrame([[0], [1], [0], [7]], schema=NAMES)
    pl.concat([bits(), last]).write_csv(folder / "t.csv")
    return str(folder / "t.csv")


CASES: dict[str, tuple[Callable[[Path], str], str]] = {
    "corrupt parquet": (corrupt_parquet, "t.parquet: "),
    "value beyond the schema": (value_beyond_the_schema, f"row {ROWS + 1}, column 'd'"),
}


@pytest.fixture
def charged(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note what is charged."""
    events: list[object] = []
    charge = Ledger.charge

    def noted(self: Ledger, event: object, ground: object) -> None:
        charge(self, event, ground)  # type: ignore[arg-type]
        events.append(event)

    monkeypatch.setattr(Ledger, "charge", noted)
    return events


def schema_for(folder: Path) -> Path:
    path = folder / "schema.json"
    columns = [{"name": name, "kind": "binary"} for name in NAMES]
    path.write_text(json.dumps({"columns": columns}))
    return path


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_nothing_else(case, tmp_path, capsys, charged) -> None:
    make, message = CASES[case]
    (tmp_path / "data").mkdir()
    data = make(tmp_path / "data")
    schema = schema_for(tmp_path)
    out = tmp_path / "releases" / "out"
    out.parent.mkdir()
    arguments = [data, "--schema", str(schema), *OPTIONS, *STREAM, "--out", str(out)]
    assert main(["release", *arguments]) == BAD_INPUT
    said = capsys.readouterr().err
    last = said.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert "Traceback" not in said
    assert not charged
    assert not list(out.parent.iterdir())


def test_a_fault_after_the_first_draw_refunds_nothing(
    tmp_path, capsys, charged, monkeypatch
) -> None:
    """The second best response fails: its draw stays charged, and no folder is left."""
    from dualquery.mechanisms.dualquery import game

    data = str(write_parquet(tmp_path))
    schema = schema_for(tmp_path)
    out = tmp_path / "out"
    ledgers: list[Ledger] = []
    begin = Ledger.__init__

    def noted(self: Ledger, *arguments: object) -> None:
        begin(self, *arguments)  # type: ignore[arg-type]
        ledgers.append(self)

    monkeypatch.setattr(Ledger, "__init__", noted)
    pose = game.Transcript.best_response

    def failing(self: game.Transcript) -> object:
        if len(charged) == 2:
            raise BadInputError("the solver's disk is full")
        return pose(self)

    monkeypatch.setattr(game.Transcript, "best_response", failing)
    arguments = [data, "--schema", str(schema), *OPTIONS, "--out", str(out)]
    assert main(["release", *arguments]) == BAD_INPUT
    assert "the solver's disk is full" in capsys.readouterr().err
    (ledger,) = ledgers
    assert ledger.spent == len(charged) == 2
    assert not out.exists()
