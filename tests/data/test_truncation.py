"""Rows cut to a number of ones: by their own content alone, the same wherever they are read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualquery
from dualquery.data.encoding.encode import BitRows
from dualquery.data.encoding.truncation import truncate
from dualquery.data.schema.items import ItemSchema
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.room.sensitivity.moves import differing_queries
from dualquery.rows.engines import Engine, load
from dualquery.runtime.errors import BadInputError

Rows = list[list[int]]


def to_rows(rows: Rows) -> BitRows:
    pointers = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return BitRows(pointers, np.array([bit for row in rows for bit in row], np.int32))


def lists(rows: BitRows) -> Rows:
    return [part.tolist() for part in np.split(rows.bits, rows.indptr[1:-1])]


some_rows = st.lists(st.lists(st.integers(0, 30), max_size=20), min_size=1, max_size=12)


@settings(max_examples=50, deadline=None)
@given(some_rows, st.integers(1, 8))
def test_rows_keep_so_many_of_their_own_ones(rows: Rows, most: int) -> None:
    for row, cut in zip(rows, lists(truncate(to_rows(rows), most)), strict=True):
        assert cut == sorted(set(cut))
        assert set(cut) <= set(row)
        assert len(cut) == min(most, len(set(row)))


@settings(max_examples=50, deadline=None)
@given(some_rows, st.integers(1, 8), st.randoms(use_true_random=False))
def test_a_row_is_cut_by_its_content_alone(rows: Rows, most: int, random: object) -> None:
    alone = {frozenset(row): lists(truncate(to_rows([row]), most))[0] for row in rows}
    shuffled = [random.sample(row, len(row)) for row in reversed(rows)]  # type: ignore[attr-defined]
    for row, cut in zip(shuffled, lists(truncate(to_rows(shuffled), most)), strict=True):
        assert cut == alone[frozenset(row)]


def test_all_items_are_kept_about_equally_often() -> None:
    """Each of 10 items stays with chance 1/2: five deviations allow 6e-6 of wrong alarms."""
    rng = np.random.default_rng(5)
    rows = [[*rng.choice(1000, 10, replace=False).tolist()] for _ in range(4000)]
    pairs = zip(rows, lists(truncate(to_rows([sorted(row) for row in rows]), 5)), strict=True)
    places = np.bincount([sorted(row).index(bit) for row, cut in pairs for bit in cut])
    assert np.abs(places - 2000).max() < 5 * np.sqrt(4000 / 4)


@pytest.fixture
def baskets(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    lines = [rng.choice(40, rng.integers(1, 20), replace=False) for _ in range(9000)]
    path = tmp_path / "baskets.dat"
    path.write_text("\n".join(" ".join(map(str, line)) for line in lines) + "\n")
    return path


def test_every_engine_sees_the_same_cut(baskets: Path) -> None:
    counts, workload = [], None
    for engine in ("memory", "stream"):
        with Engine(name=engine).open(f"fimi:{baskets}", columns="0-39", max_ones_per_row=4) as cut:
            workload = workload or random_conjunctions(cut.schema.domain, 50, 2, False, 0, None)
            counts.append(workload.counts(cut.records, threads=1))
    np.testing.assert_array_equal(*counts)
    cut = load(f"fimi:{baskets}", columns="0-39", max_ones_per_row=4).records
    assert load(f"fimi:{baskets}", columns="0-39").records.ones().sum() > cut.ones().sum()


def test_the_release_says_so_and_has_less_noise(baskets: Path, tmp_path: Path) -> None:
    options = {
        "columns": "0-39", "queries": 500, "signed": False, "mechanism": "gaussian", "delta": 1e-6
    }  # fmt: skip
    made = dualquery.release(f"fimi:{baskets}", max_ones_per_row=4, **options)
    whole = dualquery.release(f"fimi:{baskets}", **options)
    assert made.parameters["differing_queries"] == 2 * 4  # 2 C(4, 3)
    assert made.parameters["scale"] < 0.3 * whole.parameters["scale"]
    assert any("more than 4 ones" in note for note in made.notes)
    assert any("more than 4 ones" in text for text in made.privacy.assumptions)
    assert dualquery.load_release(made.save(tmp_path / "made")).schema.domain.max_ones == 4


def test_a_bound_for_few_ones_is_not_taken_for_rows_that_are_not_cut() -> None:
    schema = ItemSchema.numbered(6, "six")
    cut = random_conjunctions(replace(schema, max_ones_per_row=2).domain, 10, 2, False, 0, None)
    assert differing_queries(cut).count == 2
    table = np.ones((50, 6), np.uint8)
    made = dualquery.release(table, schema=schema, queries=cut, mechanism="gaussian", delta=1e-6)
    assert made.parameters["differing_queries"] > 2


@pytest.mark.parametrize("most", [0, -1, True, "3", 2.5])
def test_a_cut_is_a_whole_number_from_one_on(most: object) -> None:
    with pytest.raises(BadInputError, match="max_ones_per_row is"):
        replace(ItemSchema.numbered(6, "six"), max_ones_per_row=most)  # type: ignore[arg-type]


def test_one_hot_columns_cannot_be_cut() -> None:
    with pytest.raises(BadInputError, match=r"'age'.*all binary"):
        dualquery.release("adult", max_ones_per_row=3)
