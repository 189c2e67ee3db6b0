"""Private rows with their public schema; `load` reads a source into memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar, runtime_checkable

from dualquery.data.drafts.choose import choose_schema
from dualquery.data.encoding.blocks import (
    drops_rows,
    encoded_blocks,
    intake_notes,
    left_out_columns,
)
from dualquery.data.encoding.cuts import CutTable
from dualquery.data.encoding.misfits import Misfits
from dualquery.data.encoding.units import Unit, cut_to_units, without_counting
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import Source, TableSource
from dualquery.data.schema.column_choice import ColumnChoice
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.protocol import Schema
from dualquery.data.schema.table import TableSchema
from dualquery.rows.packed import Records, RecordsBuilder
from dualquery.rows.protocol import BLOCK_ROWS, Rows
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
    schema: TableSchema | ItemSchema
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
    written_as: str | None = None
    """How a CSV file is written, as ``--csv`` says it: by its user's words and its header, never by
    a row. None for standard CSV and other tables."""

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
    table = without_counting(source, unit, None)
    chosen = choose_schema(table, schema, columns, max_ones_per_row)
    if unit is not None:
        source = cut_to_units(source, unit, chosen)
    return dataset(read(source, chosen, Misfits(source.label)), chosen, source)


def dataset(rows: R, schema: TableSchema | ItemSchema, source: Source) -> Dataset[R]:
    """Return rows of a source as a data set; raise `BadInputError` if there is none."""
    if not rows.n:
        which = "no complete rows" if drops_rows(schema) else "no rows"
        raise BadInputError(f"{source.label}: {which}, so there is nothing to release")
    units = source.units if isinstance(source, CutTable) else None
    left_out = left_out_columns(source, schema)
    notes = intake_notes(source, schema)
    written_as = source.written_as if isinstance(source, TableSource) else None
    return Dataset(rows, schema, source.label, notes, units, left_out, written_as)


def read(source: Source, schema: TableSchema | ItemSchema, misfits: Misfits) -> Records:
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
