"""``npz``: a SciPy sparse matrix of 0s and 1s, as `scipy.sparse.save_npz` writes it."""

import io
from collections.abc import Mapping
from typing import Any

from dualquery.data.opening import FilePath, open_bytes, read_whole
from dualquery.data.readers.python_objects import ArraySource
from dualquery.data.schema.column_choice import MAX_ITEMS
from dualquery.runtime.array_files import read_arrays
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import check_memory

LARGEST = 1 << 34  # bytes of the arrays: a billion 1s with their columns
_MOST_ROWS = 10**9

_KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("csr", "csc", "bsr"), ("data", "indices", "indptr")),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
"""The arrays of each of SciPy's forms."""


def open_npz(path: FilePath, label: str) -> ArraySource:
    """Return the source for a file with one sparse matrix, rows by items, which is read whole.

    It takes three times its arrays, and 16 bytes a row where it does not list its 1s row by row.
    """
    try:
        with open_bytes(path, label) as stream:
            # Zip files are read by seeking, which a gzipped file does badly.
            content = io.BytesIO(read_whole(stream, label, LARGEST))
        matrix = _matrix_of(read_arrays(content, LARGEST))
    except BadInputError as fault:
        none = f"not a matrix written by scipy.sparse.save_npz ({fault})"
        raise BadInputError(f"{label}: {none}") from None
    return ArraySource(matrix, label, path=path)


def _matrix_of(arrays: Mapping[str, Any]) -> Any:
    """Return the matrix that the arrays of a file describe; its numbers are still to be checked."""
    import scipy.sparse

    form = arrays["format"].ravel()[:1].tolist() if "format" in arrays else []
    name = form[0].decode("latin-1") if form and isinstance(form[0], bytes) else str(*form)
    wanted = ("shape", *_KEYS.get(name, ("format",)))
    parts = [arrays[key] for key in wanted if key in arrays]
    if name not in _KEYS or len(parts) < len(wanted):
        raise BadInputError(f"no matrix: there are the arrays {', '.join(map(repr, arrays))}")
    shape, data, *where = parts
    if any(part.dtype.kind not in "iu" for part in (shape, *where)) or shape.shape != (2,):
        raise BadInputError(f"shape {shape.tolist()} of {shape.dtype}, or positions of other types")
    rows, columns = map(int, shape)
    if not (0 <= rows <= _MOST_ROWS and 0 <= columns <= MAX_ITEMS):
        raise BadInputError(
            f"shape {rows:,} x {columns:,}; at most {_MOST_ROWS:,} rows and {MAX_ITEMS:,} columns "
            "are possible"
        )
    size = sum(part.nbytes for part in parts)
    check_memory(2 * size + 16 * rows, "a matrix of this size", "use --engine stream on parquet")
    given = (data, (where[0], where[1])) if name == "coo" else (data, *where)
    try:
        return getattr(scipy.sparse, f"{name}_array")(given, shape=(rows, columns))
    except (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError) as fault:
        raise BadInputError(str(fault)) from None
