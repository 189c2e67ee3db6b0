"""A fault in the middle of a release: one clear line, and what was drawn stays charged."""

from __future__ import annotations

import json
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


def bits(rows: int = ROWS) -> pl.DataFrame:
    return pl.DataFrame(np.random.default_rng(0).integers(0, 2, (rows, 4)), schema=NAMES)


def write_parquet(folder: Path) -> Path:
    path = folder / "t.parquet"
    pq.write_table(bits().to_arrow(), path, row_group_size=1000, write_page_checksum=True)
    return path


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
