"""A release as a folder in open formats: written whole or not at all.

``release.json`` says what was done and what it guarantees; ``synthetic.parquet`` holds the records
in the user's columns, ``answers.parquet`` the workload with an answer for every query,
``trace.parquet`` one line a round. Nothing that was computed from private rows is in it beyond
what the mechanism released.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.errors import BadInputError
from dualquery.privacy.statement import PrivacyStatement

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema import Schema
    from dualquery.queries.workload import Workload

FORMAT_VERSION = 1
FILES = ("release.json", "answers.parquet", "trace.parquet")
SYNTHETIC = "synthetic.parquet"


@dataclass(frozen=True, eq=False)
class Release:
    """A private release: public from the moment it exists.

    Parameters
    ----------
    mechanism
        Its name.
    parameters
        The effective parameters, all public.
    options
        What the user asked for.
    privacy
        The guarantee, or why there is none.
    schema
        Columns and bits.
    n
        Number of rows behind the release (public).
    workload
        The queries.
    answers
        float64, shape ``(m,)``: the released answer of every query, in [0, 1].
    records
        uint8, shape ``(r, d)``, or None: synthetic records.
    trace
        One line a round.
    solver
        Totals over the rounds' best responses.
    notes
        Remarks on the input that a reader must know, such as rows dropped by a public filter.
    versions
        Versions of this package and of the libraries that matter to the result.
    created
        UTC time, ISO 8601.
    """

    mechanism: str
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    privacy: PrivacyStatement
    schema: Schema
    n: int
    workload: Workload
    answers: NDArray[np.float64]
    records: NDArray[np.uint8] | None
    trace: tuple[Mapping[str, Any], ...]
    solver: Mapping[str, Any]
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    created: str

    @property
    def synthetic(self) -> pl.DataFrame | None:
        """The synthetic records in the user's columns."""
        return None if self.records is None else self.schema.decode(self.records)

    @property
    def answer_table(self) -> pl.DataFrame:
        """Every query as text, its literal codes and its released answer."""
        import polars as pl

        return pl.DataFrame(
            {
                "query": self.workload.text(self.schema),
                "answer": self.answers,
                **self.workload.to_columns(),
            }
        )

    def summary(self) -> dict[str, Any]:
        """Return what ``release.json`` holds: JSON-able, all public."""
        return {
            "format_version": FORMAT_VERSION,
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "options": dict(self.options),
            "privacy": self.privacy.to_dict(),
            "rows": self.n,
            "bits": self.schema.domain.bits,
            "workload": {
                "queries": len(self.workload),
                "way": self.workload.way,
                **self.workload.description,
            },
            "synthetic_records": 0 if self.records is None else len(self.records),
            "solver": dict(self.solver),
            "notes": list(self.notes),
            "versions": dict(self.versions),
            "created": self.created,
            "schema": self.schema.to_dict(),
        }

    def save(self, path: str | Path) -> Path:
        """Write the folder, atomically.

        Raises
        ------
        BadInputError
            If the folder exists, cannot be written or the disk is full; nothing is left behind.
        """
        with reserve(path) as folder:
            folder.write(self)
        return Path(path)


class ReservedFolder:
    """A hidden folder beside the target, so that a full or read-only disk is noticed early."""

    def __init__(self, hidden: Path, target: Path) -> None:
        self._hidden = hidden
        self._target = target

    def write(self, release: Release) -> None:
        """Fill the hidden folder and give it its name in one step."""
        import polars as pl

        with _disk_errors(self._target):
            release.answer_table.write_parquet(self._hidden / "answers.parquet")
            trace = pl.DataFrame(list(release.trace), infer_schema_length=None)
            trace.write_parquet(self._hidden / "trace.parquet")
            synthetic = release.synthetic
            if synthetic is not None:
                synthetic.write_parquet(self._hidden / SYNTHETIC)
            text = json.dumps(release.summary(), indent=2, allow_nan=False) + "\n"
            (self._hidden / "release.json").write_text(text, encoding="utf-8")
            for file in self._hidden.iterdir():
                with file.open("rb+") as handle:
                    os.fsync(handle.fileno())
            if self._target.exists():
                raise BadInputError(
                    f"{self._target} appeared while the release was made; name another --out"
                )
            self._hidden.chmod(0o755)
            self._hidden.rename(self._target)


@contextlib.contextmanager
def reserve(path: str | Path) -> Iterator[ReservedFolder]:
    """Claim a place for a release; whatever happens, no half-written folder is left.

    Raises
    ------
    BadInputError
        If the folder exists or cannot be made.
    """
    target = Path(path)
    if target.exists() or target.is_symlink():
        raise BadInputError(f"{target} exists already; name another folder with --out")
    with _disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield ReservedFolder(hidden, target)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


@contextlib.contextmanager
def _disk_errors(target: Path) -> Iterator[None]:
    """Say plainly what the disk refused."""
    try:
        yield
    except OSError as error:
        full = error.errno == errno.ENOSPC or "No space left" in str(error)
        reason = "the disk is full" if full else (error.strerror or str(error))
        raise BadInputError(
            f"cannot write the release to {target}: {reason}; name another place with --out"
        ) from error


def load_release(path: str | Path) -> Release:
    """Read a release folder.

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    BadInputError
        If it is not a release, is incomplete or was written by a newer version.
    """
    import polars as pl

    from dualquery.data.load import load
    from dualquery.data.schema import schema_from_dict
    from dualquery.data.sources import parse_source
    from dualquery.queries.workload import Workload

    folder = Path(path)
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise BadInputError(f"{folder} is not a release folder: {missing[0]} is missing")
    try:
        stored = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        version = stored["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{folder / 'release.json'} is not a release description") from error
    if version > FORMAT_VERSION:
        raise BadInputError(
            f"{folder} has format {version}; this version reads up to {FORMAT_VERSION}: upgrade"
        )
    schema = schema_from_dict(stored["schema"])
    try:
        answers = pl.read_parquet(folder / "answers.parquet")
        trace = pl.read_parquet(folder / "trace.parquet").to_dicts()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadInputError(f"{folder} holds a damaged Parquet file: {error}") from error
    description = {k: v for k, v in stored["workload"].items() if k not in ("queries", "way")}
    records = None
    if stored["synthetic_records"]:
        synthetic = load(parse_source(f"parquet:{folder / SYNTHETIC}"), schema).records
        records = synthetic.dense_rows(0, synthetic.n)
    return Release(
        mechanism=stored["mechanism"],
        parameters=stored["parameters"],
        options=stored["options"],
        privacy=PrivacyStatement.from_dict(stored["privacy"]),
        schema=schema,
        n=stored["rows"],
        workload=Workload.from_columns({s.name: s for s in answers}, schema.domain, description),
        answers=answers["answer"].to_numpy(),
        records=records,
        trace=tuple(trace),
        solver=stored["solver"],
        notes=tuple(stored["notes"]),
        versions=stored["versions"],
        created=stored["created"],
    )
