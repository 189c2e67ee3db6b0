"""Releases of weighted answers: near the weighted truth, and confirmed as what they protect."""

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery import Weight
from dualquery.verification import verify
from tests.tables import SCHEMA, people
from tests.verification.test_verify import edit, put

TEN = Weight("w", max=10)
ASKED = {"schema": SCHEMA, "queries": ["sex=Male", "flag & sex=Female", "!flag"]}


def weighted(rows: int = 2000) -> pl.DataFrame:
    generator, table = np.random.default_rng(5), people(rows)
    weights = np.where(table["sex"] == "Male", 8.0, 1.0) * generator.uniform(0.5, 1.5, rows)
    return table.with_columns(w=weights, home=generator.integers(0, 500, rows))


def truth() -> np.ndarray:
    table = weighted()
    w = np.minimum(table["w"].to_numpy(), 10)
    male, flag = table["sex"].to_numpy() == "Male", table["flag"].to_numpy() == 1
    return np.array([w[male].sum(), w[flag & ~male].sum(), w[~flag].sum()]) / w.sum()


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["dualquery", "mwem"])
def test_answers_are_shares_of_the_total_weight(mechanism, neighbours, tmp_path) -> None:
    delta = None if neighbours == "replace-one" else 1e-7
    options = {"mwem": {"iterations": 3}, "dualquery": {"rounds": 20, "samples": 99}}[mechanism]
    made = dualquery.release(
        weighted(), mechanism=mechanism, options=options, epsilon=50.0, delta=delta,
        neighbours=neighbours, weight=TEN, **ASKED,
        accountant="zcdp" if mechanism == "dualquery" else "auto",
    )  # fmt: skip
    assert np.abs(made.answers - truth()).max() < 0.05
    assert made.privacy.guarantee().startswith("Conditional on the weights in column 'w' as given")
    assert "weighted by column 'w' up to 10" in made.privacy.neighbours
    assert made.privacy.neighbours.endswith("the total weight released with noise")
    if delta is None and mechanism != "mwem":
        assert made.privacy.delta == pytest.approx(1 / 2000**2)
    assert {"w"}.isdisjoint(made.schema.column_names)
    folder = made.save(tmp_path / "made")
    assert verify(folder).faults == ()
    found = dualquery.evaluate(folder, weighted())
    assert found["max_error"] == pytest.approx(np.abs(made.answers - truth()).max(), abs=2e-3)
    total = np.minimum(weighted()["w"].to_numpy(), 10).sum()
    assert found["rows"] == pytest.approx(total, rel=0.01)
    if made.records is not None and mechanism != "dualquery":
        assert len(made.records) < 2000


@pytest.mark.parametrize(
    "change",
    [
        put("proof", "weight", "copies", 2),
        put("proof", "weight", "max", 100.0),
        put("proof", "weight", None),
        put("proof", "rows", "bought", "sensitivity", 1.0),
        put("options", "weight", None),
        lambda s: s["privacy"].pop("condition"),
    ],
    ids=["copies", "max", "no weight", "rows", "options", "condition"],
)
def test_what_does_not_agree_is_found(change, tmp_path) -> None:
    made = dualquery.release(weighted(), mechanism="gaussian", weight=TEN, epsilon=9.0, **ASKED)
    folder = made.save(tmp_path / "made")
    edit(folder, change, seal=True)
    found = verify(folder)
    assert found.refuted
    assert not found.damaged
