"""Generated records: the same bits in any order, with the distribution that was promised."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2, norm

from dualquery.data.readers.formats import parse_source
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.rows.engines import load
from dualquery.rows.generated import kernels
from dualquery.rows.generated.biased import Biased, GeneratedBlock, Generator, generated_records
from dualquery.rows.generated.netflix_like import ACTIVITY, POPULARITY, Curve, NetflixLike
from dualquery.rows.packed import Records
from dualquery.rows.row_sums import BLOCK_ROWS
from dualquery.runtime.errors import BadInputError

GENERATORS = (Biased(5_000, 37, 3), NetflixLike(5_000, 37, 3))


def biases(generator: Biased) -> np.ndarray:
    """Return the probability of a 1 of each bit."""
    seed = np.uint64(generator.seed)
    drawn = [int(kernels.bias(seed, column)) for column in range(generator.bits)]
    return np.array(drawn) / 2.0**kernels.BIAS_BITS


def bits(generator: Generator) -> np.ndarray:
    records = generated_records(generator)
    return records.dense_rows(0, records.n)


@pytest.mark.parametrize("generator", GENERATORS, ids=["biased", "netflix-like"])
class TestEveryGenerator:
    def test_a_column_does_not_depend_on_what_it_is_asked_with(self, generator: Generator) -> None:
        records = generated_records(generator)
        for block in range(records.blocks):
            together = records.block(block, np.arange(37, dtype=np.int32))
            for column in (0, 17, 36):
                alone = records.block(block, np.array([column], np.int32))
                np.testing.assert_array_equal(alone[0], together[column])

    def test_blocks_do_not_depend_on_order_or_threads(self, generator: Generator) -> None:
        asked, records = np.array([1, 2, 30], np.int32), generated_records(generator)
        backwards = [records.block(block, asked) for block in reversed(range(records.blocks))]
        again = generated_records(type(generator)(generator.n, generator.bits, 3))  # type: ignore[call-arg]
        with ThreadPoolExecutor(4) as executor:
            threaded = list(executor.map(lambda block: again.block(block, asked), [1, 0]))
        np.testing.assert_array_equal(backwards, threaded)

    def test_rows_ones_and_words_agree(self, generator: Generator) -> None:
        records, rows = generated_records(generator), bits(generator)
        np.testing.assert_array_equal(records.ones(), rows.sum(axis=0))
        np.testing.assert_array_equal(records.dense_rows(4_000, 4_300), rows[4_000:4_300])
        words = records.block(1, np.arange(37, dtype=np.int32))
        ones = np.bitwise_count(words).sum(axis=-1, dtype=np.int64)
        np.testing.assert_array_equal(ones, rows[BLOCK_ROWS:].sum(axis=0))

    def test_rows_beyond_the_last_are_zero_records(self, generator: Generator) -> None:
        words = generated_records(generator).block(1, np.arange(37, dtype=np.int32))
        full, rest = divmod(5_000 - BLOCK_ROWS, 64)
        assert not words[:, full + 1 :].any()
        assert not (words[:, full] >> np.uint64(rest)).any()

    def test_another_seed_makes_other_records(self, generator: Generator) -> None:
        other = type(generator)(generator.n, generator.bits, 4)  # type: ignore[call-arg]
        assert not np.array_equal(bits(generator), bits(other))

    def test_chosen_columns_keep_their_bits(self, generator: Generator) -> None:
        chosen = generated_records(generator, np.array([2, 5, 36]))
        assert chosen.bits == 3
        rows = chosen.dense_rows(0, chosen.n)
        np.testing.assert_array_equal(rows, bits(generator)[:, [2, 5, 36]])

    def test_queries_are_counted_as_on_stored_records(self, generator: Generator) -> None:
        source = load(f"{'biased' if isinstance(generator, Biased) else 'netflix-like'}:5000,37,3")
        workload = random_conjunctions(source.schema.domain, 500, seed=1)
        stored = load(bits(generator)).records
        np.testing.assert_array_equal(
            workload.counts(source.records, threads=2), workload.counts(stored, threads=1)
        )


def test_nothing_is_stored() -> None:
    records = generated_records(Biased(100_000, 512_000, 0))
    assert records.nbytes == 0
    assert isinstance(records.stored[7], GeneratedBlock)
    assert records.block(24, np.array([511_999], np.int32)).any()


# The tests below fail for a sound generator with the stated probability over seeds: they are fixed.


def test_bits_have_their_biases() -> None:
    """Two-sided binomial tests of 400 columns at level 1e-6 each: false alarm below 4e-4."""
    generator = Biased(8_192, 400, 11)
    ones = generated_records(generator).ones()
    low = binom.cdf(ones, 8_192, biases(generator))
    assert np.minimum(low, binom.sf(ones - 1, 8_192, biases(generator))).min() > 5e-7


def test_biases_are_uniform() -> None:
    """Chi-square over 64 equal cells of 65,536 biases at level 1e-6."""
    found = np.bincount((biases(Biased(1, 65_536, 5)) * 64).astype(int), minlength=64)
    assert chi2.sf(((found - 1024) ** 2 / 1024).sum(), 63) > 1e-6
    assert len(np.unique(biases(Biased(1, 65_536, 5)))) > 40_000  # 16 bits: 41,427 expected


def test_columns_and_blocks_are_independent() -> None:
    """The largest of 30,000 correlations of centred bits at level 1e-6, by a union bound."""
    generator = Biased(2 * BLOCK_ROWS, 200, 2)
    kept = np.flatnonzero(np.abs(biases(generator) - 0.5) < 0.45)
    rows, means = bits(generator)[:, kept].astype(np.float64), biases(generator)[kept]
    centred = (rows - means) / np.sqrt(means * (1 - means))
    first, second = centred[:BLOCK_ROWS], centred[BLOCK_ROWS:]
    within = (first.T @ first)[np.triu_indices(len(kept), 1)]
    scores = np.concatenate((within, (first.T @ second).ravel())) / np.sqrt(BLOCK_ROWS)
    assert len(scores) > 30_000
    assert 2 * len(scores) * norm.sf(np.abs(scores).max()) > 1e-6


@pytest.mark.parametrize("curve", [POPULARITY, ACTIVITY], ids=["popularity", "activity"])
def test_curves_have_the_quartiles_and_the_mean_they_were_fitted_to(curve: Curve) -> None:
    expected = [curve.smallest, curve.lower, curve.median, curve.upper, curve.largest]
    np.testing.assert_allclose(curve.quantiles(np.array([0.0, 0.25, 0.5, 0.75, 1.0])), expected)
    middle = (np.arange(2_000_000) + 0.5) / 2_000_000
    assert curve.quantiles(middle).mean() == pytest.approx(curve.mean, rel=1e-4)


def test_movies_have_their_expected_numbers_of_ratings() -> None:
    """Two-sided binomial tests of 300 movies at 1e-7 each: counts vary less than binomially."""
    generator = NetflixLike(40_000, 300, 9)
    ones = generated_records(generator).ones()
    assert generator.shares.mean() == pytest.approx(100_480_507 / (480_189 * 17_770))
    low = binom.cdf(ones, 40_000, generator.shares)
    assert np.minimum(low, binom.sf(ones - 1, 40_000, generator.shares)).min() > 1e-7 / 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("biased:5", "biased:5: '5' found where N,D[,SEED] is expected, whole numbers"),
        ("biased:5,x", "'5,x' found where N,D[,SEED] is expected"),
        ("biased:0,6", "n and d must be at least 1, found n = 0 and d = 6"),
        ("biased:5,2000000000", "2,000,000,000 items; at most 16,777,216 are possible"),
        ("netflix-like:,", "',' found where N,D,SEED is expected"),
    ],
)
def test_bad_parameters_are_explained(source: str, message: str) -> None:
    with pytest.raises(BadInputError) as error:
        load(source)
    assert message in str(error.value)


def test_sources_declare_their_items() -> None:
    data = load("biased:300,20,5")
    assert data.schema.declared
    assert (data.n, data.schema.domain.bits) == (300, 20)
    movies = load("netflix-like:300,20").schema
    assert movies.declared
    assert movies.bit_labels()[0] == "1"


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9_000), st.integers(1, 40), st.integers(0, 2**64 - 1))
def test_rows_of_the_source_are_the_records(n: int, d: int, seed: int) -> None:
    source = parse_source(f"biased:{n},{d},{seed}")
    records: Records = load(source).records
    rows, start = np.zeros((n, d), np.uint8), 0
    for block in source.item_rows():  # type: ignore[union-attr]
        rows[start + np.repeat(np.arange(len(block)), np.diff(block.indptr)), block.items] = 1
        start += len(block)
    np.testing.assert_array_equal(rows, records.dense_rows(0, n))
