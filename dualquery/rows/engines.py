"""Private rows with their public schema, and which engine reads them.

Memory (`load`), a stream, or the workers of a Dask cluster. An engine changes where rows are held
and how long a pass takes, never a count. The operator chooses it, or the sizes of the files and of
free memory do; a release does not say which it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar, runtime_checkable

from dualquery.data.drafts.choose import choose_schema
from dualquery.data.encoding.blocks import (
    Misfits,
    encoded_blocks,
    intake_notes,
    left_out_columns,
)
from dualquery.data.encoding.cuts import CutTable, without_counting
from dualquery.data.given_table import Unit, Weight
from dualquery.data.opening import FilePath
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import Source
from dualquery.data.schema.any_schema import Schema
from dualquery.data.schema.column_choice import ColumnChoice
from dualquery.data.schema.items import ItemSchema
from dualquery.rows.engine_choice import EngineChoice
from dualquery.rows.packed import Records, RecordsBuilder
from dualquery.rows.row_sums import BLOCK_ROWS, Rows
from dualquery.rows.units import cut_to_units, weigh
from dualquery.rows.weighted_rows import WeightedRows
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import available_memory, mebibytes

_CHECKED_BLOCKS = 64
"""Blocks between two checks of the free memory."""


R = TypeVar("R", bound=Rows)
R_co = TypeVar("R_co", bound=Rows, covariant=True)


@runtime_checkable
class RecordsSource(Protocol):
    """A source whose rows are in the form of records already, so that none need be encoded."""

    def records(self, schema: ItemSchema) -> Records:
        """Return the rows as bits of some items; `BadInputError` if the source lacks one."""
        ...


@dataclass(frozen=True, eq=False)
class Dataset(Generic[R_co]):
    """Private records with their public schema."""

    records: R_co  # the rows as bits, in memory or wherever an engine reads them; private
    schema: Schema
    """What the bits mean; ``schema.declared`` tells whether a release may call itself private."""
    source: str  # what messages call the data
    notes: tuple[str, ...] = ()
    """Sentences about how the data were taken in; they depend on public choices, never on a row."""
    units: int | None = None
    """Number of units, or of rows with weights; None where each row is a unit and counts once.
    Public where one is replaced, else private."""
    left_out: tuple[str, ...] = ()
    """Names of the table's columns that the schema does not describe: for the operator. A release
    says how many they are."""

    @property
    def n(self) -> int:
        """Number of records; public where neighbours replace one, else private."""
        return self.records.n


def load(
    data: object,
    schema: Schema | Mapping[str, object] | str | Path | None = None,
    columns: ColumnChoice | None = None,
    max_ones_per_row: int | None = None,
    unit: Unit | None = None,
) -> Dataset[Records]:
    """Read data into records, which stay in memory.

    Parameters
    ----------
    data
        Anything that `dualquery.data.readers.formats.source_of` takes.
    schema
        A schema, the name of a built-in one, or the path of a schema file. None takes the schema
        that the data imply (built-in data, ``kdd99``, ``netflix``, generators, formats whose file
        fixes the items), and else drafts one from the data, which is not declared.
    columns
        Which columns or items to keep (``--columns``); None for all. A list of items given here
        declares them.
    max_ones_per_row
        Rows with more 1s than this are cut to this many; None for what the schema says.
    unit
        Which rows belong together, and how many of them stay; None for each row by itself.

    Raises
    ------
    BadInputError
        If the data, the schema or the choice of columns is not as it should be, there is no row,
        or the records do not fit into memory.
    """
    source = source_of(data)
    chosen = choose_schema(without_counting(source, unit, None), schema, columns, max_ones_per_row)
    if unit is not None:
        source = cut_to_units(source, unit, chosen)
    return dataset(read(source, chosen, Misfits(source.label)), chosen, source)


def dataset(rows: R, schema: Schema, source: Source) -> Dataset[R]:
    """Return rows of a source as a data set; raise `BadInputError` if there is none."""
    units = source.units if isinstance(source, CutTable) else None
    if not rows.n:
        which = "no complete rows" if schema.drop_incomplete else "no rows"
        which = "all weights are far below --max-weight" if units else which
        raise BadInputError(f"{source.label}: {which}, so there is nothing to release")
    left_out = left_out_columns(source, schema)
    return Dataset(rows, schema, source.label, intake_notes(source, schema), units, left_out)


def read(source: Source, schema: Schema, misfits: Misfits) -> Records:
    """Read all rows of a source into memory (see `load`); ``misfits`` tell the operator."""
    uncut = schema.max_ones_per_row is None
    if isinstance(source, RecordsSource) and isinstance(schema, ItemSchema) and uncut:
        return source.records(schema)
    available = available_memory()
    builder = RecordsBuilder(schema.record_bits)
    checked = 0
    for rows in encoded_blocks(source, schema, watch=misfits.see):
        builder.append_encoded(rows)
        if available is not None and builder.rows >= checked + _CHECKED_BLOCKS * BLOCK_ROWS:
            checked = builder.rows
            if builder.nbytes > available:
                raise BadInputError(
                    f"{source.label}: the first {checked:,} rows take {mebibytes(builder.nbytes)} "
                    "of memory, which is all there is; use --engine stream"
                )
    misfits.tell()
    return builder.build()


_COMPRESSED = (".gz", ".parquet", ".npz")
_EXPANSION = 8
"""The content of a compressed file is taken to be this many times its size."""

_SHARE = 0.5
"""Rows are kept in memory if the files would fill at most this share of the free memory."""


@dataclass(frozen=True, kw_only=True)
class Engine(EngineChoice):
    """How private rows are read: the options of `EngineChoice`.

    ``memory``: packed once and kept. ``stream``: read anew for each pass, in memory that does not
    grow with the rows. ``dask``: partitions of a parquet table, read by the workers of a cluster.
    ``auto``: memory if the files are small enough for it, else a stream.
    """

    @contextmanager
    def open(
        self,
        data: object,
        schema: Schema | Mapping[str, object] | str | Path | None = None,
        columns: ColumnChoice | None = None,
        max_ones_per_row: int | None = None,
        unit: Unit | None = None,
        weight: Weight | None = None,
        sums: ColumnChoice | None = None,
        *,
        again: bool = False,
    ) -> Iterator[Dataset[Rows]]:
        """Yield the data and their rows; arguments are those of `dualquery.rows.engines.load`.

        Rows carry the numbers of the columns ``sums``, too. Cells that do not fit are reported to
        the operator (`data.encoding.blocks`), but not by a cluster, and not when read ``again``.
        """
        source = source_of(data)
        self.check_source(source, unit, weight)
        table = without_counting(source, unit, weight)

        def choose() -> Schema:
            chosen = choose_schema(table, schema, columns, max_ones_per_row)
            return chosen if sums is None else chosen.with_sums(sums)

        misfits = Misfits(table.label, silent=again)
        if self.scheduler is not None:
            from dualquery.rows.dask_cluster import cluster_rows, connect

            with connect(self.scheduler) as client:
                chosen = choose()
                yield dataset(cluster_rows(client, source.parts, chosen), chosen, source)
            return
        streams = self._streams(source)
        chosen = choose()
        if unit is not None:
            source = cut_to_units(source, unit, chosen)

        def rows_of(part: Source) -> Rows:
            from dualquery.rows.streamed import stream_rows

            return stream_rows(part, chosen, misfits) if streams else read(part, chosen, misfits)

        if weight is None:
            yield dataset(rows_of(source), chosen, source)
        else:
            whole, digits = weigh(source, weight, chosen)
            yield dataset(WeightedRows(tuple(map(rows_of, digits))), chosen, whole)

    def check_source(
        self, source: Source, unit: Unit | None, weight: Weight | None, *, draws: bool = False
    ) -> None:
        """Refuse what a cluster cannot do; ``draws``: random numbers where the rows are."""
        away = self.scheduler is not None
        if away and (draws or unit is not None or weight is not None):
            what = "this mechanism" if draws else "--weight" if unit is None else "--unit"
            raise BadInputError(f"{what} needs all rows in one place: --engine memory or stream")
        if away and not source.parts:
            raise BadInputError(
                f"{source.label}: --engine dask reads parquet files in a folder or by a pattern, "
                "each file as a partition"
            )

    def _streams(self, source: Source) -> bool:
        """Return whether rows are left in their source."""
        if self.name != "auto" or isinstance(source, RecordsSource):
            return self.name == "stream" and not isinstance(source, RecordsSource)
        size = sum(map(_expanded_size, files_of(source)))
        available = available_memory()
        return available is not None and size > _SHARE * available


def files_of(source: Source) -> Sequence[FilePath]:
    """Return the files that a source reads, none for a table in memory or made up."""
    if source.parts:
        return [file for part in source.parts for file in files_of(part)]
    path = getattr(source, "path", None)
    if isinstance(path, Path):
        if path.is_dir():
            return sorted((file for file in path.iterdir() if file.is_file()), key=lambda f: f.name)
        log = path.with_name(f"{path.name}.wal")  # rows that DuckDB has yet to move
        return [path, log] if log.is_file() else [path]
    return [] if path is None else [path]


def _expanded_size(file: FilePath) -> int:
    """Return about how many bytes a file holds; 0 for one inside a zipped package."""
    size = file.stat().st_size if isinstance(file, Path) else 0
    return size * _EXPANSION if file.name.lower().endswith(_COMPRESSED) else size
