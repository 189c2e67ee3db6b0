"""Records come back as they went in, however they were appended and are stored."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualquery.rows.packed import ListedBlock, PackedBlock, Records, RecordsBuilder
from dualquery.rows.row_sums import BLOCK_ROWS
from dualquery.runtime.errors import BadInputError

SIZES = [0, 1, 63, 64, 65, 4095, 4096, 4097, 8192, 9001]


def random_rows(n: int, bits: int, density: float, seed: int = 0) -> NDArray[np.uint8]:
    return (np.random.default_rng(seed).random((n, bits)) < density).astype(np.uint8)


def ones_of(rows: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    indptr = np.concatenate(([0], np.cumsum(rows.sum(axis=1, dtype=np.int64))))
    return indptr, np.nonzero(rows)[1].astype(np.int32)


def build(rows: NDArray[np.uint8]) -> Records:
    builder = RecordsBuilder(rows.shape[1])
    builder.append_dense(rows)
    return builder.build()


def unpacked(records: Records, attributes: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Read all blocks by the documented layout, padding rows included."""
    blocks = [records.block(b, attributes).view(np.uint8) for b in range(records.blocks)]
    return np.concatenate([np.unpackbits(b, axis=1, bitorder="little").T for b in blocks])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
def test_dense_rows_return_what_was_appended(n: int, density: float) -> None:
    rows = random_rows(n, 37, density)
    records = build(rows)
    assert (records.n, records.bits) == (n, 37)
    assert records.blocks == -(-n // BLOCK_ROWS)
    np.testing.assert_array_equal(records.dense_rows(0, n), rows)
    np.testing.assert_array_equal(records.dense_rows(n // 3, n // 2), rows[n // 3 : n // 2])
    np.testing.assert_array_equal(records.ones(), rows.sum(axis=0))


@pytest.mark.parametrize("n", SIZES[1:])
@pytest.mark.parametrize("density", [0.01, 0.5])
def test_blocks_follow_the_documented_layout_and_end_in_zeros(n: int, density: float) -> None:
    rows = random_rows(n, 20, density)
    attributes, records = np.array([0, 3, 4, 19], np.int32), build(rows)
    found = unpacked(records, attributes)
    np.testing.assert_array_equal(found[:n], rows[:, attributes])
    assert not found[n:].any()
    assert sum(records.rows_in_block(b) for b in range(records.blocks)) == n
    assert records.block(0, attributes).flags.c_contiguous


@settings(max_examples=60, deadline=None)
@given(data=st.data(), bits=st.integers(1, 70), density=st.sampled_from([0.0, 0.02, 0.4, 1.0]))
def test_any_pieces_give_the_same_records(data: st.DataObject, bits: int, density: float) -> None:
    sizes = data.draw(st.lists(st.sampled_from([0, 1, 5, 64, 700, 4095, 5000]), max_size=5))
    rows = random_rows(sum(sizes), bits, density, seed=bits)
    mixed, listed = RecordsBuilder(bits), RecordsBuilder(bits)
    start = 0
    for size in sizes:
        piece = rows[start : start + size]
        if data.draw(st.booleans()):
            mixed.append_dense(piece)
        else:
            mixed.append_ones(*ones_of(piece))
        start += size
        assert mixed.rows == start
    listed.append_ones(*ones_of(rows))
    one, other = mixed.build(), listed.build()
    np.testing.assert_array_equal(one.dense_rows(0, len(rows)), rows)
    np.testing.assert_array_equal(other.dense_rows(0, len(rows)), rows)
    assert [type(block) for block in one.stored] == [type(block) for block in other.stored]
    assert one.nbytes == other.nbytes


def test_each_block_takes_its_smaller_form() -> None:
    full, thin = random_rows(BLOCK_ROWS, 30, 0.5), random_rows(BLOCK_ROWS, 30, 0.01)
    records = build(np.concatenate((full, thin)))
    assert [type(block) for block in records.stored] == [PackedBlock, ListedBlock]
    assert records.stored[0].nbytes == 30 * BLOCK_ROWS // 8
    assert records.stored[1].nbytes == 2 * thin.sum() + 6 * 30


def test_wide_sparse_records_never_take_packed_size() -> None:
    bits = 500_000
    builder, indices = RecordsBuilder(bits), np.arange(0, bits, 100, dtype=np.int32)
    builder.append_ones(np.arange(len(indices) + 1, dtype=np.int64), indices)
    records = builder.build()
    assert records.nbytes < 10 * len(indices)
    words = records.block(1, indices[[BLOCK_ROWS, BLOCK_ROWS + 1]])
    assert words[0, 0] == 1
    assert words[1, 0] == 2


def test_repeated_and_unsorted_ones_count_once() -> None:
    builder = RecordsBuilder(5)
    builder.append_ones(np.array([0, 4, 4, 6]), np.array([3, 1, 3, 3, 4, 4], np.int32))
    records = builder.build()
    expected = [[0, 1, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_array_equal(records.dense_rows(0, 3), expected)
    np.testing.assert_array_equal(records.ones(), [0, 1, 0, 1, 1])


def test_a_reader_may_reuse_its_buffers() -> None:
    builder, indices = RecordsBuilder(3), np.array([2], np.int32)
    builder.append_ones(np.array([0, 1]), indices)
    indices[0] = 0
    np.testing.assert_array_equal(builder.build().dense_rows(0, 1), [[0, 0, 1]])


def test_read_only_and_offset_pieces_are_accepted() -> None:
    rows = random_rows(10, 4, 0.5)
    rows.flags.writeable = False
    builder = RecordsBuilder(4)
    builder.append_dense(rows)
    builder.append_ones(np.array([2, 3]), np.array([9, 9, 1], np.int32))  # a slice of a larger CSR
    records = builder.build()
    np.testing.assert_array_equal(records.dense_rows(0, 10), rows)
    np.testing.assert_array_equal(records.dense_rows(10, 11), [[0, 1, 0, 0]])


@pytest.mark.parametrize(("bit", "row"), [(-1, 5), (4, 5)])
def test_a_bit_outside_the_record_is_named(bit: int, row: int) -> None:
    builder = RecordsBuilder(4)
    builder.append_dense(np.zeros((3, 4), np.uint8))
    with pytest.raises(BadInputError, match=rf"row {row}: bit {bit} is outside 0\.\.3"):
        builder.append_ones(np.array([0, 1, 1, 3]), np.array([0, 1, bit], np.int32))


def test_a_value_other_than_0_or_1_is_named() -> None:
    rows = np.zeros((80_000, 256), np.uint8)  # in two pieces
    rows[70_000, 2] = 7
    with pytest.raises(BadInputError, match="row 70000, bit 2: found 7, expected 0 or 1"):
        RecordsBuilder(256).append_dense(rows)
    with pytest.raises(BadInputError, match=r"row 1, bit 2: found 0\.7, expected 0 or 1"):
        RecordsBuilder(256).append_dense(rows[69_999:70_003] / 10)


def test_rows_beyond_the_end_are_refused() -> None:
    with pytest.raises(IndexError, match=r"rows 0\.\.4 asked of 3 records"):
        build(np.zeros((3, 1), np.uint8)).dense_rows(0, 4)
