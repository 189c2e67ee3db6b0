"""The data sets and schemas inside the package; NOTICE.txt tells their sources and licences."""

from importlib.resources import files
from importlib.resources.abc import Traversable

DATASETS = {"adult": "adult"}  # name of each built-in data set -> name of its default schema

SCHEMAS = ("adult", "adult-paper", "kdd99")  # names of the built-in schemas


def dataset_path(name: str, ending: str = "parquet") -> Traversable:
    """Return the file of a built-in data set; of a schema with the ending ``json``."""
    return files(__name__) / f"{name}.{ending}"
