"""The MWEM paper's experiments, much reduced: what is computed is what the figures claim."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dualquery.rows.dataset import load
from dualquery.runtime.errors import BadInputError
from experiments import contingency, datacubes, factored, ranges
from experiments.contingency import Method
from experiments.harness.data_files import DataFiles
from experiments.harness.recipe import Choices, Recipe, Run
from experiments.harness.runner import tidy_table
from experiments.mwem_data_sets import (
    NUMERIC,
    contingency_table,
    exact_cells,
    numeric_table,
    read_patterns,
)
from mwem import relative_entropy
from tests.cases import domain_of

SHARED = Path(__file__).resolve().parents[3] / "../shared/data"
RECIPES = (ranges.RECIPE, contingency.RECIPE, datacubes.RECIPE, factored.RECIPE)
QUICK = Choices(quick=True, runs=1)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_quick_runs_are_plain_and_different(recipe: Recipe) -> None:
    runs = recipe.plan(QUICK)
    assert len({str(sorted(run.items(), key=str)) for run in runs}) == len(runs)
    assert all("path" not in run or run["path"] is None for run in runs)


@pytest.mark.parametrize(
    ("recipe", "missing"),
    [(ranges.RECIPE, "adult-train"), (contingency.RECIPE, "mildew"),
     (factored.RECIPE, "mcsherry-adult")],
    ids=lambda each: getattr(each, "name", each),
)  # fmt: skip
def test_the_full_forms_say_which_file_they_lack(recipe: Recipe, missing: str) -> None:
    with pytest.raises(BadInputError, match=f"--data: {missing} is needed.*Without it run --quick"):
        recipe.plan(Choices())


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rows", "sizes"),
    [
        ("Adult: capital loss", 30_162, [4_357]),
        ("Adult: age x hours", 30_162, [74, 99]),
        ("Transfusion: recency x frequency", 748, [75, 50]),
        ("Transfusion: monetary", 748, [50]),
    ],
)
def test_numeric_tables_have_their_shapes(name, rows, sizes) -> None:
    study = numeric_table(name, None)
    assert (study.data.n, study.data.schema.domain.sizes.tolist()) == (rows, sizes)
    assert ("stand-in" in study.title) == (NUMERIC[name].stand_in is not None)


@pytest.mark.parametrize(
    ("name", "rows", "bits"),
    [("mildew", 70, 6), ("rochdale", 665, 8), ("czech", 1_841, 6), ("nltcs", 21_574, 16)],
)
def test_stand_ins_say_so_and_have_their_shapes(name, rows, bits) -> None:
    study = contingency_table(name, None)
    assert study.title == f"{name} (stand-in)"
    assert (study.data.n, study.data.schema.domain.bits) == (rows, bits)


def test_real_tables_have_the_published_shapes() -> None:
    if not SHARED.is_dir():
        pytest.skip("the public tables are not beside the checkout")
    files = DataFiles((str(SHARED),))
    shapes = {"mildew": (70, 22), "rochdale": (665, 91), "czech": (1_841, 63)}
    for name, shape in shapes.items():
        cells = exact_cells(contingency_table(name, str(files.path(name, ""))).data)
        assert (cells.sum(), np.count_nonzero(cells)) == shape


def test_a_table_of_counts_is_read_cell_by_cell(tmp_path) -> None:
    file = tmp_path / "mildew.csv"
    file.write_text("a,b,count\nn,n,2\nn,y,0\ny,n,1\ny,y,4\n")
    cells = exact_cells(contingency_table("mildew", str(file)).data)
    assert cells.tolist() == [[2, 0], [1, 4]]
    file.write_text("a,b,count\nn,n,2\nn,y,x\ny,n,1\ny,y,4\n")
    contingency_table.cache_clear()
    with pytest.raises(BadInputError, match="the column count must hold whole numbers"):
        contingency_table("mildew", str(file))


@pytest.mark.parametrize(
    "text", ["0 1 1 2\n1 0 0 1\n", "a header\n011\t2\n100 1\n", "0,1,1\n0,1,1\n\n1,0,0\n"]
)
def test_patterns_with_and_without_counts(tmp_path, text) -> None:
    file = tmp_path / "survey.txt"
    file.write_text(text)
    assert read_patterns(file, 3).tolist() == [[0, 1, 1], [0, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("011 2\n01 1\n", "line 2: 3 values 0 or 1"), ("words\n", "no line has 3 values")],
)
def test_a_faulty_line_of_patterns_is_named(tmp_path, text, complaint) -> None:
    file = tmp_path / "survey.txt"
    file.write_text(text)
    with pytest.raises(BadInputError, match=complaint):
        read_patterns(file, 3)


# --- what is computed -----------------------------------------------------------------------------


def test_the_matrix_of_ranges_counts_what_the_ranges_count() -> None:
    study = numeric_table("Transfusion: recency x frequency", None)
    queries = ranges.random_ranges(study.data.schema.domain, 40)
    cells = np.zeros((75, 50))
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


def test_a_noisy_start_without_noise_is_the_table_itself() -> None:
    study = contingency_table("czech", None)
    method = Method(1, passes=1, start_share=0.9)
    fitted = contingency.fitted_table(study, 1, method, 1e6, 1)
    # A hundredth of the uniform distribution is mixed in.
    assert relative_entropy(exact_cells(study.data), fitted) < 0.01


def test_a_cube_is_the_product_of_its_potentials() -> None:
    generator = np.random.default_rng(1)
    sizes = np.array([2, 3, 4])
    model = datacubes.Potentials(sizes)
    expected = np.full((2, 3, 4), 1 / 24)
    np.testing.assert_allclose(model.table(), expected)
    for columns, shape in (((0, 1), (2, 3, 1)), ((1, 2), (1, 3, 4)), ((0, 1), (2, 3, 1))):
        target = generator.dirichlet(np.ones(int(np.prod(sizes[list(columns)])))).reshape(
            sizes[list(columns)]
        )
        off = target - model.marginal(columns)
        expected *= np.exp(off / 2).reshape(shape)
        expected /= expected.sum()
        with pytest.MonkeyPatch.context() as once:
            once.setattr(datacubes, "MOST_PASSES", 1)
            model.fit({columns: target}, error=0.0)
        np.testing.assert_allclose(model.table(), expected)
    np.testing.assert_allclose(model.marginal((0, 2)), expected.sum(axis=1))


def test_all_cuboids_are_marginals_each_once() -> None:
    whole = np.random.default_rng(1).random((2, 3, 2, 2))
    found = dict(datacubes.cuboids(whole))
    assert len(found) == len(list(datacubes.cuboids(whole))) == 16
    for columns, part in found.items():
        others = tuple(set(range(4)) - set(columns))
        np.testing.assert_allclose(part, whole.sum(axis=others))


def test_cuboids_are_asked_cell_by_cell_in_order() -> None:
    domain = domain_of(1, 3, 2)
    columns, workload = datacubes.asked_cuboids(domain, 6)
    assert columns == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    literals = workload.literals[:2]
    assert literals[literals >= 0].tolist() == [1, 0]
    assert len(workload) == 2 + 3 + 2 + 6 + 4 + 6


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
    if not SHARED.is_dir():
        pytest.skip("the authors' file is not beside the checkout")
    theirs = load(DataFiles((str(SHARED),)).source("mcsherry-adult", "")).records
    ours, counts = np.unique(rows, axis=0, return_counts=True)
    same, published = np.unique(theirs.dense_rows(0, theirs.n), axis=0, return_counts=True)
    np.testing.assert_array_equal(ours, same)
    published[0] -= 1  # the all-zero cell of the published file has a row too many
    np.testing.assert_array_equal(counts, published)


# --- findings -------------------------------------------------------------------------------------


def test_a_bound_above_the_error_is_a_finding() -> None:
    lines = [
        {"title": "t", "curve": curve, "at": epsilon, "squared_error": error}
        for curve, errors in ((ranges.MWEM, (5.0, 5.0)), (ranges.BOUND, (50.0, 10.0)))
        for epsilon, error in zip((0.1, 0.2), errors, strict=True)
    ]
    below, diminishing = ranges.expect(pl.DataFrame(lines))
    assert below.holds
    assert "10 at 0.1, 2 at 0.2" in below.found
    assert diminishing.holds


LARGE = ("nltcs", "Adult: capital loss", "Adult: age x hours")
"""Tables that are left out here."""


def small(recipe: Recipe) -> list[Run]:
    """Return runs that take a moment."""
    runs = [run for run in recipe.plan(QUICK) if run.get("table") not in LARGE]
    if recipe is not datacubes.RECIPE:
        return runs
    return [{**run, "attributes": "marital-status,relationship,race,sex"} for run in runs]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_quick_form_reaches_its_picture(recipe: Recipe) -> None:
    took = {"run_seconds": 1.0, "run_cpu_seconds": 1.0, "peak_mib": 100.0} if recipe.timed else {}
    table = tidy_table(
        (run, [{**row, **took} for row in recipe.perform(run, 1)]) for run in small(recipe)
    )
    assert len(recipe.summarise(table))
    findings = recipe.expect(table)
    assert findings
    assert all(finding.text().startswith("expected ") for finding in findings)
    pytest.importorskip("matplotlib")
    from experiments.harness.style import styled

    with styled(recipe.name):
        assert recipe.draw is not None
        assert recipe.draw(table)
