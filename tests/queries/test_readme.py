"""The page on queries names every family."""

from __future__ import annotations

from pathlib import Path

from dualquery.queries.stored import BUILT_IN

TEXT = (Path(__file__).resolve().parents[2] / "dualquery/queries/README.md").read_text("utf-8")


def test_every_family_is_named() -> None:
    for family in BUILT_IN:
        assert f"`{family.__name__}`" in TEXT
