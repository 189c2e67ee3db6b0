"""The files of a release folder as they are read: of unknown origin, so nothing is taken on trust.

A folder is plain files; a link may lead anywhere, so it is refused. ``release.json`` must have the
keys and types that `Release.summary` writes, and each table the columns that are asked of it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.opening import is_file
from dualquery.runtime.documents import read_document
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

_TEXTS = "a list of texts"
_COUNT = "a whole number from 0 on"
_NUMBER = "a number"

_RECORD: Mapping[str, Any] = {
    "mechanism": str,
    "parameters": dict,
    "options": dict,
    "privacy": dict,
    "rows": _COUNT,
    "queries": _COUNT,
    "workload": dict,
    "synthetic_records": _COUNT,
    "solver": dict,
    "notes": _TEXTS,
    "versions": dict,
    "created": str,
    "schema": dict,
}
_PRIVATE: Mapping[str, Any] = {
    "epsilon": _NUMBER,
    "delta": _NUMBER,
    "neighbours": str,
    "accountant": str,
    "assumptions": _TEXTS,
    "numerical_assumptions": _TEXTS,
}
_NOT_PRIVATE: Mapping[str, Any] = {"reasons_not_private": _TEXTS}
_INTERVALS: Mapping[str, Any] = {"level": _NUMBER, "basis": str}


def check_files(folder: Path, names: tuple[str, ...]) -> None:
    """Raise `BadInputError` if a file of a release is missing, or is a link."""
    for name in names:
        if (folder / name).is_symlink():
            raise BadInputError(f"{folder}: {name} is a link; copy the file itself into the folder")
        if not is_file(folder / name):
            raise BadInputError(f"{folder} is not a release folder: {name} is missing")


def read_record(folder: Path, newest: int) -> dict[str, Any]:
    """Return what ``release.json`` says; its keys have the types that a release writes.

    Raises
    ------
    BadInputError
        If the file says something else, or its format is newer than ``newest``.
    """
    stored = read_document(folder / "release.json")
    if not isinstance(stored, dict):
        raise BadInputError(
            f"damaged release: release.json holds {type(stored).__name__}, not a record"
        )
    _check(stored, {"format_version": _COUNT})
    if stored["format_version"] > newest:
        raise BadInputError(
            f"format {stored['format_version']} is newer than {newest}, the newest that this "
            "version reads: upgrade dualquery"
        )
    _check(stored, _RECORD)
    privacy = stored["privacy"]
    if not isinstance(privacy.get("private"), bool):
        raise BadInputError(
            "damaged release: release.json: privacy does not say whether the release is private"
        )
    _check(privacy, _PRIVATE if privacy["private"] else _NOT_PRIVATE)
    if not isinstance(privacy.get("condition"), str | None):
        raise BadInputError(
            "damaged release: release.json: the condition of the guarantee is no text"
        )
    if stored.get("intervals") is not None:
        _check({"intervals": stored["intervals"]}, {"intervals": dict})
        _check(stored["intervals"], _INTERVALS)
        if not 0 < stored["intervals"]["level"] < 1:
            raise BadInputError(
                "damaged release: release.json: the level of the intervals is not in (0, 1)"
            )
    if not isinstance(stored.get("written_as"), str | None):
        raise BadInputError("damaged release: release.json: written_as is no text")
    if not all(isinstance(text, str) for text in stored["versions"].values()):
        raise BadInputError("damaged release: release.json: a version is no text")
    try:
        datetime.datetime.fromisoformat(stored["created"])
    except ValueError:
        raise BadInputError(
            f"damaged release: release.json: created is {stored['created']!r}, no time"
        ) from None
    return stored


def check_described(measured: object) -> None:
    """Raise `BadInputError` unless ``release.json`` describes measurements as a release does."""
    if not isinstance(measured, dict):
        raise BadInputError("damaged release: release.json: measurements is no record")
    _check(measured, {"numbers": _COUNT, "noise": str, "note": str})
    if measured["noise"] not in ("gaussian", "discrete laplace"):
        raise BadInputError(f"damaged release: noise of the kind {measured['noise'][:60]!r}")


def _check(fields: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    """Raise `BadInputError` unless each of some keys is there and of its kind."""
    for key, kind in kinds.items():
        if key not in fields:
            raise BadInputError(f"damaged release: release.json lacks {key!r}")
        value = fields[key]
        if kind is _COUNT:
            fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
        elif kind is _NUMBER:
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        elif kind is _TEXTS:
            fits = isinstance(value, list) and all(isinstance(text, str) for text in value)
        else:
            fits = isinstance(value, kind)
        if not fits:
            wanted = kind if isinstance(kind, str) else kind.__name__
            raise BadInputError(
                f"damaged release: release.json: {key} is {str(value)[:60]!r}; {wanted} is expected"
            )


def read_table(path: Path) -> pl.DataFrame:
    """Return a table of the folder.

    Raises
    ------
    BadInputError
        If it is no parquet file, or a damaged one.
    """
    import polars as pl

    from dualquery.data.readers.parquet import open_parquet

    source = open_parquet(path, path.name)
    frames = list(source.batches())
    if not frames:
        return pl.DataFrame(schema=dict.fromkeys(getattr(source, "names", ()), pl.Null))
    return pl.concat(frames)


def numbers_of(table: pl.DataFrame, name: str, *, missing: bool = False) -> NDArray[np.float64]:
    """Return a column of finite numbers; NaN where one is null, which only some may be (missing).

    Raises
    ------
    BadInputError
        If there is no such column of Float64, or a number is not finite or null.
    """
    import polars as pl

    if name not in table.columns or table.schema[name] not in (pl.Float64, pl.Null):
        raise BadInputError(f"the table of answers has no column {name} of numbers")
    column = table[name].cast(pl.Float64)
    found = column.to_numpy()
    known = found[~column.is_null().to_numpy()]
    if not np.all(np.isfinite(known)) or (len(known) < len(found) and not missing):
        raise BadInputError(f"the column {name} has a number that is missing or not finite")
    return found
