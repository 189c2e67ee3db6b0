"""Grids of numeric columns: digits and back, and rows that carry them in every engine."""

import numpy as np
import polars as pl
import pytest

from dualquery.data import Categorical, Numeric, TableSchema
from dualquery.data.schema.grids import MOST_STEPS, Grid, digit_offsets
from dualquery.rows.engines import Engine
from dualquery.runtime.errors import BadInputError

AGE = Numeric("age", (0, 18, 65, 100), integer=True)
PAY = Numeric("pay", (-2.5, 0.0, 7.5), outside="clip")
WIDE = Numeric("wide", (0, 10, 10**9), integer=True)


@pytest.mark.parametrize("column", [AGE, PAY, WIDE, Numeric("one", (3, 4, 5), integer=True)])
def test_digits_give_back_the_numbers(column: Numeric) -> None:
    grid = Grid.of(column)
    assert grid.steps < 2**grid.digits
    assert grid.steps <= MOST_STEPS
    numbers = np.random.default_rng(0).uniform(grid.low, grid.high, 500)
    numbers = np.append(np.rint(numbers) if column.integer else numbers, (grid.low, grid.high))
    digits = grid.encode(numbers)
    points = digits @ (1 << np.arange(grid.digits))
    assert points.min() == 0
    assert points.max() == grid.steps
    found = grid.low + grid.step * points
    np.testing.assert_allclose(found, numbers, atol=grid.rounding * (1 + 1e-9))
    centred = grid.centred(digits.sum(axis=0), len(numbers))
    off = abs(grid.mean(centred, len(numbers)) - numbers.mean())
    assert off <= grid.rounding + 1e-12 * (grid.high - grid.low)
    assert not grid.exact or grid.rounding == 0
    assert abs(grid.centred(digits[:1].sum(axis=0), 1)) <= grid.steps


def test_numbers_beyond_the_range_are_its_ends() -> None:
    found, ends = (Grid.of(PAY).encode(np.array(each)) for each in ([-1e300, 1e300], [-2.5, 7.5]))
    np.testing.assert_array_equal(found, ends)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (Categorical("sex", ("F", "M")), "is not declared numeric"),
        (Numeric("age", (0, 9, 99), missing="category"), "rows may lack a number"),
        (Numeric("far", (-1.7e308, 0, 1.7e308)), "1e100 wide"),
        (Numeric("near", (0, 5e-324, 1e-323)), "1e100 wide"),
    ],
)
def test_columns_without_a_number_in_each_row_are_refused(column, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        Grid.of(column)


def test_every_engine_gives_rows_that_carry_the_numbers(tmp_path) -> None:
    columns = (Categorical("sex", ("F", "M")), AGE, PAY)
    schema = TableSchema(columns, declared=True, drop_incomplete=True)
    generator = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "pay": generator.uniform(-5, 10, 5000),
            "age": generator.integers(0, 101, 5000),
            "sex": pl.Series(generator.choice(["F", "M", ""], 5000).tolist()),
        }
    )
    frame.write_csv(tmp_path / "table.csv")
    kept, found = frame.filter(pl.col("sex") != ""), []
    for engine in ("memory", "stream"):
        with Engine(name=engine).open(tmp_path / "table.csv", schema, sums=["age", "pay"]) as data:
            assert data.n == kept.height
            assert data.schema.summed == ("age", "pay")
            starts = digit_offsets(data.schema.grids, schema.domain.bits)
            assert data.records.bits == starts[-1] == data.schema.record_bits
            ones = np.zeros(data.records.bits, np.int64)
            for block in data.records.stream():
                block.add_ones(ones)
            found.append(ones)
            means = [
                grid.mean(grid.centred(ones[first:last], data.n), data.n)
                for grid, first, last in zip(data.schema.grids, starts, starts[1:], strict=False)
            ]
    np.testing.assert_array_equal(*found)
    truth = [kept["age"].mean(), kept["pay"].clip(-2.5, 7.5).mean()]
    np.testing.assert_allclose(means, truth, atol=1e-5)
