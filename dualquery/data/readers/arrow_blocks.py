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
"""Address space that a block may take while it is unpacked, as a multiple of `LARGEST`."""


def frames_of_batches(
    batches: Iterator[Any], label: str, *, cells: int = 0, stored: int = 0
) -> Iterator[pl.DataFrame]:
    """Yield Arrow batches as Polars tables, without the file's remarks."""
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
            frame = pl.DataFrame(pl.from_arrow(batch.replace_schema_metadata(None)))
        except (TypeError, ValueError, pl.exceptions.PolarsError) as fault:
            raise BadInputError(f"{label}: a column cannot be read ({fault})") from None
        except pl.exceptions.PanicException as fault:
            raise BadInputError(f"{label}: damaged ({fault})") from None
        yield frame


def is_list(schema: Any) -> bool:
    """Return whether the only column of an Arrow schema holds lists."""
    import pyarrow as pa

    kind = schema.types[0] if len(schema) == 1 else None
    return kind is not None and (pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _read_names(fields: Iterable[Any]) -> None:
    """Raise `UnicodeDecodeError` if a name is no UTF-8: of a column, or within its type."""
    for field in fields:
        str(field.name)
        kind = field.type
        _read_names(kind.field(at) for at in range(kind.num_fields))
