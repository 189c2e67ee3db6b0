"""Which engine reads the private rows: memory, a stream, or the workers of a Dask cluster.

An engine changes where rows are held and how long a pass takes, never a count. The operator chooses
it, or the sizes of the files and of free memory do; a release does not say which it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dualquery.data.choose import choose_schema
from dualquery.data.cuts import CutTable
from dualquery.data.misfits import Misfits
from dualquery.data.opening import FilePath
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import PartitionedSource, Source
from dualquery.data.schema.column_choice import ColumnChoice
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.protocol import Schema
from dualquery.data.schema.table import TableSchema
from dualquery.data.units import Unit, Weight, cut_to_units, weigh, without_counting
from dualquery.rows.dataset import Dataset, RecordsSource, dataset, read
from dualquery.rows.engine_choice import EngineChoice
from dualquery.rows.packed import Records
from dualquery.rows.protocol import Rows
from dualquery.rows.weighted import WeightedRows
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.explaining import explain_log
from dualquery.runtime.resources import available_memory, mebibytes

_COMPRESSED = (".gz", ".parquet", ".npz")
_EXPANSION = 8
"""The content of a compressed file is taken to be this many times its size."""

_SHARE = 0.5
"""Rows are kept in memory if the files would fill at most this share of the free memory."""


@dataclass(frozen=True, kw_only=True)
class Engine(EngineChoice):
    """How private rows are read.

    Parameters
    ----------
    name
        ``memory``: packed once and kept. ``stream``: read anew for each pass, in memory that does
        not grow with the rows. ``dask``: partitions of a parquet table, read by the workers of a
        cluster. ``auto``: memory if the files are small enough for it, else a stream.
    scheduler
        Address of the Dask scheduler, with ``dask`` only.
    answers_cache
        File of the operator's that keeps exact answers from one run to the next; None for none.

    Raises
    ------
    BadInputError
        If the options contradict each other.
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
        """Yield the data and their rows; arguments are those of `dualquery.rows.dataset.load`.

        Rows carry the numbers of the columns ``sums``, too. The operator is told of cells that do
        not fit the schema (`dualquery.data.misfits`), but not if the table is read ``again``.

        Raises
        ------
        BadInputError
            If the data, the schema or the choice of columns is not as it should be, there is no
            row, the rows do not fit, or the cluster cannot be reached.
        """
        source = source_of(data)
        if self.name == "dask" and (unit is not None or weight is not None):
            option = "--weight" if unit is None else "--unit"
            raise BadInputError(
                f"{option} needs all rows in one place; use --engine memory or --engine stream"
            )
        table = without_counting(source, unit, weight)

        def choose() -> TableSchema | ItemSchema:
            chosen = choose_schema(table, schema, columns, max_ones_per_row)
            return chosen if sums is None else chosen.with_sums(sums)

        misfits = Misfits(table.label, silent=again)
        with self._opened(source, unit, weight, choose, misfits) as opened:
            if not explain_log.isEnabledFor(logging.INFO):
                yield self._cached(opened, source, unit, weight)
                return
            from dualquery.rows.timed import TimedRows

            rows = opened.records
            if isinstance(rows, Records):
                reported = TimedRows(rows, rows.nbytes, "memory")
            else:
                reported = TimedRows(rows, sum(map(_size, files_of(source))), "files")
            yield self._cached(replace(opened, records=reported), source, unit, weight)
            reported.report()

    @contextmanager
    def _opened(
        self,
        source: Source,
        unit: Unit | None,
        weight: Weight | None,
        choose: Callable[[], TableSchema | ItemSchema],
        misfits: Misfits,
    ) -> Iterator[Dataset[Rows]]:
        """Yield the rows of a source, as the engine reads them, with the schema that is chosen."""
        if self.scheduler is not None:
            from dualquery.rows.dask_cluster import cluster_rows, connect

            if not isinstance(source, PartitionedSource):
                raise BadInputError(
                    f"{source.label}: --engine dask reads parquet files in a folder or by a "
                    "pattern, each file as a partition"
                )
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
            weighted = weigh(source, weight, chosen)
            copies = WeightedRows(tuple(rows_of(part) for part in weighted.digits))
            yield dataset(copies, chosen, weighted.whole)

    def _streams(self, source: Source) -> bool:
        """Return whether rows are left in their source."""
        if self.name != "auto" or isinstance(source, RecordsSource):
            return self.name == "stream" and not isinstance(source, RecordsSource)
        size = sum(map(_expanded_size, files_of(source)))
        available = available_memory()
        streams = available is not None and size > _SHARE * available
        explain_log.info(
            "engine: %s, because the files hold about %s and %s are available",
            "stream" if streams else "memory",
            mebibytes(size),
            "an unknown amount of memory" if available is None else mebibytes(available),
        )
        return streams

    def _cached(
        self, data: Dataset[Rows], source: Source, unit: Unit | None, weight: Weight | None
    ) -> Dataset[Rows]:
        if self.answers_cache is None:
            return data
        from dualquery.rows.cached import CachedRows
        from dualquery.rows.counts_file import CountsFile, digest

        files = files_of(source)
        if not files:
            raise BadInputError(f"{data.source}: --answers-cache needs data that are in a file")
        key = digest(files, data.schema, _read_as(source), unit, weight)
        file = CountsFile(Path(self.answers_cache), key)
        return replace(data, records=CachedRows(data.records, file))


def files_of(source: Source) -> Sequence[FilePath]:
    """Return the files that a source reads, none for a table in memory or made up."""
    if isinstance(source, CutTable):
        return files_of(source.source)
    if isinstance(source, PartitionedSource):
        return [file for part in source.parts for file in files_of(part)]
    path = getattr(source, "path", None)
    if path is None:
        return []
    if path.is_dir():
        return sorted((file for file in path.iterdir() if file.is_file()), key=lambda f: f.name)
    return [path]


def _read_as(source: Source) -> tuple[object, ...]:
    """Return what else than its files decides the rows of a source: format, dialect and header."""
    if isinstance(source, CutTable):
        return _read_as(source.source)
    if isinstance(source, PartitionedSource):  # written alike
        return _read_as(source.parts[0])
    return type(source).__name__, getattr(source, "dialect", None), getattr(source, "header", None)


def _size(file: FilePath) -> int:
    """Return the bytes of a file; 0 for one inside a zipped package."""
    return file.stat().st_size if isinstance(file, Path) else 0


def _expanded_size(file: FilePath) -> int:
    """Return about how many bytes a file holds; 0 for one inside a zipped package."""
    size = _size(file)
    return size * _EXPANSION if file.name.lower().endswith(_COMPRESSED) else size
