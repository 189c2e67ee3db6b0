"""Where the data of the studies lie, if they are there."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "../shared/data"

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="needs the data in ../shared, which this checkout lacks"
)
