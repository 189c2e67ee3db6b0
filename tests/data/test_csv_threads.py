"""Arrow reads in threads of its own: none may let go of a file while the program ends."""

import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dualquery.data.readers import csv
from dualquery.data.readers.formats import parse_source
from dualquery.runtime.errors import BadInputError

_ROWS = "1,2\n" * 1_000


@pytest.mark.parametrize("text", [_ROWS, "1,2\n3\n" + _ROWS, _ROWS + '"'])
@pytest.mark.parametrize("taken", [1, 1_000])
def test_every_reader_waits_however_it_ends(
    tmp_path: Path, text: str, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its end, at a fault, or left after a block: nothing but Arrow holds the file then."""
    waited: list[bool] = []
    wait = csv._wait_until_gone

    def noted(held: weakref.ref[Any]) -> None:
        wait(held)
        waited.append(held() is None)

    monkeypatch.setattr(csv, "_wait_until_gone", noted)
    (tmp_path / "t.csv").write_text("a,b\n" + text)
    frames = parse_source(str(tmp_path / "t.csv")).frames(["a", "b"])
    with suppress(BadInputError):
        for _ in zip(range(taken), frames, strict=False):
            pass
    frames.close()
    assert waited == [True]
