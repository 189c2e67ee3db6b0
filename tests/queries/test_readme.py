"""The page on queries: its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from dualquery.queries.family import disjunctions_of
from dualquery.queries.stored import FAMILIES

TEXT = (Path(__file__).resolve().parents[2] / "dualquery/queries/README.md").read_text("utf-8")


def test_the_family_of_the_example_is_released() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    found: dict[str, object] = {}
    exec(example, found)
    pairs, made = found["pairs"], found["made"]
    records = np.unpackbits(np.arange(64, dtype=np.uint8)[:, None], axis=1)[:, 2:]
    posed = disjunctions_of(pairs)
    for record in records:
        either = [int(record[0] != record[1]), int(record[2] != record[5])]
        assert posed.on_record(record).tolist() == either
    assert made.answer_table["query"].to_list() == ["either 0 or 1", "either 2 or 5"]
    assert made.privacy.private


def test_every_stored_family_is_named() -> None:
    for family in FAMILIES.values():
        assert f"`{family.__name__}`" in TEXT
