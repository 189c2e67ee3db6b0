"""The data and schemas inside the package are what their sources say."""

import math

import numpy as np
import polars as pl
import pytest

from dualquery.data import Categorical, Numeric, TableSchema
from dualquery.data.builtin import SCHEMAS, dataset_path
from dualquery.data.schema.schema_files import format_schema, load_schema
from dualquery.rows.engines import load

# (largest value, bins, bins that occur) of each column, as the authors' adult.ml has them.
PAPER_ADULT = {
    "age": (100, 20, 16),
    "workclass": (7, 8, 7),
    "fnlwgt": (1_600_000, 20, 18),
    "education": (15, 16, 16),
    "education-num": (100, 10, 2),
    "marital-status": (6, 7, 7),
    "occupation": (13, 14, 14),
    "relationship": (5, 60, 6),
    "race": (4, 5, 5),
    "sex": (1, 2, 2),
    "capital-gain": (100_000, 10, 6),
    "capital-loss": (5000, 10, 9),
    "hours-per-week": (100, 10, 10),
    "native-country": (40, 41, 41),
    "income": (1, 2, 2),
}
# (largest value, bins) of the 41 columns, as the authors' network.ml has them.
PAPER_KDD99 = [
    *((60_000, 20), (2, 3), (65, 65), (10, 11), (700_000_000, 20), (6_000_000, 20), (1, 2), (3, 4)),
    *((3, 4), (30, 10), (5, 6), (1, 2), (900, 10), (1, 2), (2, 3), (1000, 5), (30, 5), (2, 3)),
    *((10, 5), (1, 2), (1, 2), (1, 2), (600, 10), (600, 10), *[(1, 10)] * 7, (255, 10), (255, 10)),
    *[(1, 10)] * 8,
]


def table_schema(name: str) -> TableSchema:
    return load_schema(name)


def authors_bin(value: float, largest: float, bins: int) -> int:
    """The rule of the authors' attribute.ml, in floating point."""
    return bins - 1 if value == largest else math.floor(value / (largest / bins))


@pytest.mark.parametrize(("name", "bits"), [("adult", 172), ("adult-paper", 235), ("kdd99", 396)])
def test_built_in_schemas_are_declared_and_in_our_own_form(name: str, bits: int) -> None:
    assert name in SCHEMAS
    schema = table_schema(name)
    assert (schema.name, schema.declared, schema.domain.bits) == (name, True, bits)
    assert dataset_path(name, "json").read_text(encoding="utf-8") == format_schema(schema)


def test_adult_has_its_rows_and_only_real_groups() -> None:
    data = load("adult")
    assert (data.n, data.schema.name, data.schema.declared) == (30_162, "adult", True)
    assert np.count_nonzero(data.records.ones()) == 171  # nobody has never worked
    assert data.schema.literal("age", "30-35") == data.schema.literal("age", "32")
    assert data.schema.literal("income", ">50K") == 2 * 170


def test_the_papers_adult_has_the_papers_bins() -> None:
    schema, ones = table_schema("adult-paper"), load("adult", "adult-paper").records.ones()
    offsets = schema.domain.offsets
    assert list(schema.column_names) == list(PAPER_ADULT)
    for number, (_, bins, occurring) in enumerate(PAPER_ADULT.values()):
        column = ones[offsets[number] : offsets[number + 1]]
        assert (len(column), np.count_nonzero(column)) == (bins, occurring)


def test_the_papers_buckets_follow_the_authors_rule_on_every_value() -> None:
    frame = pl.read_parquet(dataset_path("adult").read_bytes())
    schema = table_schema("adult-paper")
    for column in schema.columns:
        largest, bins, _ = PAPER_ADULT[column.name]
        if isinstance(column, Numeric):
            values = frame[column.name].unique()
            literals = [schema.restrict(column.name).literal(column.name, str(v)) for v in values]
            assert literals == [2 * authors_bin(value, largest, bins) for value in values]


def test_the_sixty_relationships_hold_the_six_real_ones() -> None:
    column = table_schema("adult-paper").columns[7]
    real = ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]
    places = [authors_bin(code, 5, 60) for code in range(6)]
    assert places == [0, 12, 24, 36, 48, 59]
    assert [column.labels[place] for place in places] == real
    assert all(label.startswith("unused-") for label in set(column.labels) - set(real))


def test_kdd99_buckets_follow_the_authors_rule() -> None:
    schema = table_schema("kdd99")
    for column, (largest, bins) in zip(schema.columns, PAPER_KDD99, strict=True):
        assert column.bits == bins
        whole = isinstance(column, Categorical) or column.integer
        values = range(min(largest, 3000) + 1) if whole else np.arange(101) / 100
        one = schema.restrict(column.name)
        for value in values:
            assert one.literal(column.name, f"{value:g}") == 2 * authors_bin(value, largest, bins)
