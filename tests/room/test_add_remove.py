"""Neighbours by adding or removing a record: what moves, what n is taken to be, what is told."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dualquery
from dualquery.checkpoints.checkpoint import Checkpoint, CheckpointLines
from dualquery.data.domain import Domain
from dualquery.data.schema.columns import Binary
from dualquery.data.schema.table import TableSchema
from dualquery.mechanisms.registry import configure
from dualquery.privacy.events import LaplaceNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.tabulated import HistogramQueries
from dualquery.requests import BudgetRequest
from dualquery.room.curator import Curator
from dualquery.room.noise.laplace import Laplace
from dualquery.room.row_count import COUNT_SHARE, RowCount, buy_row_count
from dualquery.room.sensitivity.moves import count_moves
from dualquery.room.statistics import AllQueries
from dualquery.runtime.errors import BadInputError
from dualquery.verification import verify
from tests.cases import domain_of, records_of
from tests.noise import NoNoise
from tests.tables import SCHEMA, people, random_records

AR = Neighbours.ADD_REMOVE
SIGNED = Workload(
    np.array([[1, 3], [3, 5], [0, 2], [1, 9], [4, 8], [5, -1], [0, -1], [1, -1], [3, 7]], np.int32),
    domain_of(1, 1, 3),
)


def measured(rows, n: int) -> np.ndarray:
    """Return what the room measures without noise, for a public number of rows."""
    schedule = (LaplaceNoise(count_moves(SIGNED, AR).l1),)
    room = Curator(records_of(rows), SIGNED, schedule, NoNoise(0), neighbours=AR, public_rows=n)
    return room.measure(AllQueries(), Laplace(1.0))


def test_without_noise_complements_give_the_counts_themselves() -> None:
    rows = random_records(SIGNED.domain, 40, np.random.default_rng(1))
    counts = SIGNED.counts(records_of(rows), threads=1)
    np.testing.assert_array_equal(measured(rows, 40), counts)
    # A public number of rows that is too large by 3 shows where the complement was counted.
    assert set((measured(rows, 43) - counts).tolist()) == {0, 3}


def test_the_room_needs_a_public_number_of_rows() -> None:
    records = records_of(np.zeros((3, 2), np.uint8))
    workload = Workload(np.array([[0]], np.int32), Domain.binary(2))
    with pytest.raises(ValueError, match="a public number of rows is needed"):
        Curator(records, workload, (), NoNoise(0), neighbours=AR)
    with pytest.raises(ValueError, match="there are 3 rows, not 4"):
        Curator(records, workload, (), NoNoise(0), public_rows=4)


def test_the_noisy_number_of_rows_is_geometric_around_the_true_one() -> None:
    """Mean and deviation of 4,000 draws: six deviations are a false alarm of 1e-8."""
    records = records_of(np.zeros((5000, 1), np.uint8))
    epsilon = 2.0
    counts = [buy_row_count(records, epsilon, seed) for seed in range(4000)]
    noise = np.array([count.n - 5000 for count in counts])
    share = COUNT_SHARE * epsilon
    deviation = math.sqrt(2 * math.exp(-share)) / -math.expm1(-share)
    assert abs(noise.mean()) < 6 * deviation / math.sqrt(4000)
    assert noise.std() == pytest.approx(deviation, rel=0.12)
    assert {count.epsilon for count in counts} == {share}
    assert {count.events for count in counts} == {(LaplaceNoise(share),)}


def test_what_is_left_adds_up_to_no_more_than_the_budget() -> None:
    for epsilon in (0.1, 0.3, 1.0, 7.0, 1 / 3):
        count = RowCount(100, AR, COUNT_SHARE * epsilon)
        assert count.epsilon + count.rest(epsilon) <= epsilon
        assert count.rest(epsilon) > 0.95 * epsilon
    assert RowCount(100, AR).rest(1.0) == RowCount(100).rest(1.0) == 1.0


def test_too_few_rows_for_their_noise() -> None:
    with pytest.raises(BadInputError, match=r"noisy number of rows is -?\d.* cost epsilon 0\.04"):
        buy_row_count(records_of(np.zeros((1, 1), np.uint8)), 1.0, 4)


def test_delta_needs_a_number_of_rows_that_is_no_noise() -> None:
    records = records_of(np.zeros((5000, 1), np.uint8))
    gaussian, laplace = configure("gaussian", {}), configure("laplace", {})
    noisy = BudgetRequest(neighbours="add-remove")
    with pytest.raises(BadInputError, match="give --delta, or state a number of rows with --rows"):
        noisy.require_delta(gaussian)
    weighted = replace(noisy, rows=4000, weight=dualquery.Weight("w", max=2.0))
    with pytest.raises(BadInputError, match="give --delta"):  # a total of weights counts no rows
        weighted.require_delta(gaussian)
    noisy.require_delta(laplace)
    stated = BudgetRequest(neighbours="add-remove", rows=4000)
    budget, _ = stated.resolve(gaussian, stated.count_rows(records, None))
    assert (budget.epsilon, budget.delta, budget.neighbours) == (1.0, 1 / 4000**2, AR)
    bought = BudgetRequest(neighbours="add-remove", delta=1e-6)
    count = bought.count_rows(records, 1)
    assert count.n != 5000
    budget, _ = bought.resolve(gaussian, count)
    assert budget.epsilon == pytest.approx(1 - COUNT_SHARE)


TRUE_ROWS = 7919
MECHANISMS = {
    "dualquery": {"samples": 20, "rounds": 12},
    "gaussian": {},
    "laplace": {},
    "independent": {"records": 50},
    "mwem": {"iterations": 3},
    "mwem-sampled": {"rounds": 3, "population": 500},
    "barak": {"fit": "none"},
    "matrix": {},
    "staged": {},
    "probed": {},
    "uniform": {},
}


def numbers_in(value) -> set[float]:
    """Return all numbers in JSON-able data, and in arrays."""
    if isinstance(value, np.ndarray):
        held = value.astype(float).ravel().tolist() if value.dtype.kind in "iuf" else ()
        return {value.size, *value.shape, *held}
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return set().union(*map(numbers_in, value))
    return {float(value)} if isinstance(value, int | float) else set()


@pytest.fixture(scope="module")
def table():
    return people(TRUE_ROWS)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("rows", [None, 8000])
def test_a_release_holds_no_true_number_of_rows(name, rows, table, tmp_path: Path) -> None:
    made = None
    while made is None or TRUE_ROWS in (made.n, int(made.base.estimate)):  # one in fifty is
        made = dualquery.release(
            table, schema=SCHEMA, queries=40, way=2, mechanism=name, options=MECHANISMS[name],
            epsilon=1.0, delta=0.0 if name == "laplace" else 1e-5, neighbours="add-remove",
            rows=rows,
        )  # fmt: skip
    assert made.privacy.private
    folder = tmp_path / "made"
    made.save(folder)
    stored = json.loads((folder / "release.json").read_text())
    assert TRUE_ROWS not in numbers_in(stored)
    # As a number of its own, not as digits of another or of a digest; texts may group it.
    text = (folder / "release.json").read_text()
    assert not re.search(rf"(?<![\w.])({TRUE_ROWS}|{TRUE_ROWS:,})(?!\w)", text)
    for part in folder.glob("*.parquet"):
        frame = pl.read_parquet(part)
        assert len(frame) != TRUE_ROWS
        assert TRUE_ROWS not in numbers_in(frame.to_dicts())
    for part in folder.glob("*.npz"):
        with np.load(part) as arrays:
            assert TRUE_ROWS not in numbers_in({key: arrays[key] for key in arrays})
    assert stored["rows"] == made.n == stored["total"]["copies"]
    said, looked = made.privacy, name != "uniform"
    if rows is None:
        assert said.epsilon == pytest.approx(1.0 if looked else COUNT_SHARE, abs=1e-12)
        assert said.epsilon <= 1.0
        assert "the number of rows released with noise" in said.guarantee()
        assert "Theorem B.1" in said.text()
        assert abs(made.n - TRUE_ROWS) < 1000
    else:
        assert said.epsilon == (1.0 if looked else 0.0)
        assert (made.n == 8000) is not looked
        how = "released with noise" if looked else "assumed to be 8,000"
        assert f"the number of rows {how}" in said.guarantee()
    assert made.options["neighbours"] == "add-remove"
    assert made.options["rows"] == rows


@pytest.mark.parametrize(("name", "rows"), [("gaussian", None), ("mwem", 8000)])
def test_a_checkpoint_holds_no_true_number_of_rows(name, rows, table, tmp_path: Path) -> None:
    made = None
    while made is None or made.n == TRUE_ROWS:
        path = tmp_path / f"journal{0 if made is None else made.n}"
        made = dualquery.release(
            table, schema=SCHEMA, queries=40, way=2, mechanism=name, options=MECHANISMS[name],
            delta=1e-5, neighbours="add-remove", rows=rows, checkpoint=Checkpoint(path),
        )  # fmt: skip
    entries = CheckpointLines(path).entries
    assert any("end" in entry for entry in entries)
    assert TRUE_ROWS not in numbers_in(entries)
    assert made.base.estimate in numbers_in(entries)


@pytest.mark.parametrize("name", ["gaussian", "uniform", "dualquery"])
def test_a_stated_number_of_rows_that_is_far_off_only_counts_if_none_is_measured(
    name, table, caplog, tmp_path
) -> None:
    made = dualquery.release(
        table, schema=SCHEMA, queries=40, way=2, mechanism=name, delta=1e-5,
        neighbours="add-remove", rows=2 * TRUE_ROWS,
    )  # fmt: skip
    assert verify(made.save(tmp_path / "out")).faults == ()
    dualquery.evaluate(made, table)
    told = f"went by {2 * TRUE_ROWS:,} rows, this table has {TRUE_ROWS:,}" in caplog.text
    assert told == (name == "uniform")
    assert abs(made.base.amount - TRUE_ROWS) < 100 or name == "uniform"


@pytest.mark.parametrize("value", [0.0, 1.0, -2.0])
@pytest.mark.parametrize(("mechanism", "delta"), [("laplace", 0.0), ("mwem", 0.0), ("mwem", 1e-6)])
def test_queries_that_tell_no_records_apart(value, mechanism, delta, table) -> None:
    """Centred counts of constant queries never move, and still get noise of some scale."""
    binary = TableSchema((Binary("flag"),), name="flags", declared=True)
    made = dualquery.release(
        table.select("flag"), schema=binary, mechanism=mechanism, delta=delta, epsilon=5.0,
        queries=HistogramQueries(np.full((2, 2), value), binary.domain), neighbours="add-remove",
        options={"iterations": 2} if mechanism == "mwem" else {},
    )  # fmt: skip
    np.testing.assert_array_equal(made.answers, value)
