"""Small tables, domains and workloads that several suites share."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dualquery
from dualquery.audit.cases import records_of
from dualquery.data import Binary, Categorical, ItemSchema, Numeric, TableSchema
from dualquery.data.domain import Domain, rows_of_values
from dualquery.data.schema.schema_files import write_schema
from dualquery.mechanisms.protocol import Task
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.releases.keep.stored import sealed
from dualquery.rows.engines import Dataset

SCHEMA = TableSchema(
    (
        Numeric("age", (0.0, 25.0, 50.0, 75.0, 100.0), integer=True),
        Categorical("job", (("nurse",), ("smith",), ("clerk",)), missing="category"),
        Binary("flag"),
        Binary("sex", zero="Female", one="Male"),
        Categorical("constant", (("a",), ("b",))),
    ),
    name="people",
    declared=True,
)
"""Two numeric or categorical kinds, both binaries, and a column that happens to be constant."""


def people(rows: int = 300, seed: int = 0) -> pl.DataFrame:
    """Return a table with strong dependence between columns, which independence cannot answer."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, rows)
    job = np.where(age < 50, "nurse", "smith").astype(object)
    job[rng.random(rows) < 0.1] = None
    male = (age >= 50) ^ (rng.random(rows) < 0.1)
    return pl.DataFrame(
        {
            "age": age,
            "job": pl.Series(job.tolist(), dtype=pl.String),
            "flag": (rng.random(rows) < 0.2).astype(int),
            "sex": np.where(male, "Male", "Female"),
            "constant": ["a"] * rows,
        }
    )


def homes() -> pl.DataFrame:
    """Return people with the home they live in and their weight."""
    n = len(people())
    return people().with_columns(home=pl.arange(n) % 100, w=pl.Series(np.arange(n) % 7))


def write_people(folder: Path, rows: int = 300, seed: int = 0) -> tuple[Path, Path]:
    """Write the table as CSV and its schema as JSON."""
    table, schema = folder / "people.csv", folder / "people.json"
    people(rows, seed).write_csv(table)
    write_schema(SCHEMA, schema)
    return table, schema


def release_people(**asked: Any) -> dualquery.Release:
    """Return a release of the table by its schema."""
    return dualquery.release(people(), schema=SCHEMA, **asked)


def names(folder: Path) -> set[str]:
    """Return what lies in a folder."""
    return {path.name for path in folder.iterdir()}


def reseal(folder: Path) -> None:
    """Give a release digests that fit its files as they are now, as one who edits it could."""
    path = folder / "release.json"
    stored = json.loads(path.read_text())
    path.unlink()
    path.write_text(json.dumps(sealed(stored, folder)))


def random_records(domain: Domain, rows: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return legal records, uniform."""
    values = [rng.integers(0, max(size, 2), rows) for size in domain.sizes]
    return rows_of_values(np.stack(values, axis=1), domain)


def legal(domain: Domain, records: NDArray[np.uint8]) -> bool:
    """Tell whether every record is 0/1 and has one 1 in every one-hot column."""
    if records.dtype != np.uint8 or records.ndim != 2 or records.shape[1] != domain.bits:
        return False
    sums = np.add.reduceat(records.astype(int), domain.offsets[:-1], axis=1)
    return bool((records <= 1).all() and (sums[:, domain.sizes > 1] == 1).all())


def dataset(schema: TableSchema | ItemSchema, records: NDArray[np.uint8]) -> Dataset:
    """Return private records with their schema."""
    return Dataset(records_of(records), schema, "test")


def task(queries: int = 60, n: int = 300, way: int = 2) -> Task:
    """Return random signed queries about the people table."""
    return Task(random_conjunctions(SCHEMA.domain, queries, way, seed=3), n)
