"""The data sets and schemas inside the package; NOTICE.txt tells their sources and licences."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

DATASETS = {"adult": "adult"}
"""Name of each built-in data set -> name of its default schema."""

SCHEMAS = ("adult", "adult-paper", "kdd99")
"""Names of the built-in schemas."""


def dataset_path(name: str) -> Traversable:
    """Return the file of a built-in data set."""
    return files(__name__) / f"{name}.parquet"


def schema_path(name: str) -> Traversable:
    """Return the file of a built-in schema."""
    return files(__name__) / f"{name}.json"
