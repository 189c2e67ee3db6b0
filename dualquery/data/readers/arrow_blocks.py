"""Blocks of rows as Arrow gives them, from files of unknown origin.

A file of a few bytes may state, or unpack to, gigabytes: so a block has a limit while it is read,
where the system has one, and once it is read. Polars takes offsets and texts of Arrow on trust: so
they are checked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import limited_space, mebibytes

if TYPE_CHECKING:
    import polars as pl

LARGEST = 1 << 30
"""Bytes of a block of rows; more only for very many cells."""

_BYTES_OF_CELL = 32
"""The widest number that Arrow has."""

_WHILE_READING = 4
"""So much address space a block may take while it is unpacked, as a multiple of `LARGEST`."""


def frames_of_batches(
    batches: Iterator[Any], label: str, *, cells: int = 0, stored: int = 0
) -> Iterator[pl.DataFrame]:
    """Yield Arrow batches as Polars tables, without the file's remarks.

    Parameters
    ----------
    batches
        Of PyArrow; it raises its own errors.
    label
        What messages call the table.
    cells
        How many a batch has at most, if the reader chooses.
    stored
        Bytes that a batch may take because the file has as many.

    Raises
    ------
    BadInputError
        If a batch is larger than it may be, or Polars has no such type.
    pyarrow.ArrowException, UnicodeDecodeError
        If one is damaged.
    """
    import polars as pl

    largest = LARGEST + _BYTES_OF_CELL * cells + stored
    too_large = BadInputError(
        f"{label}: a block of rows takes more than {mebibytes(largest)}; are texts or lists of "
        "items that long? Write the file in smaller pages or batches, or in another format"
    )
    seen = False
    while True:
        try:
            with limited_space(_WHILE_READING * largest):
                batch = next(batches, None)
        except MemoryError:
            raise too_large from None
        if batch is None:
            return
        if not seen:
            _read_names(batch.schema)
            seen = True
        batch.validate(full=True)  # first: PyArrow itself trusts offsets when it adds up sizes
        if batch.get_total_buffer_size() > largest:
            raise too_large
        try:
            frame = pl.DataFrame(pl.from_arrow(plain(batch).replace_schema_metadata(None)))
        except (TypeError, ValueError, pl.exceptions.PolarsError) as fault:
            raise BadInputError(f"{label}: a column cannot be read ({fault})") from None
        except pl.exceptions.PanicException as fault:
            raise BadInputError(f"{label}: damaged ({fault})") from None
        yield frame


def plain(table: Any) -> Any:
    """Return an Arrow table or batch without types of its own making: values as they are stored.

    Databases have such types, as PostgreSQL for numbers of any length; these are stored as texts.
    """
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if isinstance(field.type, pa.BaseExtensionType):
            stored = table.column(at).cast(field.type.storage_type)
            table = table.set_column(at, pa.field(field.name, field.type.storage_type), stored)
    return table


def _read_names(fields: Iterable[Any]) -> None:
    """Raise `UnicodeDecodeError` if a name is no UTF-8: of a column, or within its type."""
    for field in fields:
        str(field.name)
        kind = field.type
        _read_names(kind.field(at) for at in range(kind.num_fields))
