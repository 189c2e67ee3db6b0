"""The MWEM paper's experiments, much reduced: what is computed is what the figures claim."""

import numpy as np
import pytest

from experiments import contingency, datacubes, factored, ranges
from experiments.contingency import Method
from experiments.harness.recipe import Choices, Recipe, Run
from experiments.harness.runner import tidy_table
from experiments.mwem_data_sets import contingency_table, exact_cells, numeric_table, read_patterns
from mwem import relative_entropy

RECIPES = (ranges.RECIPE, contingency.RECIPE, datacubes.RECIPE, factored.RECIPE)
QUICK = Choices(quick=True, runs=1)


@pytest.mark.parametrize(
    "text", ["0 1 1 2\n1 0 0 1\n", "a header\n011\t2\n100 1\n", "0,1,1\n0,1,1\n\n1,0,0\n"]
)
def test_patterns_with_and_without_counts(tmp_path, text) -> None:
    (file := tmp_path / "survey.txt").write_text(text)
    assert read_patterns(file, 3).tolist() == [[0, 1, 1], [0, 1, 1], [1, 0, 0]]


def test_the_matrix_of_ranges_counts_what_the_ranges_count() -> None:
    study = numeric_table("Transfusion: recency x frequency", None)
    queries, cells = ranges.random_ranges(study.data.schema.domain, 40), np.zeros((75, 50))
    rows = study.data.records.dense_rows(0, study.data.n)
    np.add.at(cells, (rows[:, :75].argmax(axis=1), rows[:, 75:].argmax(axis=1)), 1)
    matrix = ranges.indicator_matrix(queries)
    np.testing.assert_array_equal(matrix @ cells.ravel(), queries.counts(study.data.records, 1))


def test_mwem_without_noise_is_near_the_fit_to_exact_marginals() -> None:
    """With all 21 pairs measured at a huge epsilon, both methods find the maximum entropy."""
    study = contingency_table("czech", None)
    truth = exact_cells(study.data)
    exact = relative_entropy(truth, contingency.noiseless_table(study, 2))
    for method in (Method(21, passes=200), Method(None, passes=300)):
        fitted = contingency.fitted_table(study, 2, method, 1e6, 1)
        assert fitted.sum() == pytest.approx(1)
        assert relative_entropy(truth, fitted) == pytest.approx(exact, abs=0.002)


def test_mwem_on_cuboids_beats_the_uniform_cube() -> None:
    data = datacubes.table("adult", None, "workclass,race,sex")
    with pytest.MonkeyPatch.context() as fewer:
        fewer.setattr(datacubes, "ITERATIONS", 3)
        model, measured = datacubes.mwem_cube(data, 10.0, 1)
    truth = exact_cells(data) / data.n
    uniform = np.full(truth.shape, 1 / truth.size)
    assert len(measured) == 3
    assert np.abs(model.table() - truth).sum() < 0.5 * np.abs(uniform - truth).sum()


def test_binary_adult_is_coded_as_the_authors_file() -> None:
    rows = factored.binary_adult()
    assert rows.shape == (30_162, 27)
    # The first person of each category gets the next code: all are 0 in the first row.
    assert not rows[0].any()


LARGE = ("nltcs", "Adult: capital loss", "Adult: age x hours")  # tables that are left out here


def small(recipe: Recipe) -> list[Run]:
    """Return runs that take a moment."""
    runs = [run for run in recipe.plan(QUICK) if run.get("table") not in LARGE]
    if recipe is not datacubes.RECIPE:
        return runs
    return [{**run, "attributes": "marital-status,relationship,race,sex"} for run in runs]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_quick_form_reaches_its_picture(recipe: Recipe) -> None:
    took = {"run_seconds": 1.0, "run_cpu_seconds": 1.0, "peak_mib": 100.0} if recipe.timed else {}
    brief = {"iterations": 2} if recipe is factored.RECIPE else {}
    table = tidy_table(
        (run, [{**row, **took} for row in recipe.perform({**run, **brief}, 1)])
        for run in small(recipe)
    )
    assert len(recipe.summarise(table))
    findings = recipe.expect(table)
    assert findings
    assert all(finding.text().startswith("expected ") for finding in findings)
    pytest.importorskip("matplotlib")
    from experiments.harness.style import styled

    with styled(recipe.name):
        assert recipe.draw(table)
