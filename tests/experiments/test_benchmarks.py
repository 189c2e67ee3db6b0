"""The benchmarks compare equal answers, and measure what they say."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.queries.generate.marginals import all_marginals
from dualquery.queries.parities import Parities
from dualquery.rows.dataset import load
from dualquery.rows.generated.biased import Biased, generated_records
from dualquery.runtime.errors import BadInputError
from experiments.benchmarks import run, stand_ins
from experiments.benchmarks.alternatives import ALTERNATIVES, Alternative
from experiments.benchmarks.multiplicative_weights import (
    Case,
    chain,
    one_run,
    parities,
    random_table,
    sign_rows,
    with_coins,
)
from experiments.benchmarks.scale import PhaseTimes, write_files
from experiments.benchmarks.solvers import random_sample, solve_limited
from experiments.benchmarks.stored_records import stored_records
from experiments.processes import measure
from tests.queries.naive import truth

BITS = (np.random.default_rng(1).random((300, 9)) < 0.4).astype(np.uint8)
LITERALS = np.array([[0, 5, 8], [1, 3, 17], [2, 6, 16], [0, 5, 9], [7, 11, 13]], np.int32)


@pytest.mark.parametrize("contender", ALTERNATIVES, ids=lambda c: c.name)
def test_contenders_count_what_we_count(contender: Alternative) -> None:
    if not contender.installed:
        pytest.skip(f"{contender.module} is not installed")
    count = contender.prepare(np.asfortranarray(BITS), LITERALS)
    expected = truth(LITERALS, BITS).sum(axis=1)
    np.testing.assert_array_equal(count(), expected)
    np.testing.assert_array_equal(count(), expected)


def test_stored_tables_are_the_generated_ones() -> None:
    generator = Biased(5_000, 30, 2)
    stored = stored_records(generator)
    assert stored.nbytes > 0
    np.testing.assert_array_equal(
        stored.dense_rows(0, 5_000), generated_records(generator).dense_rows(0, 5_000)
    )


def test_files_hold_the_generated_table(tmp_path: Path) -> None:
    ones = write_files("netflix-like:500,40,3", tmp_path)
    expected = load("netflix-like:500,40,3").records.dense_rows(0, 500)
    assert ones == expected.sum()
    for source, columns in (("npz:{}/table.npz", None), ("parquet:{}/table.parquet", "1-40")):
        data = load(source.format(tmp_path), columns=columns)
        np.testing.assert_array_equal(data.records.dense_rows(0, 500), expected)


def test_phases_end_when_the_next_begins() -> None:
    times = PhaseTimes()
    times.phase("a")
    time.sleep(0.02)
    times.phase("b")
    assert set(times.seconds) == {"starting", "a"}
    assert times.seconds["a"] >= 0.02


def test_mwem_and_numpy_run_the_same_game() -> None:
    """Equal answers are checked inside; here, that the sign rows are the parities."""
    found = parities(6, 200, iterations=3)
    assert found["queries"] == 6 + 15 + 20
    assert found["ratio"] == found["numpy_s"] / found["histogram_s"]
    queries = Parities(4, 3)
    cells = ((np.arange(16)[:, None] >> np.arange(3, -1, -1)) & 1).astype(np.uint8)
    expected = np.stack([queries.answers_on(cell[None, :]) for cell in cells], axis=1)
    np.testing.assert_array_equal(sign_rows(queries), expected)


def test_mwem_runs_are_of_what_they_say() -> None:
    line = one_run(Case("tiny", random_table(5, 300), all_marginals(Domain.binary(5), 2), 2))
    assert (line["queries"], line["iterations"]) == (40, 2)
    assert 0 <= line["mean_error"] <= line["max_error"] <= 1
    wide = with_coins(random_table(5, 300).records, 3)
    assert wide.records.dense_rows(0, 300).shape == (300, 8)


def test_a_chain_moves_its_answers_towards_its_measurements() -> None:
    """From 1/8 towards targets of 1/5 on average."""
    assert 1 / 8 < chain(40)["mean_answer"] < 1 / 5


def test_an_unknown_part_is_explained() -> None:
    with pytest.raises(BadInputError, match="--part speed: the parts are evaluation, player"):
        run(["speed"], quick=True)


def test_stand_ins_need_their_files(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="--part stand-ins needs the folder"):
        run(["stand-ins"], quick=True)
    with pytest.raises(BadInputError, match=r"there is no npm-deps\.dat\.gz in it"):
        run(["stand-ins"], quick=True, data=[str(tmp_path)])


@pytest.mark.slow
def test_a_stand_in_is_released_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny.dat").write_text("0 1\n1 2\n0\n3\n" * 500)
    monkeypatch.setattr(stand_ins, "STAND_INS", (stand_ins.StandIn("tiny.dat", "0-3"),))
    monkeypatch.setattr(stand_ins, "QUERIES", 200)
    found = run(["stand-ins"], quick=True, data=[str(tmp_path)])["stand-ins"]["tiny.dat"]
    assert found["queries"] == 20
    assert {"seconds", "evaluation_s", "overhead_s", "cpu_s", "peak_mib"} <= found.keys()


def _allocate(mebibytes: int) -> int:
    return len(np.ones(mebibytes << 17).tobytes()) >> 20


@pytest.mark.slow
def test_a_fresh_process_has_a_peak_of_its_own() -> None:
    small, large = measure(_allocate, 1), measure(_allocate, 200)
    assert (small.value, large.value) == (1, 200)
    if small.peak_mib is not None and large.peak_mib is not None:
        assert 300 < large.peak_mib - small.peak_mib < 600


def test_random_samples_are_conjunctions_of_three_attributes() -> None:
    problem = random_sample(30, 400)
    widths = (problem.terms >= 0).sum(axis=1)
    # A term and its complement may cancel; nothing else shortens a sample.
    assert set(widths.tolist()) == {3}
    assert 350 <= np.abs(problem.weights).sum() <= 400
    assert (problem.weights < 0).any()
    assert (problem.weights > 0).any()


def test_limited_solvers_say_what_came_of_it() -> None:
    solved = solve_limited("auto", 300, 200)
    assert solved["status"] == "optimal"
    assert solved["bound"] == solved["objective"] > 0
    refused = solve_limited("exhaustive", 300, 200)
    assert "use another solver" in refused["refusal"]
