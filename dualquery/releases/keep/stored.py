"""The files of a release folder as they are written and read: their keys, digests and tables.

Nothing of a folder is taken on trust: a link may lead anywhere and is refused, and keys must have
the types that `Release.summary` writes. ``release.json`` holds the SHA-256 of every other file and
of all else that it says. Whoever edits a release and computes these anew is found out by a
signature only (`dualquery.verification.signature`).
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.opening import is_file
from dualquery.models.model import Model, read_model
from dualquery.runtime.documents import read_document
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.domain import Domain
    from dualquery.estimates.measurements import Measurements

MEASUREMENTS, MODEL = "measurements.parquet", "model.npz"
SEAL = ("files", "content")
"""Keys of the proof record that are computed when a release is written."""

_CHANGED = (
    "{} was changed or damaged after the release was written: its digest is another than "
    "release.json says; copy the release again from where it was made"
)


def _texts(value: Any, kind: type) -> bool:
    values = value.values() if isinstance(value, dict) else value
    return isinstance(value, kind) and all(isinstance(each, str) for each in values)


def _number(value: Any, kind: type = float) -> bool:
    return isinstance(value, (int, kind)) and not isinstance(value, bool)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "a text": lambda value: isinstance(value, str),
    "a text or null": lambda value: isinstance(value, str | None),
    "true or false": lambda value: isinstance(value, bool),
    "a record": lambda value: isinstance(value, dict),
    "a record of texts": lambda value: _texts(value, dict),
    "a list of texts": lambda value: _texts(value, list),
    "a number": _number,
    "a number between 0 and 1": lambda value: _number(value) and 0 < value < 1,
    "a whole number from 0 on": lambda value: _number(value, int) and 0 <= value < 2**63,
    "gaussian or discrete laplace": lambda value: value in ("gaussian", "discrete laplace"),
}
Keys = Mapping[str, tuple[str, ...]]
"""A kind, and the keys that are of it."""

_RECORD: Keys = {
    "a text": ("mechanism", "created"),
    "a record": ("parameters", "options", "privacy", "workload", "solver", "schema"),
    "a whole number from 0 on": ("rows", "queries", "synthetic_records"),
    "a list of texts": ("notes",),
    "a record of texts": ("versions",),
}
_PRIVATE: Keys = {
    "a number": ("epsilon", "delta"),
    "a text": ("neighbours", "accountant"),
    "a list of texts": ("assumptions", "numerical_assumptions"),
}
_NOT_PRIVATE: Keys = {"a list of texts": ("reasons_not_private",)}
_INTERVALS: Keys = {"a number between 0 and 1": ("level",), "a text": ("basis",)}
_MEASURED: Keys = {
    "a whole number from 0 on": ("numbers",),
    "gaussian or discrete laplace": ("noise",),
    "a text": ("note",),
}


def check_files(folder: Path, names: tuple[str, ...]) -> None:
    """Raise `BadInputError` if a file of a release is missing, or is a link."""
    for name in names:
        if not is_file(folder / name) and not (folder / name).is_symlink():
            raise BadInputError(f"{folder} is not a release folder: {name} is missing")
        if (folder / name).is_symlink():
            raise BadInputError(f"{folder}: {name} is a link; copy the file itself into the folder")


def read_record(folder: Path, newest: int) -> dict[str, Any]:
    """Return what ``release.json`` says; its keys have the types that a release writes.

    `BadInputError` if it says something else, its format is newer than ``newest``, or a file of the
    folder has another digest than it says.
    """
    stored = read_document(folder / "release.json")
    _check({"the whole": stored}, {"a record": ("the whole",)})
    assert isinstance(stored, dict)
    _check(stored, {"a whole number from 0 on": ("format_version",)})
    if (found := stored["format_version"]) > newest:
        raise BadInputError(f"format {found} is newer than {newest}: upgrade dualquery")
    _check(stored, _RECORD)
    privacy = stored["privacy"]
    _check(privacy, {"true or false": ("private",)})
    _check(privacy, _PRIVATE if privacy["private"] else _NOT_PRIVATE)
    later = {"condition": privacy.get("condition"), "written_as": stored.get("written_as")}
    _check(later, {"a text or null": (*later,)})
    if stored.get("intervals") is not None:
        _check(stored, {"a record": ("intervals",)})
        _check(stored["intervals"], _INTERVALS)
    datetime.datetime.fromisoformat(stored["created"])  # or raises `ValueError`
    _check_digests(stored, folder)
    return stored


def _check(fields: Mapping[str, Any], kinds: Keys) -> None:
    """Raise `BadInputError` unless each of some keys is there and of its kind."""
    for kind, key in ((kind, key) for kind, keys in kinds.items() for key in keys):
        if key not in fields:
            raise BadInputError(f"damaged release: release.json lacks {key!r}")
        if not _KINDS[kind](fields[key]):
            found = str(fields[key])[:60]
            raise BadInputError(f"damaged release: release.json: {key} is {found!r}, not {kind}")


def read_kept(
    folder: Path, stored: Mapping[str, Any], domain: Domain
) -> tuple[Measurements | None, Model | None]:
    """Read the measurements and the model that ``release.json`` of format 2 or newer names."""
    from dualquery.estimates.measurements import Measurements, factors_of

    measurements, model = None, None
    if (described := stored["measurements"]) is not None:
        check_files(folder, (MEASUREMENTS,))
        _check(stored, {"a record": ("measurements",)})
        _check(described, _MEASURED)
        measurements = Measurements.from_table(read_table(folder / MEASUREMENTS), described)
        queries = measurements.queries
        try:
            factors_of(measurements.factors, domain)
        except IndexError:
            raise BadInputError("the measurements name bits that the schema has not") from None
        if np.any(queries < -1) or np.any(queries >= stored["queries"]):
            raise BadInputError("the measurements name queries that the workload has not")
        if len(measurements) != described["numbers"]:
            raise BadInputError(
                f"{len(measurements):,} measurements found, but release.json speaks of "
                f"{described['numbers']:,}; copy the release again"
            )
    if stored["model"] is not None:
        check_files(folder, (MODEL,))
        model = read_model(folder / MODEL, domain)
    return measurements, model


def sealed(summary: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return ``release.json`` as its reader sees it, with digests of all other files and its own.

    The ``proof`` gets two more keys: ``files``, name -> SHA-256 of the bytes, and ``content``, the
    SHA-256 of `canonical` of all but itself; both in hexadecimal.
    """
    files = {path.name: _digest(path) for path in sorted(folder.iterdir())}
    whole = {**summary, "proof": {**unsealed(summary["proof"]), "files": files}}
    whole = json.loads(json.dumps(whole, allow_nan=False, default=np.generic.item))
    content = hashlib.sha256(canonical(whole)).hexdigest()
    return {**whole, "proof": {**whole["proof"], "content": content}}


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_digests(stored: Mapping[str, Any], folder: Path) -> None:
    """Refuse files that are not those of the release; format 1 has no digests to compare."""
    proof = found if isinstance(found := stored.get("proof"), dict) else {}
    files = found if isinstance(found := proof.get("files"), dict) else {}
    # Names are compared with those that are there: a name of a stranger may lead anywhere.
    for path in sorted(folder.iterdir()):
        known = path.name in files and path.is_file() and not path.is_symlink()
        if known and _digest(path) != files[path.name]:
            raise BadInputError(_CHANGED.format(path.name))
    if "content" in proof:
        own = {key: value for key, value in proof.items() if key != "content"}
        if hashlib.sha256(canonical({**stored, "proof": own})).hexdigest() != proof["content"]:
            raise BadInputError(_CHANGED.format("release.json"))


def unsealed(proof: Mapping[str, Any]) -> dict[str, Any]:
    """Return a proof record without digests, which writing a release computes anew."""
    return {key: value for key, value in proof.items() if key not in SEAL}


def canonical(content: Mapping[str, Any]) -> bytes:
    """Return JSON with sorted keys, no spaces and ASCII characters only."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def read_table(path: Path) -> pl.DataFrame:
    """Return a table of the folder; `BadInputError` if it is damaged or no parquet file."""
    from dualquery.data.readers.arrow import open_parquet

    source: Any = open_parquet(path, path.name)
    table = getattr(source, "table", source)  # also of lists
    names = table.columns()
    frames: list[pl.DataFrame] = list(table.frames(names))
    return pl.concat(frames or [pl.DataFrame(schema=dict.fromkeys(names, pl.Null))])


def numbers_of(table: pl.DataFrame, name: str, *, missing: bool = False) -> NDArray[np.float64]:
    """Return a column of finite numbers, NaN where one is null, which it may be if ``missing``."""
    if name not in table.columns or table.schema[name] not in (pl.Float64, pl.Null):
        raise BadInputError(f"the table of answers has no column {name} of numbers")
    found = table[name].cast(pl.Float64)
    known = found.drop_nulls()
    if not known.is_finite().all() or (len(known) < len(found) and not missing):
        raise BadInputError(f"the column {name} has a number that is missing or not finite")
    return found.to_numpy()
