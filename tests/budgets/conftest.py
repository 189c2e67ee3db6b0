"""Budget files in a folder of their own, with counters of their own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dualquery.budgets.budget_file import BudgetFile

Make = Callable[..., BudgetFile]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a budget file: by default of (1, 1e-6), summed."""

    def made(name: str = "budget.sqlite", **terms: object) -> BudgetFile:
        return BudgetFile.create(tmp_path / name, **{"epsilon": 1.0, "delta": 1e-6, **terms})

    return made
