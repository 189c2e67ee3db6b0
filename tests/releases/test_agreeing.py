"""Records agree with bought means: shares by least squares, records exchanged for like ones."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

import dualquery
from dualquery.data.domain import Domain
from dualquery.data.schema.columns import Categorical, Numeric
from dualquery.data.schema.table import TableSchema
from dualquery.releases.agreeing import nearest_shares
from dualquery.releases.exchange import with_shares


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_the_nearest_that_have_the_mean(seed: int) -> None:
    generator = np.random.default_rng(seed)
    own, means = generator.dirichlet(np.ones(6)), generator.normal(0, 10, 6)
    own[2], own[3] = 0.0, own[3] + own[2]
    variances = np.where(own > 0, generator.uniform(0.1, 1, 6), 0.0)
    mean = float(own @ means + 0.2 * np.ptp(means[own > 0]) * generator.choice([-1, 1]))
    mean = float(np.clip(mean, means[own > 0].min(), means[own > 0].max()))
    found = nearest_shares(own, variances, means, mean)
    assert found.sum() == pytest.approx(1.0)
    assert found @ means == pytest.approx(mean)
    assert found.min() >= 0
    assert found[2] == 0
    may = variances > 0
    best = minimize(
        lambda shares: ((shares - own[may]) ** 2 / variances[may]).sum(),
        own[may],
        bounds=[(0, 1)] * may.sum(),
        constraints=[
            {"type": "eq", "fun": lambda shares: shares.sum() - 1.0},
            {"type": "eq", "fun": lambda shares: shares @ means[may] - mean},
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert ((found - own)[may] ** 2 / variances[may]).sum() <= best.fun * (1 + 1e-4) + 1e-9


def test_shares_go_no_further_than_they_may() -> None:
    own = np.array([0.5, 0.5, 0.0])
    kept = nearest_shares(own, np.zeros(3), np.arange(3.0), 0.7)
    np.testing.assert_array_equal(kept, own)
    np.testing.assert_array_equal(nearest_shares(own, own, np.ones(3), 0.7), own)
    beyond = nearest_shares(own, own, np.arange(3.0), 1.5)
    np.testing.assert_allclose(beyond, [0, 1, 0])


def test_records_are_exchanged_for_copies_that_are_alike() -> None:
    """The rare value goes with its group; the other columns keep their shares."""
    generator = np.random.default_rng(0)
    group = generator.integers(0, 4, 5_000)
    rare = (group == 3) & (generator.random(5_000) < 0.1)
    value = np.where(rare, 2, generator.integers(0, 2, 5_000))
    flags = generator.integers(0, 2, (5_000, 3))
    domain = Domain(np.array([0, 1, 2, 3, 7, 10]))
    records = np.concatenate([flags, np.eye(4)[group], np.eye(3)[value]], axis=1).astype(np.uint8)
    share = rare.mean()
    for wanted in (share / 2, 2 * share):
        shares = np.array([(1 - wanted) / 2, (1 - wanted) / 2, wanted])
        found = with_shares(records, domain, 4, shares, generator)
        counts = found.sum(axis=0)
        np.testing.assert_allclose(counts[7:], shares * 5_000, atol=1)
        assert found[found[:, 9] == 1, 6].all()
        assert np.abs(counts[:7] - records.sum(axis=0)[:7]).max() <= 15
        assert {*map(bytes, found)} <= {*map(bytes, records)}
    absent = with_shares(records[~rare], domain, 4, np.array([0.25, 0.25, 0.5]), generator)
    assert absent[:, 9].sum() == 0
    np.testing.assert_allclose(absent[:, 7:9].mean(axis=0), 0.5, atol=1e-3)


@pytest.mark.parametrize("mechanism", ["matrix", "independent", "dualquery"])
def test_means_hold_where_numbers_of_buckets_are_stated(mechanism: str, tmp_path) -> None:
    """The schema leaves no number open, so only the shares of the buckets can give way."""
    generator = np.random.default_rng(2)
    gain = generator.choice([0.0, 50.0, 9_999.0], 3_000, p=[0.9, 0.08, 0.02])
    sex = np.where(generator.random(3_000) < 0.3 + 0.6 * (gain > 100), "m", "f")
    table = pl.DataFrame({"gain": gain, "sex": sex})
    stated = Numeric("gain", (0.0, 1.0, 100.0, 10_000.0), within=(0.0, 50.0, 9_999.0))
    schema = TableSchema((stated, Categorical("sex", (("f",), ("m",)))), declared=True)
    made = dualquery.release(
        table, schema=schema, queries="all", way=2, means="gain", mechanism=mechanism, epsilon=2.0
    )
    again = dualquery.load_release(made.save(tmp_path / "release"))
    likely = again.answer("mean(gain)")
    assert again.synthetic is not None
    rounding = 9_999 * (1 / len(again.synthetic) + 1 / 6_000)  # a record more or less, in each
    for rows in (again.synthetic, again.sample(6_000, seed=0)):
        assert float(rows["gain"].mean()) == pytest.approx(likely, abs=rounding)
        assert {*rows["gain"]} <= {0.0, 50.0, 9_999.0}


def test_answers_and_records_have_a_mean_each_by_their_own_shares() -> None:
    """The model's shares of buckets are not those of the records that were exchanged."""
    generator = np.random.default_rng(4)
    years = np.floor(generator.gamma(4.0, 10.0, 4_000)).clip(0, 99)
    sex = np.where(generator.random(4_000) < years / 100, "f", "m")
    schema = TableSchema(
        (
            Numeric("age", tuple(range(0, 101, 10)), integer=True),
            Categorical("sex", (("f",), ("m",))),
        ),
        declared=True,
    )
    table = pl.DataFrame({"age": years.astype(int), "sex": sex})
    asked = {"schema": schema, "queries": "all", "way": 2, "means": "age", "seed": 3}
    made = dualquery.release(table, **asked, epsilon=0.2)
    bought = made.answer("mean(age)")
    assert made.synthetic is not None
    assert float(made.synthetic["age"].mean()) == pytest.approx(bought, rel=2e-3)
    assert made.answer("mean(age) given age>=0") == pytest.approx(bought, rel=2e-3)
    assert made.records is not None
    assert made.model is not None
    shares = np.array([made.answer(f"age={label}") for label in schema.column("age")[1].labels])
    assert np.abs(shares - made.records.mean(axis=0)[:10]).max() > 1e-3
