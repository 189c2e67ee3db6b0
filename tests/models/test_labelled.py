"""A mixture whose target is drawn by a logistic model: chances, records, files, and the fit."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dualquery.data.domain import Domain, axis_sizes, column_values, rows_of_values
from dualquery.mechanisms.adaptive.labels import with_labels
from dualquery.models.labelled import LabelledMixture, cells_of_pairs
from dualquery.models.mixture import ProductMixture
from dualquery.models.model import read_model, write_model
from dualquery.queries.generate.workloads import target_marginals
from dualquery.runtime.progress import NO_PROGRESS
from tests.cases import records_of

DOMAIN = Domain(np.array([0, 1, 4, 6, 9]))
PAIRS = np.array([[0, 1], [0, 3]])


def mixture() -> ProductMixture:
    generator = np.random.default_rng(0)
    columns = [generator.dirichlet(np.ones(max(size, 2)), 3).T for size in DOMAIN.sizes]
    chances = [c[:1] if size == 1 else c for c, size in zip(columns, DOMAIN.sizes, strict=True)]
    return ProductMixture(DOMAIN, np.array([1.0, 2.0, 1.0]), np.vstack(chances).astype(np.float32))


def labelled(target: int = 2) -> LabelledMixture:
    sizes = axis_sizes(DOMAIN)
    cells = int(sizes[PAIRS].prod(axis=1).sum())
    coefficients = np.random.default_rng(1).normal(0, 2, (cells, sizes[target]))
    base = mixture()
    return LabelledMixture(
        DOMAIN, base.weights, base.chances, np.array(target), PAIRS,
        coefficients.astype(np.float32),
    )  # fmt: skip


def test_chances_are_those_of_the_definition() -> None:
    model, sizes = labelled(), axis_sizes(DOMAIN)
    values = np.array([*itertools.product(*map(range, sizes.tolist()))])
    cells = cells_of_pairs(values, PAIRS, DOMAIN)
    assert cells[:, 0].max() < sizes[0] * sizes[1] <= cells[:, 1].min()
    found = model.chances_of_target(values)
    for row in (0, 7, len(values) - 1):
        a, b, _, c = values[row]
        second = model.coefficients[sizes[0] * sizes[1] + a * sizes[3] + c]
        expected = np.exp(model.coefficients[a * sizes[1] + b].astype(float) + second)
        np.testing.assert_allclose(found[row], expected / expected.sum(), rtol=1e-5)


def test_targets_are_rounded_in_every_cell_of_every_pair() -> None:
    """Off by less than 2; single draws of 70,000 records, two blocks, would be off by 40 or so."""
    model = labelled()
    values = column_values(model.sample(70_000, np.random.default_rng(4)), DOMAIN)
    owed = model.chances_of_target(values) - np.eye(2)[values[:, 2]]
    for cells in cells_of_pairs(values, PAIRS, DOMAIN).T:
        assert all(np.abs(np.bincount(cells, owed[:, value])).max() < 2 for value in range(2))
    again = column_values(model.sample(0, np.random.default_rng(4)), DOMAIN)
    assert again.shape == (0, DOMAIN.columns)


def test_a_file_gives_the_model_back_and_a_wrong_one_is_refused(tmp_path) -> None:
    model = labelled()
    write_model(model, tmp_path / "model.npz")
    again = read_model(tmp_path / "model.npz", DOMAIN)
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    base = model.arrays()
    for wrong in (
        {"target": np.array(9)},
        {"target": np.array(0)},
        {"pairs": np.array([[0, 9]])},
        {"coefficients": model.coefficients[:-1]},
        {"coefficients": model.coefficients * np.float32(np.nan)},
    ):
        with pytest.raises(ValueError, match=r"target|coefficients"):
            LabelledMixture(DOMAIN, **{**base, **wrong})


def test_the_fit_finds_a_logistic_law_and_keeps_the_marginals() -> None:
    """The target depends on two columns, and the mixture says that it does on none."""
    generator, domain = np.random.default_rng(3), Domain(np.array([0, 3, 6, 9, 11]))
    n, target = 40_000, 3
    values = np.column_stack([generator.integers(0, 3, (n, 3)), np.zeros(n, int)])
    chance = 1 / (1 + np.exp(-(1.5 * (values[:, 0] == 2) - 1.5 * (values[:, 1] == 0))))
    values[:, target] = generator.random(n) < chance
    rows, workload = rows_of_values(values, domain), target_marginals(domain, target)
    chances = np.repeat([1 / 3, 1 / 2], [9, 2])[:, None].astype(np.float32)
    flat = ProductMixture(domain, np.ones(1), chances)
    deviation, noisy = 30.0 / n, workload.counts(records_of(rows), 1) / n
    noisy = noisy + deviation * generator.standard_normal(len(noisy))
    deviations = np.full(len(noisy), deviation)
    found = with_labels(flat, workload, noisy, deviations, n, generator, NO_PROGRESS.step)
    assert np.abs(found.chances_of_target(values[:2000])[:, 1] - chance[:2000]).mean() < 0.04
    off = workload.answers_on(found.sample(n, generator)) - workload.counts(records_of(rows), 1) / n
    assert np.sqrt((off**2).mean()) < 0.006
    other = replace(workload, description={"kind": "a list"})
    assert with_labels(flat, other, noisy, deviations, n, generator, NO_PROGRESS.step) is flat


def test_rare_values_of_the_target_stay_rare() -> None:
    """Many noisy cells pulled all values towards equal chances: .07 for .005."""
    generator, domain = np.random.default_rng(5), Domain(np.array([0, 6, 11, 16, 21, 26]))
    shares = np.array([0.4, 0.3, 0.2, 0.09, 0.006, 0.004])
    flat = ProductMixture.single(domain, np.concatenate((shares, np.full(20, 0.2))))
    workload, n = target_marginals(domain, 0), 6000
    deviations = np.full(len(workload), 0.003)
    noisy = flat.answers(workload) + deviations * generator.standard_normal(len(workload))
    found = with_labels(flat, workload, noisy, deviations, n, generator, NO_PROGRESS.step)
    drawn = np.bincount(column_values(found.sample(n, generator), domain)[:, 0], minlength=6) / n
    np.testing.assert_allclose(drawn, shares, atol=0.01)
    assert drawn[4:].max() < 0.012
