"""Arrow reads in threads of its own: none may let go of a file while the program ends."""

from __future__ import annotations

import weakref
from contextlib import suppress
from pathlib import Path

import pytest

from dualquery.data.readers import csv
from dualquery.data.readers.formats import parse_source
from dualquery.runtime.errors import BadInputError

_ROW = "1,2\n"


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n",
        "a,b\n" + 1_000 * _ROW,
        "a,b\n" + 50 * _ROW + "3\n" + 1_000 * _ROW,
        "a,b\n" + 1_000 * _ROW + '"',
    ],
    ids=["header", "whole", "ragged", "quoted"],
)
@pytest.mark.parametrize("taken", [1, 1_000])
def test_every_reader_waits_however_it_ends(
    tmp_path: Path, text: str, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its end, at a fault, or left after a block: nothing but Arrow holds the file then."""
    waited: list[bool] = []

    def noted(held: weakref.ref[csv._Checked]) -> None:
        wait(held)
        waited.append(held() is None)

    wait = csv._wait_until_gone
    monkeypatch.setattr(csv, "_wait_until_gone", noted)
    path = tmp_path / "t.csv"
    path.write_text(text)
    source = parse_source(str(path))
    assert isinstance(source, csv.CsvSource)
    frames = source.frames(["a", "b"])
    with suppress(BadInputError):
        for _ in zip(range(taken), frames, strict=False):
            pass
    frames.close()
    assert waited == [True]
