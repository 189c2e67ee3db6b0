"""About how much memory and disk a release takes, from public facts."""

from __future__ import annotations

from dualquery.mechanisms.protocol import Task

_LIBRARIES = 400 << 20
_BYTES_PER_QUERY = 2000
"""Of the libraries that a release loads, and of each query with its answer and its features."""

_STORED_BYTES_PER_QUERY = 128
_MOST_RECORD_BYTES = 1 << 28
"""More than that is not held beforehand for records."""


def bytes_in_memory(task: Task) -> int:
    """Return about how many bytes of memory a release takes, with all rows held."""
    bits = task.queries.domain.bits
    held = task.n * bits // 8
    made = task.default_records * bits
    return _LIBRARIES + held + made + _BYTES_PER_QUERY * len(task.queries)


def bytes_on_disk(task: Task) -> int:
    """Return about how many bytes a release writes: to find a full disk early."""
    cells = task.default_records * task.queries.domain.columns
    return _STORED_BYTES_PER_QUERY * len(task.queries) + min(2 * cells, _MOST_RECORD_BYTES)
