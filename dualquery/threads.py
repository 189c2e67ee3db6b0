"""How many threads a run may use."""

from __future__ import annotations

import os

from dualquery.errors import BadInputError


def thread_count(threads: int | None) -> int:
    """Return the number of threads asked for, or one a core for None.

    Raises
    ------
    BadInputError
        If it is below 1.
    """
    if threads is None:
        return os.cpu_count() or 1
    if threads < 1:
        raise BadInputError(f"--threads is {threads}; at least 1 is needed")
    return threads
