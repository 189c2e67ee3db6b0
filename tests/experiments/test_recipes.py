"""Every experiment from its plan to its picture, each run made small, in this process."""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from dualquery.data.builtin import dataset_path
from dualquery.rows.engines import load
from experiments import measuring
from experiments.commands import recipe_named
from experiments.contenders import BEST, CONTENDERS, Contender
from experiments.figure4 import SAMPLES, samples_for
from experiments.harness.recipe import Choices, Recipe, Run
from experiments.harness.runner import tidy_table

SMALL: dict[str, Any] = {
    "queries": lambda queries: queries // 40,
    "rows": 800,
    "draws": 2,
    "epsilons": lambda each: [epsilon / 20 for epsilon in each],
}
"""Parameter -> its value in a small run, or a function of it. Little budget: few rounds."""
PART = {"learning": {"table": "generated", "epsilon": 1.0}, "coverage": {"workload": "marginals"}}
"""Runs of which one part is like the others."""
OPTIONS = {"figure4": {"attributes": (20, 30)}}
MEASURED = {"run_seconds": 1.0, "run_cpu_seconds": 1.0, "peak_mib": 100.0}


def small(run: Run) -> Run:
    made = {
        name: change(run[name]) if callable(change) else change
        for name, change in SMALL.items()
        if name in run
    }
    return {**run, **made}


@pytest.fixture
def quick_parts(monkeypatch) -> Iterator[None]:
    """Stand in for the best mechanism, which takes seconds a run, and for Adult: its first rows."""
    few = pl.read_parquet(str(dataset_path("adult"))).head(2_000)

    def loaded(source: Any, *how: Any) -> Any:
        return load(few if source == "adult" else source, *how)

    monkeypatch.setitem(CONTENDERS, BEST, Contender("independent"))
    monkeypatch.setattr(measuring, "load", loaded)
    measuring.table.cache_clear()
    yield
    measuring.table.cache_clear()
    measuring.question.cache_clear()


@pytest.mark.parametrize(
    "name",
    ["figure1", "figure2", "figure3", "figure4", "parameters", "policy", "accuracy", "headline",
     "learning", "drafts", "coverage"],
)  # fmt: skip
@pytest.mark.usefixtures("quick_parts")
def test_a_quick_form_reaches_its_picture(name, tmp_path) -> None:
    recipe = recipe_named(name)
    assert recipe.name == name
    choices = Choices(runs=1, quick=True, options=OPTIONS.get(name, {}))
    part = PART.get(name, {}).items()
    runs = [small(run) for run in recipe.plan(choices) if part <= run.items()]
    assert len({str(run) for run in runs}) == len(runs), "two runs are the same"
    table = tidy_table((run, _rows(recipe, run)) for run in runs)
    assert recipe.summarise(table).height
    findings = recipe.expect(table)
    assert findings
    assert all(finding.expected and finding.found for finding in findings)
    if recipe.draw is None:
        return
    pytest.importorskip("matplotlib")
    from experiments.harness.style import save, styled

    with styled(name):
        for picture, figure in recipe.draw(table).items():
            assert len(save(figure, tmp_path, picture).read_text("utf-8")) < 300_000
            for panel in figure.axes:
                if panel.get_visible():
                    assert panel.get_ylabel()


def _rows(recipe: Recipe, run: Run) -> list[dict[str, Any]]:
    measured = MEASURED if recipe.fresh or recipe.timed else {}
    return [{**row, **measured} for row in recipe.perform(run, 1)]


@pytest.mark.parametrize(
    "name", ["figure2", "figure4", "parameters", "policy", "accuracy", "headline"]
)
def test_a_full_form_needs_no_file(name) -> None:
    runs = recipe_named(name).plan(Choices())
    assert len(runs) > 20
    assert max(run["seed"] for run in runs) >= 3


def test_figure4_states_what_scripts_read() -> None:
    assert {attributes: samples_for(attributes) for attributes in SAMPLES} == SAMPLES
    recipe = recipe_named("figure4")
    run = small(recipe.plan(Choices(quick=True, options={"attributes": (20,)}))[0])
    found = recipe.headline(tidy_table([(run, _rows(recipe, run))]))
    assert set(found) == {
        "attributes", "overhead_s", "evaluation_s", "peak_mib", "max_error", "mean_error",
    }  # fmt: skip
    assert 0 < found["mean_error"] < found["max_error"] < 1
    assert found["overhead_s"] > 0
