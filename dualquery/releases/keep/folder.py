"""A release as a folder in open formats: written whole or not at all.

``release.json`` says what was done and what it guarantees; ``synthetic.parquet`` holds the records
in the user's columns, ``answers.parquet`` the workload with an answer for every query,
``trace.parquet`` one line a round or trial, ``measurements.parquet`` and ``model.npz`` what was
measured and fitted. Nothing of it was computed from private rows but what the mechanism released.
"""

from __future__ import annotations

import datetime
import json
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from dualquery.estimates.intervals import Intervals, Total
from dualquery.estimates.means import BoughtMean
from dualquery.models.model import KINDS, Model, write_model
from dualquery.privacy.guarantee import PrivacyStatement
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.answer.answering import answer_queries
from dualquery.releases.answer.bought import calibrated_schema
from dualquery.releases.keep.stored import (
    MEASUREMENTS,
    MODEL,
    check_files,
    numbers_of,
    read_kept,
    read_record,
    read_table,
    sealed,
    unsealed,
)
from dualquery.room.row_count import RowCount, bought_epsilon
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import html_text
from dualquery.runtime.resources import __version__, check_memory, differences

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.estimates.measurements import Measurements
    from dualquery.queries.family import Queries
    from dualquery.releases.answer.pictures import Picture

_log = logging.getLogger(__name__)

FORMAT_VERSION = 2
"""2: with a proof record, measurements and model. Folders of format 1 are read, and have none."""
FILES = ("release.json", "answers.parquet", "trace.parquet")
SYNTHETIC = "synthetic.parquet"


@dataclass(frozen=True, eq=False)
class Release:
    """A private release: public from the moment it exists.

    Parameters
    ----------
    mechanism, parameters, options
        Its name as it was asked for, which may be ``auto`` (`chosen` made it); the effective
        parameters; what the user asked for.
    privacy
        The guarantee, or why there is none.
    schema, base
        Columns and bits; what answers are shares of: the number of rows, or their weight.
    workload, answers
        The queries; float64, shape ``(m,)``: their answers, in the queries' range.
    records
        uint8, shape ``(r, d)``: synthetic records; None without any.
    trace, solver
        One line a round of a game, or a trial of a fit; totals over the rounds' best responses.
    intervals
        Intervals that cover the true answers; None if no answer was measured.
    notes, versions, created
        Remarks that a reader must know, such as rows dropped by a public filter; versions of this
        package and of libraries that matter to the result; UTC time, ISO 8601.
    measurements, model
        The noisy numbers that all else was made of, and the fitted distribution, to be asked and
        drawn from at no cost; None where there are none, and for format 1.
    means
        Means of numeric columns that were bought (``--means``).
    written_as
        How the table's CSV file is written, as ``--csv`` says it, in releases of earlier versions.
    proof
        What the guarantee follows from (see `dualquery.releases.make.proof`), without digests of
        files; empty for format 1.
    """

    mechanism: str
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    privacy: PrivacyStatement
    schema: Schema
    base: Total
    workload: Queries
    answers: NDArray[np.float64]
    records: NDArray[np.uint8] | None
    trace: tuple[Mapping[str, Any], ...]
    solver: Mapping[str, Any]
    intervals: Intervals | None
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    created: str
    measurements: Measurements | None = None
    model: Model | None = None
    means: tuple[BoughtMean, ...] = ()
    written_as: str | None = None
    proof: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The public number of rows, true or likely; with weights, of what the room counts."""
        return self.base.copies

    def __repr__(self) -> str:
        records = 0 if self.records is None else len(self.records)
        return (
            f"Release of {self.base.text} {self.base.name} by {self.chosen}: "
            f"{len(self.workload):,} answers, {records:,} synthetic records\n"
            f"{self.privacy.guarantee()}"
        )

    def _repr_html_(self) -> str:
        told = "<br>".join(map(html_text, repr(self).splitlines()))
        return f"<p>{told}</p>{self.answer_table.head(10)._repr_html_()}"

    @property
    def chosen(self) -> str:
        """The mechanism that made it: the one that `auto` chose, else the one named."""
        return str(self.parameters["mechanism"] if self.mechanism == "auto" else self.mechanism)

    @property
    def synthetic(self) -> pl.DataFrame | None:
        """The synthetic records in the user's columns."""
        return None if self.records is None else self.read_by.decode(self.records)

    @property
    def read_by(self) -> Schema:
        """The schema by which records draw the numbers of buckets, and questions are read."""
        return calibrated_schema(self) if self.means else self.schema

    @property
    def answer_table(self) -> pl.DataFrame:
        """Every query as text, its released answer, its literals, its interval if it has one."""
        nothing, known = np.full(len(self.answers), np.nan), self.intervals
        return pl.DataFrame(
            {
                "query": self.workload.text(self.schema),
                "answer": self.answers,
                **self.workload.to_columns(),
                "interval_low": nothing if known is None else known.lower,
                "interval_high": nothing if known is None else known.upper,
            }
        ).with_columns(pl.col("interval_low", "interval_high").fill_nan(None))

    def answer(self, query: str) -> float:
        """Return the answer of one question, such as ``age=18-64 & sex!=Female`` or ``mean(age)``.

        It is a share of the rows, a number of rows, or a number of the column's; NaN where the rows
        that the question is about are none. `dualquery.answer_queries` says where it comes from,
        its interval, and what it raises. Asking costs no privacy.
        """
        (found,) = answer_queries(self, [query])
        return math.nan if found["answer"] is None else float(found["answer"])

    def plot(self, one: str, other: str | None = None) -> Picture:
        """Draw the shares of a column's values with intervals, or of the pairs of two columns'.

        ``one`` and ``other`` are names of columns. Returns a Matplotlib figure, which notebooks
        show; `BadInputError` if a column or Matplotlib is missing, or there are too many pairs.
        """
        from dualquery.releases.answer.pictures import of_columns

        return of_columns(self, one, other, private=self.privacy.private)

    def sample(self, n: int, *, seed: int | None = None) -> pl.DataFrame:
        """Return ``n`` new rows in the user's columns; costs no privacy, however many.

        They are the model rounded to n records, in random order (few of them lack rare values: draw
        once, and split), or the release's own records, each equally often but for a random rest. A
        public ``seed`` makes them reproducible. `BadInputError` if n is negative, n records do not
        fit into memory, or the release has neither a model nor records.
        """
        from dualquery.releases.answer.sampling import sampled_rows

        return sampled_rows(self, n, seed)

    @property
    def _stored_model(self) -> Model | None:
        """The model, unless only a third party's code reads it."""
        return self.model if self.model is not None and self.model.kind in KINDS else None

    def summary(self) -> dict[str, Any]:
        """Return what ``release.json`` holds: JSON-able, all public."""
        return {
            "format_version": FORMAT_VERSION,
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "options": dict(self.options),
            "privacy": self.privacy.to_dict(),
            "rows": self.base.copies,
            "total": asdict(self.base),
            "bits": self.schema.domain.bits,
            "queries": len(self.workload),
            "way": self.workload.way,
            "workload": dict(self.workload.description),
            "synthetic_records": 0 if self.records is None else len(self.records),
            "solver": dict(self.solver),
            "intervals": None if self.intervals is None else self.intervals.describe(),
            "measurements": None if self.measurements is None else self.measurements.describe(),
            "model": None if self._stored_model is None else self._stored_model.kind,
            "means": [asdict(each) for each in self.means],
            "notes": list(self.notes),
            "versions": dict(self.versions),
            "created": self.created,
            "written_as": self.written_as,
            "schema": self.schema.to_dict(),
            "proof": dict(self.proof),
        }

    def save(self, path: str | Path) -> Path:
        """Write the folder, atomically; `BadInputError` if it exists or cannot be written."""
        from dualquery.releases.keep.reservation import reserve

        with reserve(path) as place:
            place.write(self.write_files)
        return Path(path)

    def write_files(self, folder: Path) -> None:
        """Make a folder, fill it with the release and put it on the disk."""
        folder.mkdir()
        rounds = None if self.trace else {"round": pl.Int64}
        trace = pl.DataFrame(list(self.trace), schema=rounds, infer_schema_length=None)
        tables = {"answers.parquet": self.answer_table, "trace.parquet": trace}
        tables |= {} if (synthetic := self.synthetic) is None else {SYNTHETIC: synthetic}
        tables |= {} if self.measurements is None else {MEASUREMENTS: self.measurements.table()}
        for name, table in tables.items():
            with (folder / name).open("wb") as stream:  # Polars changes some paths, as ~/
                table.write_parquet(stream)
        if self._stored_model is not None:
            write_model(self._stored_model, folder / MODEL)
        text = json.dumps(sealed(self.summary(), folder), indent=2, allow_nan=False) + "\n"
        (folder / "release.json").write_text(text, encoding="utf-8")
        for file in folder.iterdir():
            with file.open("rb+") as handle:
                os.fsync(handle.fileno())
        # A file's time would tell how long the passes over private rows took.
        stamp = datetime.datetime.fromisoformat(self.created).timestamp()
        for path in (*folder.iterdir(), folder):
            os.utime(path, (stamp, stamp))


def load_release(path: str | Path, *, to_ask: bool = False) -> Release:
    """Read a release folder; ``to_ask`` leaves out records where a model answers in their place.

    Raises
    ------
    BadInputError
        If it is not a release, is incomplete, was written by a newer version, or one of its files
        was changed since it was written: the message names the file.
    """
    folder = Path(path)
    check_files(folder, FILES)
    try:
        return _read(folder, to_ask)
    except BadInputError as error:
        raise BadInputError(f"{folder}: " + str(error).removeprefix(f"{folder}: ")) from error
    # The latter are what JSON of another shape than ours raises.
    except (OSError, PolarsError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInputError(
            f"{folder} holds a damaged release ({type(error).__name__}: {error}); copy it again "
            "from where it was made"
        ) from error


def _read(folder: Path, to_ask: bool) -> Release:
    from dualquery.data.schema.schema_files import schema_from_dict
    from dualquery.queries.stored_queries import queries_of_table

    stored = read_record(folder, FORMAT_VERSION)
    version = stored["format_version"]
    if stored["versions"].get("dualquery") != __version__:
        other = differences(stored["versions"])
        _log.warning(f"{folder}: made by another version, read as it was written; other: {other}")
    schema = schema_from_dict(stored["schema"])
    answers = read_table(folder / "answers.parquet")
    measurements, model = read_kept(folder, stored, schema.domain) if version >= 2 else (None, None)
    records, count = None, stored["synthetic_records"]
    if count:
        check_files(folder, (SYNTHETIC,))
    asked = stored.get("means") or stored["schema"].get("rules")  # of these with a model, too
    if count and (asked or model is None or not to_ask):
        from dualquery.data.encoding.blocks import Misfits
        from dualquery.data.readers.arrow import open_parquet
        from dualquery.rows.engines import read

        uncut = replace(schema, max_ones_per_row=None)
        check_memory(count * schema.domain.bits, "the synthetic records", "take a larger machine")
        source = open_parquet(folder / SYNTHETIC, SYNTHETIC)
        count = source.row_count or 0
        if count == stored["synthetic_records"]:
            records = read(source, uncut, Misfits(SYNTHETIC, silent=True)).dense_rows(0, count)
    if (found := (len(answers), count)) != (stored["queries"], stored["synthetic_records"]):
        raise BadInputError(
            f"{found[0]:,} answers and {found[1]:,} records found, but release.json speaks of "
            f"{stored['queries']:,} and {stored['synthetic_records']:,}; copy the release again"
        )
    intervals, about = None, stored["intervals"]
    if about is not None:
        low, high = (numbers_of(answers, f"interval_{at}", missing=True) for at in ("low", "high"))
        intervals = Intervals(low, high, about["basis"], about["level"])
    return Release(
        mechanism=stored["mechanism"],
        parameters=stored["parameters"],
        options=stored["options"],
        privacy=PrivacyStatement.from_dict(stored["privacy"]),
        schema=schema,
        base=_base(stored),
        workload=queries_of_table(
            {s.name: s for s in answers}, schema.domain, dict(stored["workload"])
        ),
        answers=numbers_of(answers, "answer"),
        records=records,
        trace=tuple(read_table(folder / "trace.parquet").to_dicts()),
        solver=stored["solver"],
        intervals=intervals,
        notes=tuple(stored["notes"]),
        versions=stored["versions"],
        created=stored["created"],
        written_as=stored.get("written_as"),
        measurements=measurements,
        model=model,
        means=tuple(BoughtMean.from_dict(each) for each in stored.get("means", ())),
        proof=unsealed(stored["proof"]) if version >= 2 else {},
    )


def _base(stored: Mapping[str, Any]) -> Total:
    """Read the total; older releases say in their options how the number of rows is known."""
    if "total" in stored:
        return Total.from_dict(stored["total"])
    options = stored["options"]
    relation, epsilon = Neighbours.of_options(options), float(options["epsilon"])
    bought = bought_epsilon(relation, options.get("rows"), epsilon)
    return Total.of(RowCount(stored["rows"], relation, bought, stored["rows"]))
