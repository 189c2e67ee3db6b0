"""Files that are whole, or as they were before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dualquery.runtime.errors import BadInputError

HIDDEN = ".dualquery-"
"""Begins the names of folders in which files are written before they are whole."""


def require_new(path: Path) -> None:
    """Refuse a file that cannot be made, before any work is done for it.

    Raises
    ------
    BadInputError
        If there is something at ``path`` already, or no folder that it could be in.
    """
    if path.exists() or path.is_symlink():
        raise BadInputError(f"{path} exists already; delete it, or name another file")
    if not path.parent.is_dir():
        raise BadInputError(f"{path}: there is no folder {path.parent}; make it first")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a place to write a file at; when the block ends well, it replaces ``path`` at once.

    Raises
    ------
    BadInputError
        If the disk refuses; ``path`` is then as it was, and nothing else is left behind.
    """
    target = Path(path)
    try:
        # A folder of its own beside the file, since a file made by mkstemp would have mode 0600.
        with tempfile.TemporaryDirectory(prefix=HIDDEN, dir=target.parent) as hidden:
            part = Path(hidden) / target.name
            yield part
            with part.open("rb+") as handle:
                os.fsync(handle.fileno())
            part.replace(target)
    except OSError as fault:
        raise BadInputError(f"{target}: cannot be written ({fault.strerror or fault})") from None
