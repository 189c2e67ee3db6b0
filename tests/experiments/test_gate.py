"""The gate: its grid, its kept figures, and that it finds what became worse."""

import polars as pl

from experiments import gate
from experiments.commands import recipe_named
from experiments.harness.recipe import Choices


def rows(factor: float, told: tuple[float, float]) -> pl.DataFrame:
    """Return results that are the kept figures times a factor; one cell has twice that."""
    low, high = told
    return pl.DataFrame(
        [
            {
                "cell": cell,
                "mechanism": "any",
                **{name: value * factor * (1 + (at == 0)) for name, value in figures.items()},
                "records_max": 0.1,
                "records_mean": 0.1,
                "missed": 0.05,
                "cpu_seconds": 1.0,
                **{f"{kind}_low": figures[f"{kind}_error"] * low for kind in ("max", "mean")},
                **{f"{kind}_high": figures[f"{kind}_error"] * high for kind in ("max", "mean")},
            }
            for at, (cell, figures) in enumerate(gate.kept().items())
        ]
    )


def test_the_grid_is_kept_in_whole() -> None:
    runs = recipe_named("gate").plan(Choices())
    cells = {run["cell"] for run in runs}
    assert len(cells) >= 40
    assert len(runs) == 3 * len(cells)
    assert cells <= set(gate.kept())


def test_what_became_worse_is_found() -> None:
    table = rows(0.9, (0.5, 2.0))
    summary = gate.summarise(table)
    assert summary["cell"][0] == next(iter(gate.kept()))
    assert summary["max_error_ratio"][0] == 1.8
    verdicts = [finding.holds for finding in gate.expect(table)]
    assert verdicts == [True, False, True, False, True, True]
    assert [finding.holds for finding in gate.expect(rows(1.1, (1.2, 20.0)))] == [False] * 6
