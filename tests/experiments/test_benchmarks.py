"""The benchmarks compare equal answers, and measure what they say."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from dualquery.queries.parities import Parities
from dualquery.rows.dataset import load
from dualquery.rows.generated.biased import Biased, generated_records
from dualquery.runtime.errors import BadInputError
from experiments.benchmarks import run
from experiments.benchmarks.alternatives import ALTERNATIVES, Alternative
from experiments.benchmarks.evaluation import stored_records
from experiments.benchmarks.multiplicative_weights import chain, parities, sign_rows
from experiments.benchmarks.scale import PhaseTimes, write_files
from experiments.harness.processes import measure
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


def test_a_chain_moves_its_answers_towards_its_measurements() -> None:
    """From 1/8 towards targets of 1/5 on average."""
    assert 1 / 8 < chain(40)["mean_answer"] < 1 / 5


def test_an_unknown_part_is_explained() -> None:
    with pytest.raises(BadInputError, match="--part speed: the parts are evaluation, player"):
        run(["speed"], quick=True)


def _allocate(mebibytes: int) -> int:
    return len(np.ones(mebibytes << 17).tobytes()) >> 20


@pytest.mark.slow
def test_a_fresh_process_has_a_peak_of_its_own() -> None:
    small, large = measure(_allocate, 1), measure(_allocate, 200)
    assert (small.value, large.value) == (1, 200)
    if small.peak_mib is not None and large.peak_mib is not None:
        assert 300 < large.peak_mib - small.peak_mib < 600
