"""About how much memory, disk and time a release takes, from public facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualquery.mechanisms.protocol import Task
from dualquery.rows.protocol import BLOCK_ROWS
from dualquery.runtime.resources import mebibytes

if TYPE_CHECKING:
    from dualquery.mechanisms.protocol import Mechanism, Plan

_LIBRARIES = 480 << 20  # bytes that a release loads
_BYTES_PER_QUERY = 300  # with its answer and its text
_BYTES_PER_ONE, _BYTES_PER_LIST = 2, 6  # of a listed row's bit, and of a bit of a block

_USUAL_ONES = 128
"""1s of a row in binary columns, about, where there are thousands of them: few baskets, and few
persons who rate films, have more."""

_START, _PER_CELL, _PER_BIT, _PER_QUERY = 2.0, 1.5e-7, 1.5e-8, 1e-4
"""Seconds to load the libraries, to read a cell of a table, to draw and write a bit of a record,
and to plan, measure and fit a query: on two cores of a common server of 2023, with CSV files."""

_STORED_BYTES_PER_QUERY = 128
_MOST_RECORD_BYTES = 1 << 28
"""More than that is not held beforehand for records."""


@dataclass(frozen=True)
class Memory:
    """How many bytes of memory a release takes with all rows held, about."""

    usual: int  # where rows of thousands of binary columns have a few 1s
    most: int  # where they may be full

    def text(self) -> str:
        """Return both as a line for people."""
        more = ""
        if self.most > 1.1 * self.usual:
            more = f", up to {mebibytes(self.most)} if rows have many 1s"
        return f"memory: about {mebibytes(self.usual)} with all rows in it{more}"


def memory_needed(task: Task, mechanism: Mechanism[Any], plan: Plan[Any]) -> Memory:
    """Return about how much memory a release takes; how many 1s rows have is private."""
    domain = task.queries.domain
    binary = int((domain.sizes == 1).sum())
    others = domain.columns - binary
    ones = binary if domain.max_ones is None else min(binary, domain.max_ones)
    records = plan.parameters.get("records") or task.default_records
    rest = (
        _LIBRARIES
        + int(records) * domain.bits
        + _BYTES_PER_QUERY * len(task.queries)
        + mechanism.bytes_needed(task, plan)
    )
    return Memory(
        rest + _bytes_of_rows(task.rows, domain.bits, others + min(ones, _USUAL_ONES)),
        rest + _bytes_of_rows(task.rows, domain.bits, others + ones),
    )


def _bytes_of_rows(rows: int, bits: int, ones: int) -> int:
    """Return the bytes of rows with so many 1s each: packed, or listed if that is smaller."""
    listed = _BYTES_PER_ONE * ones + _BYTES_PER_LIST * bits / BLOCK_ROWS
    return round(rows * min(bits / 8, listed))


def bytes_on_disk(task: Task) -> int:
    """Return about how many bytes a release writes: to find a full disk early."""
    cells = task.default_records * task.queries.domain.columns
    return _STORED_BYTES_PER_QUERY * len(task.queries) + min(2 * cells, _MOST_RECORD_BYTES)


def seconds_needed(task: Task) -> float:
    """Return about how many seconds a release takes; mechanisms differ by a factor of three."""
    domain = task.queries.domain
    binary = int((domain.sizes == 1).sum())
    cells = task.rows * (domain.columns - binary + min(binary, _USUAL_ONES))
    bits = task.default_records * domain.bits
    return _START + _PER_CELL * cells + _PER_BIT * bits + _PER_QUERY * len(task.queries)
