"""Least squares over noisy numbers: unbiased, of least variance, and as far off as they say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from dualquery.data.domain import Domain, axis_sizes, rows_of_values
from dualquery.estimates.cell_evidence import Measured
from dualquery.estimates.intervals import Total
from dualquery.estimates.least_squares import LeastSquares, fieller
from dualquery.estimates.measurements import Measurements
from tests.cases import functionals, on_cells

DOMAIN = Domain(np.array([0, 3, 4, 6, 10, 11]))
"""Columns of 3, 2 (binary), 2, 4 and 2 (binary) values."""
SIZES = tuple(axis_sizes(DOMAIN).tolist())
CELLS = np.indices(SIZES).reshape(len(SIZES), -1).T
RECORDS = rows_of_values(CELLS, DOMAIN)
SHARES = np.random.default_rng(5).dirichlet(np.full(len(CELLS), 0.3))


def literal(column: int, value: int) -> int:
    first = int(DOMAIN.offsets[column])
    return 2 * first + (value == 0) if DOMAIN.sizes[column] == 1 else 2 * (first + value)


def marginal(*columns: int) -> np.ndarray:
    """Return the cells of a marginal as conjunctions."""
    cells = np.indices([SIZES[c] for c in columns]).reshape(len(columns), -1).T
    return np.array([[literal(c, v) for c, v in zip(columns, cell, strict=True)] for cell in cells])


def without_noise(lists: list[list[int]], deviations: np.ndarray) -> Measurements:
    """Return measurements of lists of factors, all 0."""
    zeros = np.zeros(len(lists))
    return Measurements(
        np.concatenate(([0], np.cumsum([len(each) for each in lists]))).astype(np.int64),
        np.concatenate(lists).astype(np.int32),
        np.full(len(lists), -1, np.int32),
        zeros, deviations, zeros, "gaussian",
    )  # fmt: skip


def features() -> Measurements:
    """Return indicators and signs, and products of them, without noise yet."""
    lists = [
        *([2 * bit] for bit in (0, 1, 2, 6, 7, 8, 9)),
        *([-bit - 1] for bit in (3, 4, 10)),
        *([2 * a, 2 * b] for a in (0, 1, 2) for b in (6, 7, 8, 9)),
        *([2 * a, -b - 1] for a in (0, 1, 2) for b in (3, 4)),
        *([-4, -5], [2 * 6, -4, -11], [2 * 1, 2 * 7, -11]),
    ]
    return without_noise(lists, np.linspace(0.01, 0.03, len(lists)))


def blocks() -> Measurements:
    """Return whole blocks of contrasts, and a few cells of a set of columns, without noise yet."""
    cells = marginal(0, 2, 3)[::2].tolist()
    lists = [
        *([-bit - 1] for bit in (0, 1, 2, 3, 4, 6, 7, 8, 9)),
        *([-a - 1, -b - 1] for a in (0, 1, 2) for b in (6, 7, 8, 9)),
        *([-a - 1, -b - 1] for a in (0, 1, 2) for b in (3, 4)),
        *cells,
    ]
    return without_noise(lists, np.repeat([0.01, 0.02, 0.03], [9, 18, len(cells)]))


def noisy(plain: Measurements, generator: np.random.Generator) -> Measurements:
    """Return measurements of the table with noise."""
    true = functionals(plain, RECORDS, DOMAIN) @ SHARES
    if plain.noise == "gaussian":
        noise = generator.normal(size=len(plain))
    else:
        noise = generator.laplace(size=len(plain)) / math.sqrt(2)
    return replace(plain, values=true + plain.deviations * noise)


def marginals(noise="gaussian") -> Measurements:
    parts = marginal(0, 1, 3), marginal(0, 2), marginal(3, 4), marginal(3, 2, 1)
    filled = [np.pad(e, ((0, 0), (0, 3 - e.shape[1])), constant_values=-1) for e in parts]
    rows = np.concatenate(filled).astype(np.int32)
    return Measurements.of_codes(rows, np.zeros(len(rows)), 0.02, noise)


def solver(plain: Measurements, columns, *, known: bool = True, seed: int = 0) -> LeastSquares:
    evidence = Measured(noisy(plain, np.random.default_rng(seed)), DOMAIN).about(columns)
    return LeastSquares(evidence, known)


def true_cells(columns) -> np.ndarray:
    table = SHARES.reshape(SIZES)
    return table.sum(axis=tuple(c for c in range(len(SIZES)) if c not in columns)).ravel()


@pytest.mark.parametrize("columns", [(0,), (1, 3), (0, 1, 3), (0, 2, 3)])
@pytest.mark.parametrize(
    "plain", [features(), marginals(), blocks()], ids=["features", "marginals", "blocks"]
)
def test_evidence_is_of_the_cells(plain: Measurements, columns) -> None:
    """Without noise every number is its functional of the cells, sums over other columns too."""
    exact = replace(plain, values=functionals(plain, RECORDS, DOMAIN) @ SHARES)
    evidence = Measured(exact, DOMAIN).about(columns)
    np.testing.assert_allclose(on_cells(evidence) @ true_cells(columns), evidence.values)
    assert len(evidence.values) >= sum(SIZES[c] - 1 for c in columns)
    lost = replace(exact, values=0.9 * exact.values + 0.025, absent=exact.absent + 0.25)
    evidence = Measured(lost, DOMAIN).about(columns)
    unknown = replace(lost, values=lost.values + 9.0, absent=np.full(len(lost), np.nan))
    rows_alone = Measured(Measurements.joined([lost, unknown]), DOMAIN, True).about(columns)
    np.testing.assert_array_equal(rows_alone.values, evidence.values)
    evidence = evidence.with_total(Total("rows", "measured", 10, 9.0, 1.0))  # 1 is absent
    np.testing.assert_allclose(on_cells(evidence) @ true_cells(columns) * 0.9, evidence.values)


def test_sums_over_other_columns_are_used_once() -> None:
    evidence = Measured(marginals("discrete laplace"), DOMAIN).about((0,))
    # The means of those from {0, 1, 3}, 8 cells each, and from {0, 2}, 2 cells each.
    np.testing.assert_allclose(evidence.deviations, 0.02 / math.sqrt(1 / 8 + 1 / 2))
    np.testing.assert_allclose(evidence.kurtosis, 3 * (8 * 0.2**4 + 2 * 0.8**4) / 1.6**2)
    assert sorted(on_cells(evidence).tolist()) == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    missing = marginals()
    most = Measurements.of_codes(
        missing.factors[:27].reshape(-1, 3)[:-1], np.zeros(8), 0.02
    )  # one cell of {0, 1, 3} too few for its last value of column 0
    assert len(Measured(most, DOMAIN).about((0,)).values) == 1


@pytest.mark.parametrize("total", ["known", "private", "measured"])
@pytest.mark.parametrize("columns", [(0, 1, 3), (1, 2, 3)])
def test_no_unbiased_combination_has_less_variance(columns, total: str) -> None:
    """Against the textbook: minimise v' S v with A' v = f, by the equations of Lagrange."""
    for plain in (features(), marginals(), blocks()):
        plain = replace(plain, absent=np.where(np.arange(len(plain)) % 2, 0.0, 0.25))
        evidence = Measured(noisy(plain, np.random.default_rng(1)), DOMAIN).about(columns)
        if total == "measured":
            evidence = evidence.with_total(Total("rows", "measured", 1000, 900.0, 30.0))
        lines, known = on_cells(evidence), total == "known"
        count, cells = lines.shape
        if known:  # the total as one more number, without noise
            lines = np.vstack((lines, np.ones(cells)))
        variance = np.append(evidence.deviations**2, [0.0] * known)
        values = np.append(evidence.values, [1.0] * known)
        f = np.random.default_rng(2).normal(size=(3, count)) @ lines[:count]
        system = np.block([[np.diag(variance), lines], [lines.T, np.zeros((cells, cells))]])
        sides = np.concatenate((np.zeros((len(variance), 3)), f.T))
        v = np.linalg.lstsq(system, sides, rcond=None)[0][: len(variance)]
        found = LeastSquares(evidence, known).estimate(f)
        assert found.spanned.all()
        np.testing.assert_allclose(found.values, v.T @ values, rtol=1e-8)
        np.testing.assert_allclose(found.covariance, v.T @ (variance[:, None] * v), rtol=1e-6)


def test_what_was_not_measured_is_outside_the_span() -> None:
    cell = np.zeros((1, 24))
    cell[0, 5] = 1.0
    one_way = np.repeat(np.eye(3), 8, axis=1)
    plain = replace(features(), absent=np.full(len(features()), np.nan))
    asked = np.concatenate((cell, one_way))
    found = solver(plain, (0, 1, 3)).estimate(np.concatenate((asked, 1e9 + asked)))
    assert found.spanned.tolist() == [False, True, True, True] * 2
    assert np.isnan(found.absent).all()


@pytest.mark.parametrize("noise", ["gaussian", "discrete laplace"])
def test_intervals_cover_as_often_as_they_say(noise) -> None:
    """100 tables of noise; at 95% one of 60 functions is rejected with chance 0.001."""
    columns = (0, 1, 3)
    truth, generator = true_cells(columns), np.random.default_rng(11)
    plain = marginals(noise) if noise != "gaussian" else features()
    trial = on_cells(solver(plain, columns)._evidence)
    functions = generator.choice([0.0, 0.0, 1.0, -1.0], (30, trial.shape[0])) @ trial
    covered, critical = np.zeros((100, 30), bool), 0.0
    for draw in range(100):
        found = solver(plain, columns, seed=100 + draw).estimate(functions)
        assert found.spanned.all()
        spread = np.sqrt(np.diag(found.covariance))
        each = [found.critical(0.95, unit) for unit in np.eye(30)]
        covered[draw] = np.abs(found.values - functions @ truth) <= np.array(each) * spread
        critical = max(critical, *each)
        assert found.times(1e-90).critical(0.95) == pytest.approx(each[0])
    assert 0.93 <= covered.mean() <= (0.97 if noise == "gaussian" else 0.975)
    assert covered.sum(axis=0).min() >= binom.ppf(0.001 / 60, 100, 0.95)
    assert (critical > 1.97) == (noise != "gaussian")


def test_a_ratio_has_the_interval_of_fieller() -> None:
    """4,000 pairs of correlated estimates, the denominator 5 deviations from 0."""
    covariance = np.array([[0.04, 0.01], [0.01, 0.04]])
    drawn = np.random.default_rng(0).multivariate_normal((0.5, 1.0), covariance, 4_000)
    found = [fieller(a, b, covariance, 1.96) for a, b in drawn]
    held = [between is None or between[0] <= 0.5 <= between[1] for between in found]
    assert abs(np.mean(held) - 0.95) < 4 * math.sqrt(0.05 * 0.95 / 4_000)
    assert fieller(0.1, 0.1, covariance, 1.96) is None
    assert fieller(1.0, 2.0, np.zeros((2, 2)), 1.96) == (0.5, 0.5)
