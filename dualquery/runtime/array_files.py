"""NumPy's ``.npz`` files of unknown origin: nothing is run, and little memory is taken on trust."""

import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import check_memory, mebibytes

_MOST_ARRAYS = 100


def read_arrays(stream: BinaryIO, largest: int) -> Mapping[str, NDArray[Any]]:
    """Return the plain arrays of an ``.npz`` file by name, of ``largest`` bytes in all at most."""
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
        total = sum(member.file_size for member in members)
        if len(members) > _MOST_ARRAYS or total > largest:
            raise BadInputError(
                f"{len(members)} arrays of {mebibytes(total)} in all; at most {_MOST_ARRAYS} "
                f"of {mebibytes(largest)} are possible"
            )
        if len({member.filename.removesuffix(".npy") for member in members}) < len(members):
            raise BadInputError("two arrays of one name")
        check_memory(total, "reading the arrays", "take a smaller file")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
    except BadInputError:
        raise
    except (
        zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, MemoryError,
        ValueError, OverflowError, SyntaxError, TypeError,
    ) as fault:  # fmt: skip  # RuntimeError: an array that is encrypted
        raise BadInputError(f"no file of NumPy arrays, or a damaged one ({fault})") from None
    for name, array in found.items():
        if not (isinstance(array, np.ndarray) and _is_plain(array)):
            raise BadInputError(f"{name!r} is no array of numbers, truth values or texts")
    return found


def _is_plain(array: NDArray[Any]) -> bool:
    """Return whether an array holds numbers, truth values or characters, as its type says."""
    kind = array.dtype
    if kind.kind == "b":
        return bool(np.all(array.view(np.uint8) <= 1))
    if kind.kind == "U" and kind.itemsize:
        points = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(kind.byteorder))
        return bool(np.all((points < 0xD800) | ((points > 0xDFFF) & (points <= 0x10FFFF))))
    return kind.kind in "biufS" and kind.itemsize > 0
