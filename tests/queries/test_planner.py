"""However a workload is counted, the counts are those of the definition."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.counting import passes as counting
from dualquery.queries.counting import planner
from dualquery.queries.counting.planner import ConjunctionCounts
from dualquery.queries.counting.rewriting import different_bits, rewrite
from dualquery.rows.packed import Records, RecordsBuilder
from dualquery.rows.protocol import BlockRows
from dualquery.runtime.errors import BadInputError
from tests.queries.naive import random_literals, truth


def records_of(rows: Any) -> Records:
    builder = RecordsBuilder(rows.shape[1])
    builder.append_dense(rows)
    return builder.build()


def sorted_literals(m: int, bits: int, way: int, rng: np.random.Generator, ragged: bool) -> Any:
    literals = random_literals(m, bits, way, rng, ragged)
    return Workload(literals, Domain.binary(bits), repeats=True).literals


@settings(max_examples=60, deadline=None)
@given(
    way=st.integers(1, 5),
    density=st.sampled_from([0.0, 0.02, 0.5, 1.0]),
    ragged=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_inclusion_and_exclusion_is_exact(
    way: int, density: float, ragged: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.random((4200, 7)) < density).astype(np.uint8)
    literals = sorted_literals(40, 7, way, rng, ragged)
    rewriting = rewrite(literals)
    assert not (rewriting.positive[rewriting.positive >= 0] & 1).any()
    assert different_bits(literals) <= len(rewriting.positive) + 1
    counts = counting.count_conjunctions(rewriting.positive, records_of(rows), 2)
    np.testing.assert_array_equal(
        rewriting.combine(counts, len(rows)), truth(literals, rows).sum(axis=1)
    )


@settings(max_examples=60, deadline=None)
@given(
    way=st.integers(1, 5),
    density=st.sampled_from([0.0, 0.0002, 0.002, 0.05, 1.0]),
    n=st.sampled_from([1, 64, 4096, 8200]),
    seed=st.integers(0, 2**32),
)
def test_sparse_and_packed_counting_agree(way: int, density: float, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.random((n, 20)) < density).astype(np.uint8)
    literals = random_literals(60, 20, way, rng, ragged=True)
    expected = truth(literals, rows).sum(axis=1)
    for words in (-1, 64):
        prepared = counting.CountingPass(literals)
        object.__setattr__(prepared, "_sparse_words", words)
        np.testing.assert_array_equal(prepared.run(records_of(rows), 2), expected)


class TestChoice:
    """The planner's choice, made visible by what is counted."""

    @pytest.fixture
    def counted(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        sizes: list[int] = []
        run = counting.CountingPass.run

        def spy(self: counting.CountingPass, rows: BlockRows, threads: int) -> Any:
            sizes.append(len(self.literals))
            return run(self, rows, threads)

        monkeypatch.setattr(counting.CountingPass, "run", spy)
        monkeypatch.setattr(planner, "_REWRITING_BLOCKS", 2)
        return sizes

    @staticmethod
    def all_signs(bits: int) -> Any:
        from dualquery.queries.generate.marginals import all_marginals

        return all_marginals(Domain.binary(bits), 3, True, None).literals

    def test_many_signs_on_the_same_bits_are_rewritten(self, counted: list[int]) -> None:
        rng = np.random.default_rng(0)
        rows = rng.integers(0, 2, (9000, 8)).astype(np.uint8)
        literals = self.all_signs(8)
        counts = ConjunctionCounts(literals)(records_of(rows), 1)
        np.testing.assert_array_equal(counts, truth(literals, rows).sum(axis=1))
        assert counted == [8 + 28 + 56]

    def test_few_rows_are_counted_as_asked(self, counted: list[int]) -> None:
        literals = self.all_signs(8)
        ConjunctionCounts(literals)(records_of(np.zeros((10, 8), np.uint8)), 1)
        assert counted == [len(literals)]

    def test_queries_on_different_bits_are_counted_as_asked(self, counted: list[int]) -> None:
        literals = np.array([[1, 3], [5, 7], [9, 11]], np.int32)
        counts = ConjunctionCounts(literals)(records_of(np.zeros((9000, 6), np.uint8)), 1)
        np.testing.assert_array_equal(counts, [9000] * 3)
        assert counted == [3]


def test_explain_says_how_and_what_it_takes(caplog: pytest.LogCaptureFixture) -> None:
    records = records_of(np.zeros((5000, 3), np.uint8))
    literals = np.array([[0, 3]], np.int32)
    with caplog.at_level(logging.INFO, logger="dualquery.explain"):
        ConjunctionCounts(literals)(records, 2)
    text = caplog.text
    assert "1 queries about 2 of 3 bits; 5,000 rows in 2 blocks; at hand" in text
    assert "each query on its own, because" in text
    assert "estimate: counting" in text


def test_nothing_is_explained_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    """Not even in the log of a program that takes everything."""
    with caplog.at_level(logging.INFO):
        ConjunctionCounts(np.array([[0]], np.int32))(records_of(np.zeros((5, 1), np.uint8)), 1)
    assert not caplog.records


def test_a_pass_that_cannot_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualquery.runtime.resources.available_memory", lambda: 100)
    records = records_of(np.zeros((5, 1), np.uint8))
    with pytest.raises(BadInputError, match=r"counting 1 queries .* of memory .* take fewer"):
        ConjunctionCounts(np.array([[0]], np.int32))(records, 1)
